// SPDX-License-Identifier: Apache-2.0
// The groups of a row among its threads, and their codes.
#include "kernels/quantize/quant_writer.h"

#include "tilewright/control.h"
#include "tilewright/sync.h"

#include <algorithm>

namespace tilewright {

Value QuantWriter::largest_of_thread(std::span<const rows::RowShare> shares,
                                     std::span<const Fragment> numbers) const {
  Var largest(f32, 0.0f);
  for (std::size_t j = 0; j < shares.size(); ++j)
    largest = larger(largest, select(shares[j].inside, largest_magnitude(numbers[j]), 0.0f));
  return largest;
}

void QuantWriter::write(std::span<const rows::RowShare> shares, std::span<const Fragment> numbers,
                        int lanes, const std::optional<Value>& largest_of_row) const {
  const rows::RowShare& first = shares.front();
  if (t_.scale) {
    const Value scale = (*t_.scale)(0);
    write_group(shares, numbers, first.row == 0 && first.column == 0,
                GroupCodes::of_scale(config_.coding, config_.division, scale));
    return;
  }
  if (largest_of_row) {
    write_group(shares, numbers, first.column == 0,
                GroupCodes::of_largest(config_.coding, config_.division, *largest_of_row, floor_));
    return;
  }
  const auto group = static_cast<int>(config_.group);
  const int accesses = group / numbers.front().size();  // of a group
  const int width = std::min(accesses, lanes);          // threads of a group
  const auto together = static_cast<std::size_t>(accesses / width);
  TW_ASSERT(width <= 32 && shares.size() % together == 0, "a warp holds its groups");
  const Value parameter = t_.encode_scale ? Value((*t_.encode_scale)(0)) : floor_;
  for (std::size_t j = 0; j < shares.size(); j += together) {
    const auto mine = shares.subspan(j, together);
    const auto elements = numbers.subspan(j, together);
    Var largest(f32, 0.0f);
    for (const Fragment& access : elements)
      largest = larger(largest, largest_magnitude(access));
    const Value of_group = warp_reduce(largest, larger, width);
    write_group(mine, elements, mine.front().column % group == 0,
                GroupCodes::of_largest(config_.coding, config_.division, of_group, parameter));
  }
}

/// `starts`: the thread has the group's first element.
void QuantWriter::write_group(std::span<const rows::RowShare> shares,
                              std::span<const Fragment> numbers, const Value& starts,
                              const GroupCodes& codes) const {
  const rows::RowShare& first = shares.front();
  const ScaleLayout layout = config_.coding.layout;
  const std::int64_t groups_n = config_.groups_of_row();
  if_(first.inside && starts, [&] {
    const Value group = first.column / static_cast<int>(config_.group);
    scale_element(layout, *t_.scales, t_.scale ? constant(s32, 0) : first.row, group) =
        codes.stored();
    if (padded_groups(layout, groups_n) == groups_n) return;
    if_(group == static_cast<int>(groups_n) - 1,
        [&] { pad_groups(layout, *t_.scales, first.row, groups_n); });
  });
  for (std::size_t j = 0; j < shares.size(); ++j) {
    store_if(shares[j].inside, (*t_.q)(shares[j].row, shares[j].column), codes(numbers[j].to(f32)));
  }
}

void QuantWriter::pad(const Value& row_count, const Value& thread) const {
  pad_rows(config_.coding.layout, *t_.scales, row_count, thread, config_.groups_of_row());
}

}  // namespace tilewright
