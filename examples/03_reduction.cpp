// SPDX-License-Identifier: Apache-2.0
// Lesson 3: threads that work together. A block adds up a row: in registers, in warps, in the
// block.
#include "tilewright/tilewright.h"

#include <cstdio>
#include <span>
#include <vector>

namespace tw = tilewright;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// begin kernel
tw::Value add(const tw::Value& a, const tw::Value& b) { return a + b; }

void row_sum(const tw::Tensor& x, const tw::Tensor& sums) {
  tw::Value row = tw::block_idx().x;
  tw::Value columns = tw::to_value(x.shape()[1].value());

  // Each thread adds every 256th element. A Value never changes; what a loop changes is a Var.
  tw::Var sum(tw::f32, 0.0f);
  tw::for_(tw::thread_idx().x, columns, kThreads,
           [&](const tw::Value& column) { sum += x(row, column).load(); });

  // A warp's lanes exchange registers: after five steps each of them has the sum of all 32.
  tw::Value warp_sum = tw::warp_reduce(sum, add);

  // Warps meet in shared memory. Leave the barrier out, and the emulator reports the race with the
  // lines of both accesses.
  tw::Tensor partial = tw::shared(tw::f32, tw::Layout(tw::Shape{kWarps}));
  tw::if_(tw::lane_idx() == 0, [&] { partial(tw::warp_idx()) = warp_sum; });
  tw::barrier();
  tw::if_(tw::thread_idx().x == 0, [&] {
    tw::Fragment all = tw::load(partial(0), kWarps);  // two loads of 16 bytes
    sums(row) = tw::reduce(all, add);
  });
}
// end kernel

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  constexpr int kRows = 5;
  constexpr int kColumns = 1000;
  // Small integers, so that every order of adding them is exact.
  std::vector<float> x(static_cast<std::size_t>(kRows) * kColumns);
  std::vector<float> right(kRows);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i * 7 % 13) - 6;
    right[i / kColumns] += x[i];
  }

  tw::Buffer x_memory = tw::upload(device, std::span<const float>(x));
  tw::Buffer sums_memory(device, kRows * std::int64_t{sizeof(float)});
  const std::int64_t shape[] = {kRows, kColumns};
  tw::View x_view = tw::make_view(x_memory.address(), tw::f32, shape);
  tw::View sums_view = tw::make_view(sums_memory.address(), tw::f32, std::span(shape).first(1));

  // Both extents and the stride of the rows stay parameters: one kernel for every matrix.
  tw::TensorArg x_arg = tw::tensor_arg(x_view, {.extents = 0b11, .strides = 0b01});
  tw::TensorArg sums_arg = tw::tensor_arg(sums_view, {.extents = 1});
  tw::TraceOptions options{.name = "row_sum", .target = device.target(), .block = {kThreads, 1, 1}};
  tw::Kernel kernel = tw::compile(device, tw::trace(options, row_sum, x_arg, sums_arg));
  tw::Parameters parameters;
  tw::pack(parameters, x_arg, x_view);
  tw::pack(parameters, sums_arg, sums_view);
  tw::Stream stream(device);
  kernel.launch({.grid = {kRows}, .block = {kThreads}}, parameters, stream);
  stream.synchronize();

  for (const tw::emu::Diagnostic& finding : device.findings())
    std::printf("%s\n", to_string(finding).c_str());
  if (tw::download<float>(sums_memory) != right) return std::printf("row_sum: WRONG\n"), 1;
  std::printf("row_sum: %d rows are right on %s, %zu findings\n", kRows, device.id().c_str(),
              device.findings().size());
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
