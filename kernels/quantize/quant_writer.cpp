// SPDX-License-Identifier: Apache-2.0
// The groups of a row among its threads, and their codes.
#include "kernels/quantize/quant_writer.h"

#include "tilewright/control.h"
#include "tilewright/sync.h"

#include <algorithm>

namespace tilewright {

void QuantWriter::load_input() {
  for (const std::optional<Tensor>& input : {t_.scale, t_.encode_scale})
    if (input) input_.emplace(load((*input)(0), 1));
}

Value QuantWriter::largest_of_thread(const RowPart& part) const {
  Var largest(f32, 0.0f);
  for (std::size_t j = 0; j < part.numbers.size(); ++j)
    largest = larger(largest, select(part.inside[j], largest_magnitude(part.numbers[j]), 0.0f));
  return largest;
}

RowPart QuantWriter::whole_groups(RowPart part) const {
  const auto together = static_cast<std::size_t>(accesses_of_group(part) / threads_of_group(part));
  const int elems = part.numbers.front().size();
  while (part.numbers.size() % together != 0) {
    part.numbers.emplace_back(config_.rounded, elems);  // 0 when made
    part.inside.push_back(constant(pred, false));
  }
  return part;
}

void QuantWriter::write(const RowPart& given, const std::optional<Value>& largest_of_row) const {
  const bool in_groups = !t_.scale && !largest_of_row;
  const RowPart part = in_groups && is_ragged() ? whole_groups(given) : given;
  const auto group = static_cast<int>(config_.group);
  const Value scales_row = t_.scale ? constant(s32, 0) : part.row;
  const Row row{(*t_.q)(part.row, _), scales_of_row(config_.coding.layout, *t_.scales, scales_row),
                t_.scale ? part.row == 0 && part.column == 0 : part.column % group == 0,
                part.column / group};
  std::vector<Fragment> wide;
  for (const Fragment& each : part.numbers)
    wide.push_back(each.to(f32));
  const std::vector<GroupCodes> groups = groups_of(part, largest_of_row);
  const std::vector<Fragment> codes = codes_of(groups, wide);
  const std::size_t together = codes.size() / groups.size();
  for (std::size_t i = 0; i < groups.size(); ++i)
    store_scale(part, row, i * together, groups[i]);
  const int step = part.lanes * wide.front().size();
  for (std::size_t j = 0; j < given.numbers.size(); ++j)
    store_if(part.inside[j], row.q(part.column + static_cast<int>(j) * step), codes[j]);
}

std::vector<GroupCodes> QuantWriter::groups_of(const RowPart& part,
                                               const std::optional<Value>& largest_of_row) const {
  const QuantCoding& coding = config_.coding;
  if (t_.scale) return {GroupCodes::of_scale(coding, config_.division, number(*t_.scale))};
  if (largest_of_row)
    return {GroupCodes::of_largest(coding, config_.division, *largest_of_row, floor_)};
  const int width = threads_of_group(part);
  const auto together = static_cast<std::size_t>(accesses_of_group(part) / width);
  TW_ASSERT(width <= 32 && part.numbers.size() % together == 0, "a warp holds its groups");
  std::vector<Value> of_groups;
  for (std::size_t j = 0; j < part.numbers.size(); j += together) {
    Var largest(magnitude_of(part, j));
    for (std::size_t i = 1; i < together; ++i)
      largest = larger(largest, magnitude_of(part, j + i));
    of_groups.push_back(warp_reduce(largest, larger, width));
  }
  return GroupCodes::of_largest(coding, config_.division, of_groups,
                                t_.encode_scale ? number(*t_.encode_scale) : floor_);
}

int QuantWriter::accesses_of_group(const RowPart& part) const {
  return static_cast<int>(config_.group) / part.numbers.front().size();
}
int QuantWriter::threads_of_group(const RowPart& part) const {
  return std::min(accesses_of_group(part), part.lanes);
}

/// Of an access: beyond the row's end there may be anything.
Value QuantWriter::magnitude_of(const RowPart& part, std::size_t access) const {
  Value largest = largest_magnitude(part.numbers[access]);
  return is_ragged() ? select(part.inside[access], largest, 0.0f) : largest;
}

void QuantWriter::store_scale(const RowPart& part, const Row& row, std::size_t access,
                              const GroupCodes& codes) const {
  const ScaleLayout layout = config_.coding.layout;
  const int step = part.lanes * part.numbers.front().size();  // between accesses
  const Value starts = part.inside[access] && row.starts;
  const int further = static_cast<int>(access) * step / static_cast<int>(config_.group);
  Fragment stored(t_.scales->type(), 1);
  stored[0] = codes.stored();
  store_if(starts, scale_in_row(layout, row.scales, row.group, further), stored);
  const std::int64_t groups_n = config_.groups_of_row();
  if (padded_groups(layout, groups_n) != groups_n) {
    if_(starts && row.group + further == static_cast<int>(groups_n) - 1,
        [&] { pad_groups(layout, *t_.scales, part.row, groups_n); });
  }
}

void QuantWriter::pad(const Value& row_count, const Value& thread) const {
  pad_rows(config_.coding.layout, *t_.scales, row_count, thread, config_.groups_of_row());
}

}  // namespace tilewright
