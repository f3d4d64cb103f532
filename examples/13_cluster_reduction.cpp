// SPDX-License-Identifier: Apache-2.0
// Lesson 13: clusters. Four blocks add up one row: each a quarter, and the first reads the others'
// sums where they stand, in their shared memory. Nothing goes through global memory.
//
//   row        [ quarter 0 | quarter 1 | quarter 2 | quarter 3 ]
//   blocks        rank 0      rank 1      rank 2      rank 3       one cluster
//   shared        [s0]        [s1]        [s2]        [s3]
//                   +-----------+-----------+-----------+          peer(sum, rank)
#include "tilewright/tilewright.h"

#include <cstdio>
#include <span>
#include <vector>

namespace tw = tilewright;

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kCluster = 4;

tw::Value add(const tw::Value& a, const tw::Value& b) { return a + b; }

// begin kernel
/// The block's sum of what its threads have, in its first thread.
tw::Value block_sum(const tw::Value& x) {
  tw::Tensor partial = tw::shared(tw::f32, tw::Layout(tw::Shape{kWarps}));
  tw::Value of_warp = tw::warp_reduce(x, add);
  tw::if_(tw::lane_idx() == 0, [&] { partial(tw::warp_idx()) = of_warp; });
  tw::barrier();
  return tw::reduce(tw::load(partial(0), kWarps), add);
}

void row_sum(const tw::Tensor& x, const tw::Tensor& sums) {
  tw::Value rank = tw::cluster_rank();
  tw::Value row = tw::block_idx().x / kCluster;
  tw::Value columns = tw::to_value(x.shape()[1].value());

  // The blocks of the cluster take turns, a stretch of 128 columns each.
  tw::Var mine(tw::f32, 0);
  tw::for_(rank * kThreads + tw::thread_idx().x, columns, kCluster * kThreads,
           [&](const tw::Value& column) { mine += x(row, column).load(); });

  tw::Tensor sum = tw::shared(tw::f32, tw::Layout(tw::Shape{1}));
  tw::Value of_block = block_sum(mine);
  tw::if_(tw::thread_idx().x == 0, [&] { sum(0) = of_block; });

  // Everybody's sum is there, and every block has begun: only now may peers be read.
  tw::cluster_barrier();
  tw::if_(rank == 0 && tw::thread_idx().x == 0, [&] {
    tw::Var total(tw::f32, 0);
    for (int other = 0; other < kCluster; ++other)
      total += tw::peer(sum, other)(0).load();
    sums(row) = total;
  });
  // A block that ends takes its shared memory along. Leave this out, and the emulator reports it.
  tw::cluster_barrier();
}
// end kernel

int run(const char* device_name) {
  tw::Device device = tw::Device::open(device_name);
  constexpr int kRows = 3;
  constexpr int kColumns = 3001;
  // Small integers, so that every order of adding them is exact.
  std::vector<float> x(static_cast<std::size_t>(kRows) * kColumns);
  std::vector<float> right(kRows);
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<float>(i * 5 % 17) - 8;
    right[i / kColumns] += x[i];
  }

  tw::Buffer x_memory = tw::upload(device, std::span<const float>(x));
  tw::Buffer sums_memory(device, kRows * std::int64_t{sizeof(float)});
  const std::int64_t shape[] = {kRows, kColumns};
  tw::View x_view = tw::make_view(x_memory.address(), tw::f32, shape);
  tw::View sums_view = tw::make_view(sums_memory.address(), tw::f32, std::span(shape).first(1));
  tw::TensorArg x_arg = tw::tensor_arg(x_view, {.extents = 0b11, .strides = 0b01});
  tw::TensorArg sums_arg = tw::tensor_arg(sums_view, {.extents = 1});
  tw::TraceOptions options{.name = "row_sum", .target = device.target(), .block = {kThreads, 1, 1}};
  options.cluster = {kCluster, 1, 1};
  tw::Kernel kernel = tw::compile(device, tw::trace(options, row_sum, x_arg, sums_arg));
  tw::Parameters parameters;
  tw::pack(parameters, x_arg, x_view);
  tw::pack(parameters, sums_arg, sums_view);
  tw::Stream stream(device);
  kernel.launch({.grid = {kRows * kCluster}, .block = {kThreads}, .cluster = {kCluster}},
                parameters, stream);
  stream.synchronize();

  for (const tw::emu::Diagnostic& finding : device.findings())
    std::printf("%s\n", to_string(finding).c_str());
  bool same = tw::download<float>(sums_memory) == right;
  std::printf("row_sum: %d rows are %s on %s, %zu findings\n", kRows, same ? "right" : "WRONG",
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
