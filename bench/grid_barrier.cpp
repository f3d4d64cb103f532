// SPDX-License-Identifier: Apache-2.0
// Measures a barrier of all blocks on one block a multiprocessor, by events: the difference of two
// launches that pass it a different number of times. Skips itself where there is no GPU.
#include "tilewright/grid_barrier.h"

#include "tilewright/array.h"
#include "tilewright/buffer.h"
#include "tilewright/compile.h"
#include "tilewright/control.h"
#include "tilewright/stream.h"

#include <benchmark/benchmark.h>
#include <vector>

namespace tilewright {
namespace {

constexpr int kFew = 100;
constexpr int kMany = 1100;

/// Passes the barrier `count` times.
PreparedLaunch barriers(const Device& device, int threads, int count, const View& counter) {
  TensorArg arg = tensor_arg(counter);
  auto body = [&](const Tensor& word) {
    GridBarrier grid(word(0));
    for_(Arg(count), [&](const Value&) { grid.sync(); });
  };
  Traced traced =
      trace({.name = "barriers", .target = device.target(), .block = {threads, 1, 1}}, body, arg);
  Parameters parameters;
  pack(parameters, arg, counter);
  return compile(device, std::move(traced))
      .prepare({.grid = {device.properties().sm_count, 1, 1},
                .block = {threads, 1, 1},
                .cooperative = true},
               parameters);
}

void grid_barrier(benchmark::State& state) {
  if (Device::cuda_count() == 0) return state.SkipWithError("no GPU");
  Device device = Device::open("cuda:0");
  Stream stream(device);
  auto threads = static_cast<int>(state.range(0));
  const std::uint32_t zero = 0;
  Buffer counter = upload(device, std::span<const std::uint32_t>(&zero, 1));
  View view = make_view(counter.address(), u32, std::vector<std::int64_t>{1});
  PreparedLaunch few = barriers(device, threads, kFew, view);
  PreparedLaunch many = barriers(device, threads, kMany, view);
  Event start(device);
  Event middle(device);
  Event end(device);
  for (auto _ : state) {
    start.record(stream);
    few.launch(stream);
    middle.record(stream);
    many.launch(stream);
    end.record(stream);
    end.synchronize();
    double few_ms = elapsed_ms(start, middle);
    double many_ms = elapsed_ms(middle, end);
    state.SetIterationTime((many_ms - few_ms) / (kMany - kFew) * 1e-3);
  }
  state.counters["blocks"] = device.properties().sm_count;
}
BENCHMARK(grid_barrier)
    ->Arg(128)
    ->Arg(256)
    ->Arg(1024)
    ->UseManualTime()
    ->Iterations(50)
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace tilewright
