// SPDX-License-Identifier: Apache-2.0
// Decay factors and strengths, traced and in double.
#include "kernels/kda/gate.h"

#include "kernels/rows/row_schema.h"
#include "tilewright/inline_ptx.h"
#include "tilewright/math.h"

#include <algorithm>
#include <cmath>

namespace tilewright::kda {
namespace {

constexpr float kLog2E = 0x1.715476p+0f;
constexpr float kMostExponent =
    126;  // of a gate's rate; 2^126 times the least number is near 2^-23

/// max(s, 0) + log1p(e^-|s|), over beta; never evaluates e^s of a large s. Times the rate's power
/// of two: where that is not 1, log1p(x) is either x, which takes the power in its exponent, or so
/// large that the rate's factor alone makes the decay 0.
Value softplus(const Value& u, const GateRate& rate, const GateParameters& p) {
  Value s = u * p.softplus_beta;
  Value exponent = fma(abs(s), -kLog2E, rate.exponent);
  Value small = exp2_approx(select(exponent > 0.0f, constant(f32, 0.0f), exponent));
  Value soft = (max(s, 0.0f) + log1p(small)) / p.softplus_beta;
  return select(s > p.softplus_threshold, u * rate.power, soft);
}

// Subnormal results and arguments count as zeros: a decay or an activation below 2^-126 is lost in
// any state that it meets, and the instructions are three times as many without.
Value exp2_flushed(const Value& x) {
  return inline_ptx("ex2.approx.ftz.f32 $0, $1;", {f32}, {x})[0];
}

Value rcp_flushed(const Value& x) {
  return inline_ptx("rcp.approx.ftz.f32 $0, $1;", {f32}, {x})[0];
}

}  // namespace

GateOptions gate_options(const Arguments& arguments) {
  return {.lower_bound = optional_real(arguments, "lower_bound"),
          .softplus_beta = static_cast<float>(arguments.real("softplus_beta")),
          .softplus_threshold = static_cast<float>(arguments.real("softplus_threshold"))};
}

Value sigmoid_approx(const Value& x) { return rcp_flushed(exp2_flushed(x * -kLog2E) + 1.0f); }

GateRate gate_rate(const Value& a_log) {
  Value exponent = a_log * kLog2E;
  Value large = exponent > kMostExponent;  // not of a NaN, which stays one
  Value rest = select(large, exponent - kMostExponent, constant(f32, 0.0f));
  Value factor = exp2_approx(select(large, constant(f32, kMostExponent), exponent));
  return {factor, rest, exp2_approx(min(rest, kMostExponent))};
}

GateRate rate_of_one() {
  Value one = constant(f32, 1.0f);
  return {one, constant(f32, 0.0f), one};
}

Fragment decay_factors(const Fragment& u, const GateRate& rate, bool safe,
                       const GateParameters& p) {
  return map(u, [&](const Value& each) {
    Value g = safe ? p.lower_bound * sigmoid_approx(each * rate.factor * rate.power)
                   : -rate.factor * softplus(each, rate, p);
    return exp2_flushed(g * kLog2E);
  });
}

Value fixed_decay(const Value& rate) { return exp2_approx(-rate * kLog2E); }

Fragment decay_factors(const Fragment& g) {
  return map(g, [](const Value& each) { return exp2_approx(each * kLog2E); });
}

double log_decay(double u, double a_log, const GateOptions& options) {
  double rate = std::exp(std::min(a_log, 700.0));  // more gives the same, but infinity times 0
  if (options.lower_bound) return *options.lower_bound / (1 + std::exp(-rate * u));
  double beta = options.softplus_beta;
  double s = beta * u;
  if (s > options.softplus_threshold) return -rate * u;
  if (s < -40) return -std::exp(a_log + s) / beta;  // log1p(e^s) is e^s to the last bit
  return -rate * (std::max(s, 0.0) + std::log1p(std::exp(-std::fabs(s)))) / beta;
}

}  // namespace tilewright::kda
