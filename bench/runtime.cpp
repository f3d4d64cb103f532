// SPDX-License-Identifier: Apache-2.0
// Measures the runtime's promises: cache hits, cold specialisation, and launches beside the bare
// driver call. Those that need a GPU skip themselves where there is none.
#include "bench/long_kernel.h"
#include "runtime/cuda_driver.h"
#include "runtime/process.h"
#include "tilewright/buffer.h"
#include "tilewright/cache.h"

#include <benchmark/benchmark.h>
#include <optional>
#include <string>

namespace tilewright {
namespace {

Device first_device() { return Device::open(Device::cuda_count() > 0 ? "cuda:0" : "emu:sm_90a"); }

void memory_hit(benchmark::State& state) {
  KernelCache cache({.directory = {}, .disk = false});
  Device device = first_device();
  auto trace = [](ptx::LineInfo) { return long_kernel(10, 1); };
  cache.get(device, kFrontKey, trace);
  for (auto _ : state) {
    benchmark::DoNotOptimize(cache.get(device, kFrontKey, trace));
  }
}
BENCHMARK(memory_hit);

/// Front key to machine code from disk, checks included; on a GPU also loaded.
void disk_hit(benchmark::State& state) {
  detail::TemporaryDirectory directory;
  KernelCache cache({.directory = directory.file("cache")});
  auto trace = [](ptx::LineInfo) { return long_kernel(500, 1); };
  if (!have_assembler()) {
    state.SkipWithError(why_no_assembler().c_str());
    return;
  }
  bool on_gpu = Device::cuda_count() > 0;
  std::optional<Device> context;  // kept, or every fresh device would make a new one
  if (on_gpu) context = Device::open("cuda:0");
  if (!on_gpu) cache.assemble(kSm90a, kFrontKey, trace);
  if (on_gpu) cache.get(Device::open("cuda:0"), kFrontKey, trace);
  for (auto _ : state) {
    if (on_gpu) {
      Device fresh = Device::open("cuda:0");  // has no kernels in memory
      Clock::time_point start = Clock::now();
      Kernel kernel = cache.get(fresh, kFrontKey, trace);
      state.SetIterationTime(seconds_since(start));
    } else {
      Clock::time_point start = Clock::now();
      benchmark::DoNotOptimize(cache.assemble(kSm90a, kFrontKey, trace));
      state.SetIterationTime(seconds_since(start));
    }
  }
  state.counters["traced_again"] =
      static_cast<double>(cache.counters().assembled + cache.counters().ptx_hits - 1);
}
BENCHMARK(disk_hit)->UseManualTime()->Unit(benchmark::kMicrosecond);

/// Interleaved: trace, keys, assemble and store, against the same assembler on the same text.
void cold_specialisation(benchmark::State& state) {
  detail::TemporaryDirectory directory;
  KernelCache cache({.directory = directory.file("cache")});
  if (!have_assembler()) {
    state.SkipWithError(why_no_assembler().c_str());
    return;
  }
  double cold_s = 0;
  double alone_s = 0;
  int seed = 0;
  tilewright::assemble(long_kernel(500, 0).ptx, kSm90a);  // opens the assembler
  for (auto _ : state) {
    ++seed;
    Clock::time_point start = Clock::now();
    cache.assemble(kSm90a, "chain " + std::to_string(seed),
                   [&](ptx::LineInfo) { return long_kernel(500, seed); });
    double cold = seconds_since(start);
    KernelSource source = long_kernel(500, seed);
    start = Clock::now();
    tilewright::assemble(source.ptx, kSm90a);
    alone_s += seconds_since(start);
    cold_s += cold;
    state.SetIterationTime(cold);
  }
  state.counters["of_peer"] = cold_s / alone_s;
}
BENCHMARK(cold_specialisation)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(40);

constexpr int kBatch = 64;  // launches between two waits, so that the queue never fills

/// Mean seconds of one of kBatch calls.
template <typename Launch>
double time_batch(const Stream& stream, Launch launch) {
  Clock::time_point start = Clock::now();
  for (int i = 0; i < kBatch; ++i)
    launch();
  double each_s = seconds_since(start) / kBatch;
  stream.synchronize();
  return each_s;
}

/// Interleaved: a prepared launch, and the driver's call with the same kernel and parameters.
void prepared_launch(benchmark::State& state) {
  if (Device::cuda_count() == 0) {
    state.SkipWithError("needs a GPU");
    return;
  }
  Device device = Device::open("cuda:0");
  const cuda::Driver& driver = cuda::driver();
  Buffer buffer(device, 4);
  Stream stream(device);
  KernelSource source = long_kernel(2, 1);
  Kernel kernel = load_ptx(device, source.ptx, source.entry);
  PreparedLaunch prepared = kernel.prepare({}, Parameters().add(buffer.address()));

  cuda::Context context = nullptr;
  cuda::check(driver.primary_retain(&context, 0), "cuDevicePrimaryCtxRetain", {}, {});
  {
    cuda::Scope current(driver, context);
    cuda::Module module = nullptr;
    cuda::Function function = nullptr;
    cuda::check(driver.module_load(&module, source.ptx.c_str(), 0, nullptr, nullptr),
                "cuModuleLoadDataEx", {}, {});
    cuda::check(driver.module_function(&function, module, source.entry.c_str()),
                "cuModuleGetFunction", {}, {});
    cuda::LaunchConfig config;
    config.stream = static_cast<cuda::Stream>(stream.handle());
    DeviceAddress address = buffer.address();
    void* parameters[] = {&address};
    double prepared_s = 0;
    double bare_s = 0;
    for (auto _ : state) {
      double each_s = time_batch(stream, [&] { prepared.launch(stream); });
      bare_s += time_batch(stream, [&] { driver.launch(&config, function, parameters, nullptr); });
      prepared_s += each_s;
      state.SetIterationTime(each_s);
    }
    state.counters["of_peer"] = prepared_s / bare_s;
    driver.module_unload(module);
  }
  driver.primary_release(0);
}
BENCHMARK(prepared_launch)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(2000);

}  // namespace
}  // namespace tilewright
