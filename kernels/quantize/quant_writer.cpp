// SPDX-License-Identifier: Apache-2.0
// The groups of a row among its threads, and their codes.
#include "kernels/quantize/quant_writer.h"

#include "tilewright/control.h"
#include "tilewright/sync.h"

#include <algorithm>

namespace tilewright {

Value QuantWriter::largest_of_thread(const RowPart& part) const {
  Var largest(f32, 0.0f);
  for (std::size_t j = 0; j < part.numbers.size(); ++j)
    largest = larger(largest, select(part.inside[j], largest_magnitude(part.numbers[j]), 0.0f));
  return largest;
}

void QuantWriter::write(const RowPart& part, const std::optional<Value>& largest_of_row) const {
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
  for (std::size_t j = 0; j < codes.size(); ++j)
    store_if(part.inside[j], row.q(part.column + static_cast<int>(j) * step), codes[j]);
}

std::vector<GroupCodes> QuantWriter::groups_of(const RowPart& part,
                                               const std::optional<Value>& largest_of_row) const {
  const QuantCoding& coding = config_.coding;
  if (t_.scale) return {GroupCodes::of_scale(coding, config_.division, (*t_.scale)(0))};
  if (largest_of_row)
    return {GroupCodes::of_largest(coding, config_.division, *largest_of_row, floor_)};
  const int accesses = static_cast<int>(config_.group) / part.numbers.front().size();  // of a group
  const int width = std::min(accesses, part.lanes);  // threads of a group
  const auto together = static_cast<std::size_t>(accesses / width);
  TW_ASSERT(width <= 32 && part.numbers.size() % together == 0, "a warp holds its groups");
  std::vector<Value> of_groups;
  for (std::size_t j = 0; j < part.numbers.size(); j += together) {
    Var largest(largest_magnitude(part.numbers[j]));
    for (std::size_t i = 1; i < together; ++i)
      largest = larger(largest, largest_magnitude(part.numbers[j + i]));
    of_groups.push_back(warp_reduce(largest, larger, width));
  }
  return GroupCodes::of_largest(coding, config_.division, of_groups,
                                t_.encode_scale ? Value((*t_.encode_scale)(0)) : floor_);
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
