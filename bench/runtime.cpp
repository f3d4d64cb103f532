// SPDX-License-Identifier: Apache-2.0
// Measures the runtime's promises: cache hits, bundles, cold specialisation, and launches beside
// the bare driver call. Those that need a GPU skip themselves where there is none.
#include "runtime/cuda_driver.h"
#include "runtime/process.h"
#include "tilewright/buffer.h"
#include "tilewright/cache.h"

#include <benchmark/benchmark.h>
#include <chrono>
#include <optional>
#include <string>

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr const char* kFrontKey =
    "rms_norm v1 x=bf16(?,4096):(?{div=8},1) align=16 w=bf16(4096):(1) eps=1e-06 warps=4 rows=1";
const ptx::Target kSm90a{90, 'a'};

/// A kernel of about `instructions` that the assembler cannot shorten; `seed` makes the text new.
KernelSource long_kernel(int instructions, int seed) {
  std::string text =
      ".version 8.0\n.target sm_90a\n.address_size 64\n"
      ".visible .entry chain(.param .u64 data)\n{\n"
      "  .reg .u64 %rd<2>; .reg .u32 %r<3>;\n"
      "  ld.param.u64 %rd1, [data];\n  ld.global.u32 %r1, [%rd1];\n  mov.u32 %r2, " +
      std::to_string(seed) + ";\n";
  for (int i = 0; i < instructions; i += 2) {
    text += "  mad.lo.u32 %r1, %r1, %r2, " + std::to_string(i + 3) + ";\n";
    text += "  xor.b32 %r2, %r2, %r1;\n";
  }
  return {
      .ptx = text + "  st.global.u32 [%rd1], %r2;\n  ret;\n}\n", .entry = "chain", .metadata = {}};
}

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

constexpr int kBundleKernels = 100;

std::string bundle_key(int i) { return std::string(kFrontKey) + " seed=" + std::to_string(i); }

/// A bundle of kernels of 500 instructions.
std::string write_kernels(const detail::TemporaryDirectory& directory) {
  std::vector<BundleKernel> kernels;
  for (int i = 0; i < kBundleKernels; ++i) {
    const KernelSource source = long_kernel(500, i);
    kernels.push_back({.front_key = bundle_key(i),
                       .entry = source.entry,
                       .target = kSm90a,
                       .options = canonical_text({}),
                       .recipe = "",
                       .problem = "",
                       .assembled = tilewright::assemble(source.ptx, kSm90a),
                       .launch = {},
                       .parameter_bytes = 8});
  }
  const std::string path = directory.file("kernels.twb");
  write_bundle(path, kernels);
  return path;
}

/// From a file of 100 kernels to a cache that takes kernels from it.
void bundle_open(benchmark::State& state) {
  if (!have_assembler()) {
    state.SkipWithError(why_no_assembler().c_str());
    return;
  }
  const detail::TemporaryDirectory directory;
  const std::string path = write_kernels(directory);
  for (auto _ : state) {
    KernelCache cache({.directory = {}, .disk = false});
    const Bundle bundle = Bundle::open(path);
    cache.add(bundle);
    if (bundle.size() != kBundleKernels) state.SkipWithError("the bundle lacks kernels");
  }
}
BENCHMARK(bundle_open)->Unit(benchmark::kMicrosecond)->Iterations(200);  // one call: it assembles

/// The mean of the first uses of all kernels of the bundle: on a GPU found, checked and loaded,
/// elsewhere found and checked.
void bundle_first_use(benchmark::State& state) {
  if (!have_assembler()) {
    state.SkipWithError(why_no_assembler().c_str());
    return;
  }
  const detail::TemporaryDirectory directory;
  const Bundle bundle = Bundle::open(write_kernels(directory));
  KernelCache cache({.directory = {}, .disk = false, .compile = CompileMode::refused});
  cache.add(bundle);
  auto trace = [](ptx::LineInfo) { return long_kernel(500, 0); };
  const bool on_gpu = Device::cuda_count() > 0;
  std::optional<Device> context;  // kept, or every fresh device would make a new one
  if (on_gpu) context = Device::open("cuda:0");
  for (auto _ : state) {
    std::optional<Device> fresh;
    if (on_gpu) fresh = Device::open("cuda:0");  // has no kernels in memory
    Clock::time_point start = Clock::now();
    for (int i = 0; i < kBundleKernels; ++i) {
      if (on_gpu) {
        benchmark::DoNotOptimize(cache.get(*fresh, bundle_key(i), trace));
      } else {
        benchmark::DoNotOptimize(bundle.kernel(bundle.find(bundle_key(i), kSm90a, {})));
      }
    }
    state.SetIterationTime(seconds_since(start) / kBundleKernels);
  }
}
BENCHMARK(bundle_first_use)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(50);

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
