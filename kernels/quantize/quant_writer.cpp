// SPDX-License-Identifier: Apache-2.0
// The groups of a row among its threads, and their codes.
#include "kernels/quantize/quant_writer.h"

#include "kernels/quantize/shared_groups.h"
#include "tilewright/atomic.h"
#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

#include <algorithm>
#include <utility>

namespace tilewright {

void QuantWriter::load_input() {
  for (const std::optional<Tensor>& input : {t_.scale, t_.encode_scale})
    if (input) input_.emplace(load((*input)(0), 1));
}

void QuantWriter::store_input(const Value& mine) {
  if (!t_.scale) return;
  if_(mine, [&] { (*t_.scales)(0, 0) = (*t_.scale)(0).load(); });
  stores_input_ = false;
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
  const std::vector<Fragment> codes = write_scales(part, row, wide, largest_of_row);
  const int step = part.lanes * wide.front().size();
  for (std::size_t j = 0; j < given.numbers.size(); ++j)
    store_if(part.inside[j], row.q(part.column + static_cast<int>(j) * step), codes[j]);
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

std::vector<Fragment> QuantWriter::write_scales(const RowPart& part, const Row& row,
                                                const std::vector<Fragment>& wide,
                                                const std::optional<Value>& largest_of_row) const {
  if (t_.scale || largest_of_row) {
    const GroupCodes whole =
        t_.scale ? GroupCodes::of_scale(config_.coding, config_.division, number(*t_.scale))
                 : of_largest({*largest_of_row}).front();
    if (!t_.scale || stores_input_)
      store_scale(part, row, part.inside.front() && row.starts, row.group, 0, whole);
    return codes_of({whole}, wide);
  }
  const Spread spread = spread_of(part);
  std::vector<Value> largest = largest_in_groups(part, spread);
  // Wider codes save few instructions by it, and may take more registers.
  if (config_.coding.element == e2m1 && largest.size() > 1 && spread.threads > 1)
    return write_scales_by_lanes(part, row, wide, spread, std::move(largest));
  std::vector<Value> of_groups;
  of_groups.reserve(largest.size());
  for (const Value& each : largest)
    of_groups.push_back(warp_reduce(each, larger, spread.threads));
  const std::vector<GroupCodes> groups = of_largest(of_groups);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const Value stores = part.inside[i * spread.accesses] && row.starts;
    store_scale(part, row, stores, row.group, static_cast<int>(i) * spread.distance, groups[i]);
  }
  return codes_of(groups, wide);
}

std::vector<Fragment> QuantWriter::write_scales_by_lanes(const RowPart& part, const Row& row,
                                                         const std::vector<Fragment>& wide,
                                                         const Spread& spread,
                                                         std::vector<Value> largest) const {
  const std::size_t count = largest.size();
  const std::vector<GroupCodes> own =
      of_largest(largest_by_lanes(std::move(largest), spread.threads));
  const int apart = spread.threads * spread.distance;  // of a thread's own groups
  const Value lane = lane_idx() % spread.threads;
  const Value group = (row.group + lane * spread.distance).to(u32);  // not negative: shifts divide
  for (std::size_t i = 0; i < own.size(); ++i) {
    const int first = static_cast<int>(i) * spread.threads;
    const int further = static_cast<int>(i) * apart;
    const int left = std::max(0, static_cast<int>(config_.groups_of_row()) - further);
    const Value stores =
        part.inside.front() && lane < static_cast<int>(count) - first && group < left;
    store_scale(part, row, stores, group, further, own[i]);
  }
  return codes_of(GroupCodes::of_lanes(own, spread.threads, count), wide);
}

QuantWriter::Spread QuantWriter::spread_of(const RowPart& part) const {
  const int threads = threads_of_group(part);
  const int accesses = accesses_of_group(part) / threads;
  TW_ASSERT(threads <= 32 && part.numbers.size() % static_cast<std::size_t>(accesses) == 0,
            "a warp holds its groups");
  const int step = part.lanes * part.numbers.front().size();  // between accesses
  return {static_cast<std::size_t>(accesses), threads,
          accesses * step / static_cast<int>(config_.group)};
}

std::vector<Value> QuantWriter::largest_in_groups(const RowPart& part, const Spread& spread) const {
  std::vector<Value> of_groups;
  for (std::size_t j = 0; j < part.numbers.size(); j += spread.accesses) {
    Var largest(magnitude_of(part, j));
    for (std::size_t i = 1; i < spread.accesses; ++i)
      largest = larger(largest, magnitude_of(part, j + i));
    of_groups.emplace_back(largest);
  }
  return of_groups;
}

std::vector<GroupCodes> QuantWriter::of_largest(const std::vector<Value>& largest) const {
  return GroupCodes::of_largest(config_.coding, config_.division, largest,
                                t_.encode_scale ? number(*t_.encode_scale) : floor_);
}

void QuantWriter::store_scale(const RowPart& part, const Row& row, const Value& stores,
                              const Value& group, int further, const GroupCodes& codes) const {
  const ScaleLayout layout = config_.coding.layout;
  Fragment stored(t_.scales->type(), 1);
  stored[0] = codes.stored();
  store_if(stores, scale_in_row(layout, row.scales, group, further), stored);
  if (t_.saturated) if_(stores && codes.saturates(), [&] { red_add((*t_.saturated)(0), 1); });
  const std::int64_t groups_n = config_.groups_of_row();
  if (padded_groups(layout, groups_n) != groups_n) {
    if_(stores && group + further == static_cast<int>(groups_n) - 1,
        [&] { pad_groups(layout, *t_.scales, part.row, groups_n); });
  }
}

void QuantWriter::pad(const Value& row_count, const Value& thread) const {
  pad_rows(config_.coding.layout, *t_.scales, row_count, thread, config_.groups_of_row());
}

}  // namespace tilewright
