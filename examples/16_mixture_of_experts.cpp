// SPDX-License-Identifier: Apache-2.0
// Lesson 16: operators from C++, on your memory and stream. A layer of a mixture of experts.
//
//   logits -- moe_topk --> ids, weights              two experts of each token
//   x, ids -- moe_dispatch --> x_perm, slot          rows by expert: what a grouped product takes
//   x_perm -- experts --> y                          here expert e multiplies by e + 1
//   y, slot, weights -- moe_combine --> out          the weighted sum, back in the tokens' order
#include "kernels/moe_combine/moe_combine.h"
#include "kernels/moe_dispatch/moe_dispatch.h"
#include "kernels/moe_topk/moe_topk.h"
#include "tilewright/tilewright.h"

#include <cmath>
#include <cstdio>
#include <span>
#include <vector>

namespace tw = tilewright;

constexpr std::int64_t kTokens = 24, kExperts = 8, kChosen = 2, kWidth = 64;
constexpr std::int64_t kRows = kTokens * kChosen;

/// A tensor of 32-bit elements.
struct Placed {
  Placed(const tw::Device& device, tw::Type type, std::vector<std::int64_t> shape)
      : memory(device, tw::element_count(shape) * 4),
        view(tw::make_view(memory.address(), type, shape)) {}
  tw::Buffer memory;
  tw::View view;
};

/// A block has a row; with blocks of one row, block_expert names the expert of each.
void experts(const tw::Tensor& x_perm, const tw::Tensor& expert_of, const tw::Tensor& y) {
  tw::Value row = tw::block_idx().x;
  tw::Value factor = (expert_of(row).load() + 1).to(tw::f32);
  y(row, tw::thread_idx().x) = x_perm(row, tw::thread_idx().x) * factor;
}

std::vector<float> numbers(std::int64_t count, unsigned seed) {
  std::vector<float> values;
  for (unsigned i = 0; i < count; ++i)
    values.push_back(static_cast<float>((i * seed + i * i % 37) % 101) / 101.0f);
  return values;
}

bool is_right(const std::vector<float>& x, const Placed& ids, const Placed& weights,
              const Placed& out) {
  auto chosen = tw::download<std::int32_t>(ids.memory);
  auto shares = tw::download<float>(weights.memory), result = tw::download<float>(out.memory);
  bool right = true;
  for (std::size_t i = 0; i < result.size(); ++i) {
    double factor = 0;
    for (std::size_t k = i / kWidth * kChosen, n = 0; n < kChosen; ++k, ++n)
      factor += double{shares[k]} * (chosen[k] + 1);
    right &= std::abs(double{result[i]} - double{x[i]} * factor) < 1e-5;  // at most 8, in f32
  }
  return right;
}

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  tw::Stream stream(device);
  Placed logits(device, tw::f32, {kTokens, kExperts}), x(device, tw::f32, {kTokens, kWidth});
  Placed ids(device, tw::s32, {kTokens, kChosen}), weights(device, tw::f32, {kTokens, kChosen});
  Placed x_perm(device, tw::f32, {kRows, kWidth}), y(device, tw::f32, {kRows, kWidth});
  Placed counts(device, tw::s32, {kExperts}), offsets(device, tw::s32, {kExperts + 1});
  Placed slot(device, tw::s32, {kRows}), expert_of(device, tw::s32, {kRows});
  Placed total_rows(device, tw::s32, {1}), out(device, tw::f32, {kTokens, kWidth});
  auto tokens = numbers(kTokens * kWidth, 7), router = numbers(kTokens * kExperts, 29);
  x.memory.upload(std::as_bytes(std::span(tokens)));
  logits.memory.upload(std::as_bytes(std::span(router)));
  // Operators allocate nothing: a dispatch gets a workspace, zeroed once for all its launches.
  tw::MoeDispatchOptions dispatch{.experts = kExperts};
  tw::Buffer workspace(device, tw::moe_dispatch_workspace_bytes(dispatch));
  workspace.fill(std::byte{0});
  tw::TensorArg rows_arg = tw::tensor_arg(y.view), expert_arg = tw::tensor_arg(expert_of.view);
  tw::Kernel kernel = tw::compile(
      device, tw::trace({.name = "experts", .target = device.target(), .block = {kWidth, 1, 1}},
                        experts, rows_arg, expert_arg, rows_arg));
  tw::Parameters parameters;
  tw::pack(parameters, rows_arg, x_perm.view);
  tw::pack(parameters, expert_arg, expert_of.view);
  tw::pack(parameters, rows_arg, y.view);
  auto layer = [&] {
    tw::moe_topk(stream, {.logits = logits.view, .ids = ids.view, .weights = weights.view},
                 {.k = kChosen});
    tw::moe_dispatch(stream,
                     {.x = x.view,
                      .ids = ids.view,
                      .x_perm = x_perm.view,
                      .counts = counts.view,
                      .offsets = offsets.view,
                      .slot = slot.view,
                      .block_expert = expert_of.view,
                      .total_rows = total_rows.view},
                     dispatch, {workspace.address(), workspace.size_bytes()});
    kernel.launch({.grid = {kRows}, .block = {kWidth}}, parameters, stream);
    tw::moe_combine(stream,
                    {.y = y.view, .slot = slot.view, .weights = weights.view, .out = out.view});
  };
  layer();  // makes the kernels; from here on a layer only launches, and a graph can hold it
  tw::Graph graph = tw::Graph::capture(stream, layer);
  graph.launch(stream);
  stream.synchronize();
  for (const auto& finding : device.findings())
    std::printf("%s\n", to_string(finding).c_str());
  bool right = is_right(tokens, ids, weights, out) && device.findings().empty();
  std::printf("a layer of experts is %s on %s\n", right ? "right" : "WRONG", device.id().c_str());
  return right ? 0 : 1;
}

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "emu:sm_90a");
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
