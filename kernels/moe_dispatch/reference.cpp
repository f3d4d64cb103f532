// SPDX-License-Identifier: Apache-2.0
// Dispatch on the host: count, lay out, place in order, copy.
#include "kernels/moe_dispatch/reference.h"

#include <algorithm>
#include <limits>

namespace tilewright {
namespace {

constexpr double kOpen = std::numeric_limits<double>::quiet_NaN();

struct Placed {
  std::vector<std::int64_t> counts, offsets, slot;
  std::int64_t total() const { return offsets.back(); }
};

Placed place(const MoeDispatchOptions& options, const Array& ids) {
  std::int64_t experts = local_experts(options);
  Placed placed;
  placed.counts.assign(static_cast<std::size_t>(experts), 0);
  std::vector<std::int64_t> expert_of;
  for (double id : to_doubles(ids)) {
    std::int64_t expert = static_cast<std::int64_t>(id) - options.first_expert;
    bool here = expert >= 0 && expert < experts;
    expert_of.push_back(here ? expert : -1);
    if (here) ++placed.counts[static_cast<std::size_t>(expert)];
  }
  placed.offsets.push_back(0);
  for (std::int64_t count : placed.counts) {
    placed.offsets.push_back(placed.offsets.back() +
                             (count + options.block - 1) / options.block * options.block);
  }
  std::vector<std::int64_t> next = placed.offsets;
  for (std::int64_t expert : expert_of)
    placed.slot.push_back(expert < 0 ? -1 : next[static_cast<std::size_t>(expert)]++);
  return placed;
}

/// The rows of `from` by slot. Padding rows are `padding`, rows beyond all experts open.
Array permuted(const std::string& name, const Array& from, const Placed& placed, std::int64_t rows,
               double padding) {
  std::vector<double> in = to_doubles(from);
  std::int64_t columns = from.shape[1];
  std::int64_t k =
      static_cast<std::int64_t>(placed.slot.size()) / std::max<std::int64_t>(from.shape[0], 1);
  std::vector<double> out(static_cast<std::size_t>(rows * columns), kOpen);
  std::fill_n(out.begin(), placed.total() * columns, padding);
  for (std::size_t choice = 0; choice < placed.slot.size(); ++choice) {
    if (placed.slot[choice] < 0) continue;
    auto token = static_cast<std::int64_t>(choice) / k;
    std::copy_n(in.begin() + token * columns, columns, out.begin() + placed.slot[choice] * columns);
  }
  return make_array(name, f64, {rows, columns}, out);
}

void set_integers(HostTensors& tensors, const char* name, const std::vector<std::int64_t>& values) {
  std::vector<double> numbers(values.begin(), values.end());
  tensors.set(make_array(name, s32, {static_cast<std::int64_t>(values.size())}, numbers));
}

/// What atomics decide becomes open; choices without a row stay.
void open_order(HostTensors& tensors) {
  for (const char* name : {"slot", "x_perm", "scales_perm", "sorted_token_ids"}) {
    const Array* array = tensors.find(name);
    if (array == nullptr) continue;
    std::vector<double> values = to_doubles(*array);
    for (double& value : values)
      value = std::string_view(name) == "slot" && value < 0 ? value : kOpen;
    tensors.set(make_array(name, f64, array->shape, values));
  }
}

}  // namespace

void moe_dispatch_reference(const MoeDispatchOptions& options, std::int64_t rows,
                            HostTensors& tensors) {
  Placed placed = place(options, tensors.at("ids"));
  auto choices = static_cast<std::int64_t>(placed.slot.size());
  tensors.set(permuted("x_perm", tensors.at("x"), placed, rows, options.zero_pad ? 0 : kOpen));
  if (const Array* scales = tensors.find("scales"))
    tensors.set(permuted("scales_perm", *scales, placed, rows, decode(scales->type, 0)));
  std::vector<std::int64_t> sorted(static_cast<std::size_t>(rows), choices);
  for (std::int64_t choice = 0; choice < choices; ++choice) {
    std::int64_t row = placed.slot[static_cast<std::size_t>(choice)];
    if (row >= 0) sorted[static_cast<std::size_t>(row)] = choice;
  }
  std::vector<std::int64_t> block_expert(static_cast<std::size_t>(rows / options.block), -1);
  for (std::size_t expert = 0; expert < placed.counts.size(); ++expert) {
    std::int64_t begin = placed.offsets[expert] / options.block;
    std::int64_t end = placed.offsets[expert + 1] / options.block;
    std::fill_n(block_expert.begin() + begin, end - begin, static_cast<std::int64_t>(expert));
  }
  set_integers(tensors, "counts", placed.counts);
  set_integers(tensors, "offsets", placed.offsets);
  set_integers(tensors, "slot", placed.slot);
  set_integers(tensors, "sorted_token_ids", sorted);
  set_integers(tensors, "block_expert", block_expert);
  set_integers(tensors, "total_rows", {placed.total()});
  if (options.order == DispatchOrder::unordered) open_order(tensors);
}

}  // namespace tilewright
