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
  if (t_.scale || largest_of_row) {
    const GroupCodes codes =
        t_.scale
            ? GroupCodes::of_scale(config_.coding, config_.division, (*t_.scale)(0))
            : GroupCodes::of_largest(config_.coding, config_.division, *largest_of_row, floor_);
    write_group(part, row, 0, part.numbers.size(), codes);
    return;
  }
  const int accesses = group / part.numbers.front().size();  // of a group
  const int width = std::min(accesses, part.lanes);          // threads of a group
  const auto together = static_cast<std::size_t>(accesses / width);
  TW_ASSERT(width <= 32 && part.numbers.size() % together == 0, "a warp holds its groups");
  const Value parameter = t_.encode_scale ? Value((*t_.encode_scale)(0)) : floor_;
  for (std::size_t j = 0; j < part.numbers.size(); j += together) {
    Var largest(largest_magnitude(part.numbers[j]));
    for (std::size_t i = 1; i < together; ++i)
      largest = larger(largest, largest_magnitude(part.numbers[j + i]));
    const Value of_group = warp_reduce(largest, larger, width);
    write_group(part, row, j, together,
                GroupCodes::of_largest(config_.coding, config_.division, of_group, parameter));
  }
}

/// Without a branch, so that the accesses' instructions mix.
void QuantWriter::write_group(const RowPart& part, const Row& row, std::size_t first,
                              std::size_t count, const GroupCodes& codes) const {
  const ScaleLayout layout = config_.coding.layout;
  const int step = part.lanes * part.numbers.front().size();  // between accesses
  const Value starts = part.inside[first] && row.starts;
  const Value group = row.group + static_cast<int>(first) * step / static_cast<int>(config_.group);
  Fragment stored(t_.scales->type(), 1);
  stored[0] = codes.stored();
  store_if(starts, scale_in_row(layout, row.scales, group), stored);
  const std::int64_t groups_n = config_.groups_of_row();
  if (padded_groups(layout, groups_n) != groups_n) {
    if_(starts && group == static_cast<int>(groups_n) - 1,
        [&] { pad_groups(layout, *t_.scales, part.row, groups_n); });
  }
  for (std::size_t j = first; j < first + count; ++j) {
    store_if(part.inside[j], row.q(part.column + static_cast<int>(j) * step),
             codes(part.numbers[j].to(f32)));
  }
}

void QuantWriter::pad(const Value& row_count, const Value& thread) const {
  pad_rows(config_.coding.layout, *t_.scales, row_count, thread, config_.groups_of_row());
}

}  // namespace tilewright
