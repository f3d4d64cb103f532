// SPDX-License-Identifier: Apache-2.0
// Lesson 7: atomics where they are cheap. Blocks count in shared memory, then add to the result.
//
//   values   . . . . . . . . . . . . . . . .      each thread takes every n-th
//              \ | / \ | /     \ | / \ | /        red.shared: 256 bins in each block
//   blocks    [ bins  0 ] ... [ bins  n ]
//                  \               /              red.global: once a bin and block
//   result        [     bins      ]
#include "tilewright/tilewright.h"

#include <cstdio>
#include <span>
#include <vector>

namespace tw = tilewright;

constexpr int kBins = 256;  // also the threads of a block: one a bin

// begin kernel
void histogram(const tw::Tensor& values, const tw::Tensor& bins) {
  tw::Value thread = tw::thread_idx().x;
  tw::Tensor mine = tw::shared(tw::u32, tw::Layout(tw::Shape{kBins}));
  mine(thread) = 0;  // shared memory begins with any bytes: the emulator reports a read of them
  tw::barrier();

  // The grid strides over the values, however many blocks it has. red_add does not wait for the
  // old count; the block is as far as others must see it.
  tw::Value count = tw::to_value(values.shape()[0].value());
  tw::Value first = tw::block_idx().x * kBins + thread;
  tw::for_(first, count, tw::grid_dim().x * kBins, [&](const tw::Value& i) {
    tw::Value bin = values(i).load().to(tw::s32).assume({1, 0, kBins - 1});
    tw::red_add(mine(bin), 1, {.scope = tw::Scope::cta});
  });
  tw::barrier();

  // Blocks that run at other times add to the same words: atomic on the whole device.
  tw::red_add(bins(thread), mine(thread));
}
// end kernel

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  constexpr int kValues = 10'007;
  constexpr int kBlocks = 6;
  std::vector<std::uint8_t> values(kValues);
  std::vector<std::uint32_t> right(kBins);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::uint8_t>(i * i / 7);
    ++right[values[i]];
  }

  tw::Buffer values_memory = tw::upload(device, std::span<const std::uint8_t>(values));
  // The kernel adds to the bins: somebody has to set them to 0 before each launch.
  tw::Buffer bins_memory =
      tw::upload(device, std::span<const std::uint32_t>(std::vector<std::uint32_t>(kBins)));
  const std::int64_t values_shape[] = {kValues};
  const std::int64_t bins_shape[] = {kBins};
  tw::View values_view = tw::make_view(values_memory.address(), tw::u8, values_shape);
  tw::View bins_view = tw::make_view(bins_memory.address(), tw::u32, bins_shape);

  tw::TensorArg values_arg = tw::tensor_arg(values_view, {.extents = 1});
  tw::TensorArg bins_arg = tw::tensor_arg(bins_view);
  tw::TraceOptions options{.name = "histogram", .target = device.target(), .block = {kBins, 1, 1}};
  tw::Kernel kernel = tw::compile(device, tw::trace(options, histogram, values_arg, bins_arg));
  tw::Parameters parameters;
  tw::pack(parameters, values_arg, values_view);
  tw::pack(parameters, bins_arg, bins_view);
  tw::Stream stream(device);
  kernel.launch({.grid = {kBlocks}, .block = {kBins}}, parameters, stream);
  stream.synchronize();

  for (const tw::emu::Diagnostic& finding : device.findings())
    std::printf("%s\n", to_string(finding).c_str());
  bool same = tw::download<std::uint32_t>(bins_memory) == right;
  std::printf("histogram: %d values are %s on %s, %zu findings\n", kValues,
              same ? "right" : "WRONG", device.id().c_str(), device.findings().size());
  if (!same) return 1;
  return device.findings().empty() ? 0 : 3;
}

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "emu:sm_90a");
  } catch (const tw::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
