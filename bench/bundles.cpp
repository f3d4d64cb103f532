// SPDX-License-Identifier: Apache-2.0
// Measures what a serving process waits for: opening a bundle of 100 kernels, and the first use of
// each.
#include "bench/long_kernel.h"
#include "runtime/process.h"
#include "tilewright/bundle.h"
#include "tilewright/cache.h"

#include <benchmark/benchmark.h>
#include <optional>
#include <string>

namespace tilewright {
namespace {

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

}  // namespace
}  // namespace tilewright
