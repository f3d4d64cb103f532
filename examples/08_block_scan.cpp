// SPDX-License-Identifier: Apache-2.0
// Lesson 8: a scan. Element i of the result is the sum of elements 0 to i, by all threads at once.
//
//   x                1  2  3  4 | 5  6  7  8        (two warps of four lanes)
//   in a warp        1  3  6 10 | 5 11 18 26        shuffles over distances 1, 2, 4, ...
//   warps' totals    10, 26  ->  0, 10              scanned by the first warp
//   result           1  3  6 10 | 15 21 28 36       and the carry of the elements before
#include "tilewright/tilewright.h"

#include <cstdio>
#include <span>
#include <vector>

namespace tw = tilewright;

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;

// begin kernel
/// The sum over this lane and those below it. After the step of distance d a lane has the sum of
/// itself and 2 d - 1 lanes below.
tw::Value warp_scan(const tw::Value& x) {
  tw::Var sum(x);
  for (int distance = 1; distance < 32; distance *= 2) {
    tw::Value below = tw::shuffle_up(sum, distance);
    sum += tw::select(tw::lane_idx() >= distance, below, 0);
  }
  return sum;
}

void block_scan(const tw::Tensor& x, const tw::Tensor& sums) {
  tw::Tensor totals = tw::shared(tw::s32, tw::Layout(tw::Shape{kWarps}));
  tw::Value count = tw::to_value(x.shape()[0].value());
  tw::Value thread = tw::thread_idx().x;

  // What the block does is the same for all its threads, so that barriers may stand in the loop: a
  // loop from 0 by constant steps shows that, one that begins at the thread's index would not.
  tw::Var carry(tw::s32, 0);
  tw::for_(0, count, kThreads, [&](const tw::Value& begin) {
    tw::Value i = begin + thread;
    tw::Value inside = i < count;
    tw::Value in_warp = warp_scan(tw::load_if(inside, x(i), 1)[0]);
    tw::if_(tw::lane_idx() == 31, [&] { totals(tw::warp_idx()) = in_warp; });
    tw::barrier();

    // One warp scans the totals in place: each becomes the sum of itself and those before.
    tw::if_(tw::warp_idx() == 0, [&] {
      tw::Value has_total = tw::lane_idx() < kWarps;
      tw::Value scanned = warp_scan(tw::load_if(has_total, totals(tw::lane_idx()), 1)[0]);
      tw::if_(has_total, [&] { totals(tw::lane_idx()) = scanned; });
    });
    tw::barrier();

    tw::Var before(tw::s32, carry);
    tw::if_(tw::warp_idx() > 0, [&] { before += totals(tw::warp_idx() - 1).load(); });
    tw::if_(inside, [&] { sums(i) = before + in_warp; });
    carry += totals(kWarps - 1).load();
    tw::barrier();  // before the next round writes the totals
  });
}
// end kernel

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  constexpr int kCount = 1000;  // four rounds, the last one ragged
  std::vector<std::int32_t> x(kCount);
  std::vector<std::int32_t> right(kCount);
  for (int i = 0, sum = 0; i < kCount; ++i) {
    x[static_cast<std::size_t>(i)] = i * 37 % 101 - 50;
    right[static_cast<std::size_t>(i)] = sum += x[static_cast<std::size_t>(i)];
  }

  tw::Buffer x_memory = tw::upload(device, std::span<const std::int32_t>(x));
  tw::Buffer sums_memory(device, x_memory.size_bytes());
  const std::int64_t shape[] = {kCount};
  tw::View x_view = tw::make_view(x_memory.address(), tw::s32, shape);
  tw::View sums_view = tw::make_view(sums_memory.address(), tw::s32, shape);
  tw::TensorArg x_arg = tw::tensor_arg(x_view, {.extents = 1});
  tw::TensorArg sums_arg = tw::tensor_arg(sums_view, {.extents = 1});
  tw::TraceOptions options{
      .name = "block_scan", .target = device.target(), .block = {kThreads, 1, 1}};
  tw::Kernel kernel = tw::compile(device, tw::trace(options, block_scan, x_arg, sums_arg));
  tw::Parameters parameters;
  tw::pack(parameters, x_arg, x_view);
  tw::pack(parameters, sums_arg, sums_view);
  tw::Stream stream(device);
  kernel.launch({.grid = {1}, .block = {kThreads}}, parameters, stream);
  stream.synchronize();

  for (const tw::emu::Diagnostic& finding : device.findings())
    std::printf("%s\n", to_string(finding).c_str());
  bool same = tw::download<std::int32_t>(sums_memory) == right;
  std::printf("block_scan: %d sums are %s on %s, %zu findings\n", kCount, same ? "right" : "WRONG",
              device.id().c_str(), device.findings().size());
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
