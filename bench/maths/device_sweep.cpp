// SPDX-License-Identifier: Apache-2.0
// The kernel of a sweep: every thread keeps the worst of its inputs, atomics the worst of all.
#include "bench/maths/device_sweep.h"

#include "bench/maths/inputs.h"
#include "bench/maths/reference.h"
#include "test/ulp.h"

#include <bit>
#include <string>

namespace bench {

namespace tw = tilewright;

namespace {

constexpr int kThreads = 256;

struct Findings {
  tw::Value ulp;  // f64
  tw::Value steps;
};

/// test::ulp_error() and test::f32_steps() as traced code.
Findings findings(const tw::Value& got, const tw::Value& exact) {
  constexpr double kInf = reference::kInf;
  tw::Value nearest = exact.to(tw::f32);
  tw::Value wide = got.to(tw::f64);
  tw::Value sign_differs = ((got.bitcast(tw::u32) ^ nearest.bitcast(tw::u32)) >> 31) != 0u;
  tw::Value exponent = ((exact.bitcast(tw::s64) >> 52) & 2047).to(tw::s32) - 1023;
  tw::Value clamped = tw::max(tw::min(exponent, 127), -126);
  tw::Value scale = ((1023 + 23 - clamped).to(tw::s64) << 52).bitcast(tw::f64);
  tw::Value exact_sign = tw::select(exact < 0.0, -0x1p+128, tw::constant(tw::f64, 0x1p+128));
  tw::Value value = tw::select(tw::abs(wide) == kInf, exact_sign, wide);
  tw::Value distance = tw::abs(value - exact) * scale;
  tw::Value wrong = tw::abs(exact) == kInf || sign_differs || (exact == 0.0 && got != 0.0f);
  tw::Value inexact = tw::select(wrong, kInf, distance);
  tw::Value same_infinity = tw::abs(nearest.to(tw::f64)) == kInf && got == nearest;
  tw::Value number = tw::select(same_infinity, 0.0, inexact);
  tw::Value is_nan = exact != exact, got_nan = got != got;
  tw::Value mismatch = tw::select(is_nan && got_nan, tw::constant(tw::f64, 0.0), kInf);
  auto order = [](const tw::Value& x) {
    tw::Value bits = x.bitcast(tw::s32);
    return tw::select(bits < 0, -(bits & 0x7fffffff), bits).to(tw::s64);
  };
  tw::Value between = tw::abs(order(got) - order(nearest));
  return {tw::select(is_nan || got_nan, mismatch, number),
          tw::select(is_nan || got_nan, 0, between)};
}

/// Inputs first + i stride for i = thread, thread + threads, ... below count.
struct Sweep {
  const tw::MathFunction& function;

  void operator()(const tw::Tensor& out, const tw::Value& first, const tw::Value& stride,
                  const tw::Value& count) const {
    const Reference& reference = reference_of(function.name);
    tw::Value thread = (tw::block_idx().x * kThreads + tw::thread_idx().x).to(tw::s64);
    tw::Value threads = tw::grid_dim().x.to(tw::s64) * kThreads;
    tw::Var worst(tw::u64, 0), most_steps(tw::s64, 0), beyond(tw::u64, 0);
    tw::for_(thread, count, threads, [&](const tw::Value& i) {
      tw::Value n = first + i.to(tw::u64) * stride;
      auto pair = bits_of(n);
      tw::Value x = pair.x.bitcast(tw::f32), y = pair.y.bitcast(tw::f32);
      Findings found =
          findings(function.traced(x, y), reference.traced(x.to(tw::f64), y.to(tw::f64)));
      // The error's bits order as it does; below them the input's index.
      tw::Value error = found.ulp.to(tw::f32).bitcast(tw::u32).to(tw::u64);
      tw::Value key = (error << 32) | i.to(tw::u32).to(tw::u64);
      worst = tw::max(worst, key);
      most_steps = tw::max(most_steps, found.steps);
      tw::Value much = found.ulp > function.bound_ulp;
      beyond += tw::select(much, tw::constant(tw::u64, 1), 0);
    });
    tw::red_max(out(0), worst);
    tw::red_max(out(1), tw::Value(most_steps).to(tw::u64));
    tw::red_add(out(2), beyond);
  }

 private:
  PairBits<tw::Value> bits_of(const tw::Value& n) const {
    if (function.arguments == 2) return pair_of<tw::Value>(n);
    tw::Value bits = n.to(tw::u32);
    return {bits, bits};
  }
};

tw::Kernel compile_sweep(const tw::Device& device, const tw::MathFunction& function) {
  const std::int64_t shape[] = {3};
  tw::TensorArg out = tw::tensor_arg(tw::make_view(0, tw::u64, shape));
  out.alignment_bytes = 16;
  tw::TraceOptions options{.name = std::string("maths_sweep_") + std::string(function.name),
                           .target = device.target(),
                           .block = {kThreads, 1, 1}};
  tw::ScalarArg word{tw::u64, {}};
  tw::ScalarArg count{tw::s64, {1, 0, std::int64_t{1} << 40}};
  return tw::compile(device, tw::trace(options, Sweep{function}, out, word, word, count));
}

}  // namespace

Worst sweep_on_device(const tw::Device& device, const tw::MathFunction& function,
                      const Inputs& inputs) {
  tw::Kernel kernel = compile_sweep(device, function);
  tw::Stream stream(device);
  tw::Buffer out(device, 3 * std::int64_t{8});
  out.fill(std::byte{0});
  tw::Parameters parameters;
  parameters.add(out.address()).add(inputs.first).add(inputs.stride).add(inputs.count);
  int blocks = std::max(1, device.properties().sm_count * 8);
  kernel.launch({.grid = {blocks}, .block = {kThreads}}, parameters, stream);
  stream.synchronize();
  auto found = tw::download<std::uint64_t>(out);

  std::uint64_t n = inputs.first + (found[0] & 0xffffffffu) * inputs.stride;
  Worst worst;
  worst.x = std::bit_cast<float>(static_cast<std::uint32_t>(n));
  if (function.arguments == 2) {
    auto bits = pair_of<lang::Host<std::uint64_t>>(n);
    worst.x = std::bit_cast<float>(bits.x.v), worst.y = std::bit_cast<float>(bits.y.v);
  }
  worst.got = function.host(worst.x, worst.y);
  worst.ulp = static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(found[0] >> 32)));
  worst.steps = static_cast<std::int64_t>(found[1]);
  worst.inputs = inputs.count;
  worst.beyond_bound = found[2];
  return worst;
}

}  // namespace bench
