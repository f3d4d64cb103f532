// SPDX-License-Identifier: Apache-2.0
// Measures what specialising the library's kernels costs: trace and print, and cold specialisation
// beside the assembler alone on the same text.
#include "examples/wgmma_gemm.h"
#include "kernels/rms_norm/rms_norm.h"
#include "kernels/tile_copy/tile_copy.h"
#include "runtime/process.h"
#include "tilewright/compile.h"
#include "tilewright/module.h"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <string>
#include <variant>

namespace tilewright {
namespace {

using Clock = std::chrono::steady_clock;
constexpr ptx::Target kTarget{90, 'a'};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Addresses are not touched: plans look at their alignment only.
View matrix(std::uint64_t address, Type type, std::int64_t rows, std::int64_t columns) {
  const std::int64_t shape[] = {rows, columns};
  return make_view(address, type, shape);
}

TileCopyPlan copy_plan() {
  DeviceProperties device;
  device.sm_count = 132;
  return plan_tile_copy(device, matrix(1 << 20, f16, 8192, 8192),
                        matrix(std::uint64_t{1} << 40, f16, 8192, 8192));
}

RowNormPlan norm_plan() {
  DeviceProperties device;
  device.sm_count = 132;
  const std::int64_t h[] = {4096};
  return plan_rms_norm(device, {matrix(1 << 20, bf16, 32768, 4096), make_view(1 << 16, bf16, h),
                                matrix(std::uint64_t{1} << 40, bf16, 32768, 4096), std::nullopt});
}

/// Lesson 11's kernel as a plan.
struct GemmPlan : lesson::WgmmaGemm {
  static std::string key() { return "wgmma_gemm"; }
};

std::size_t instructions(const Traced& traced) {
  const auto& body = traced.module().functions.front().body;
  return static_cast<std::size_t>(std::count_if(body.begin(), body.end(), [](const ptx::Stmt& s) {
    return std::holds_alternative<ptx::Instr>(s);
  }));
}

template <class Plan>
void trace_alone(benchmark::State& state, const Plan& plan) {
  std::size_t count = 0;
  for (auto _ : state) {
    Traced traced = plan.trace(kTarget);
    count = instructions(traced);
    benchmark::DoNotOptimize(traced);
  }
  state.counters["instructions"] = static_cast<double>(count);
  state.counters["s_per_instruction"] =
      benchmark::Counter(static_cast<double>(count), benchmark::Counter::kIsIterationInvariantRate |
                                                         benchmark::Counter::kInvert);
}

template <class Plan>
void trace_and_print(benchmark::State& state, const Plan& plan) {
  std::size_t lines = 0;
  for (auto _ : state) {
    KernelSource source = source_of(plan.trace(kTarget), ptx::LineInfo{});
    lines = static_cast<std::size_t>(std::count(source.ptx.begin(), source.ptx.end(), '\n'));
    benchmark::DoNotOptimize(source);
  }
  state.counters["ptx_lines"] = static_cast<double>(lines);
}

/// Interleaved: plan, keys, trace, print, assemble and store, against the assembler alone. A
/// comment makes each text new to both.
template <class MakePlan>
void cold(benchmark::State& state, MakePlan make_plan) {
  if (!have_assembler()) {
    state.SkipWithError(why_no_assembler().c_str());
    return;
  }
  detail::TemporaryDirectory directory;
  KernelCache cache({.directory = directory.file("cache")});
  auto text_of = [&](int seed) {
    KernelSource source = source_of(make_plan().trace(kTarget), ptx::LineInfo{});
    source.ptx += "// " + std::to_string(seed) + "\n";
    return source;
  };
  tilewright::assemble(text_of(0).ptx, kTarget);  // opens the assembler
  double cold_s = 0;
  double alone_s = 0;
  int seed = 0;
  for (auto _ : state) {
    ++seed;
    Clock::time_point start = Clock::now();
    cache.assemble(kTarget, make_plan().key() + std::to_string(seed),
                   [&](ptx::LineInfo) { return text_of(seed); });
    double took_s = seconds_since(start);
    KernelSource source = text_of(-seed);
    start = Clock::now();
    benchmark::DoNotOptimize(tilewright::assemble(source.ptx, kTarget));
    alone_s += seconds_since(start);
    cold_s += took_s;
    state.SetIterationTime(took_s);
  }
  state.counters["of_peer"] = cold_s / alone_s;
}

void trace_and_print_tile_copy(benchmark::State& state) { trace_and_print(state, copy_plan()); }
void trace_and_print_rms_norm(benchmark::State& state) { trace_and_print(state, norm_plan()); }
void trace_rms_norm(benchmark::State& state) { trace_alone(state, norm_plan()); }
void trace_wgmma_gemm(benchmark::State& state) { trace_alone(state, GemmPlan{}); }
void trace_and_print_wgmma_gemm(benchmark::State& state) { trace_and_print(state, GemmPlan{}); }
void cold_wgmma_gemm(benchmark::State& state) {
  cold(state, [] { return GemmPlan{}; });
}
void cold_tile_copy(benchmark::State& state) { cold(state, copy_plan); }
void cold_rms_norm(benchmark::State& state) {
  cold(state, [] { return norm_plan(); });
}
BENCHMARK(trace_and_print_tile_copy)->Unit(benchmark::kMicrosecond);
BENCHMARK(trace_and_print_rms_norm)->Unit(benchmark::kMicrosecond);
BENCHMARK(trace_and_print_wgmma_gemm)->Unit(benchmark::kMicrosecond);
BENCHMARK(trace_rms_norm)->Unit(benchmark::kMicrosecond);
BENCHMARK(trace_wgmma_gemm)->Unit(benchmark::kMicrosecond);
BENCHMARK(cold_wgmma_gemm)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(40);
BENCHMARK(cold_tile_copy)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(40);
BENCHMARK(cold_rms_norm)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(40);

}  // namespace
}  // namespace tilewright
