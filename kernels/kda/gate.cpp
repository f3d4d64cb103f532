// SPDX-License-Identifier: Apache-2.0
// Decay factors and strengths, traced and in double.
#include "kernels/kda/gate.h"

#include "kernels/rows/row_schema.h"
#include "tilewright/inline_ptx.h"
#include "tilewright/math.h"

#include <cmath>

namespace tilewright::kda {
namespace {

constexpr float kLog2E = 0x1.715476p+0f;

/// max(s, 0) + log1p(e^-|s|), over beta; never evaluates e^s of a large s.
Value softplus(const Value& u, const GateParameters& p) {
  Value s = u * p.softplus_beta;
  Value small = exp2_approx(abs(s) * -kLog2E);
  Value soft = (max(s, 0.0f) + log1p(small)) / p.softplus_beta;
  return select(s > p.softplus_threshold, u, soft);
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

Value gate_rate(const Value& a_log) { return exp2_approx(a_log * kLog2E); }

Fragment decay_factors(const Fragment& u, const Value& rate, bool safe, const GateParameters& p) {
  return map(u, [&](const Value& each) {
    Value g = safe ? p.lower_bound * sigmoid_approx(each * rate) : -rate * softplus(each, p);
    return exp2_flushed(g * kLog2E);
  });
}

Fragment decay_factors(const Fragment& g) {
  return map(g, [](const Value& each) { return exp2_approx(each * kLog2E); });
}

double log_decay(double u, double a_log, const GateOptions& options) {
  double rate = std::exp(a_log);
  if (options.lower_bound) return *options.lower_bound / (1 + std::exp(-rate * u));
  double beta = options.softplus_beta;
  double s = beta * u;
  if (s > options.softplus_threshold) return -rate * u;
  return -rate * (std::max(s, 0.0) + std::log1p(std::exp(-std::fabs(s)))) / beta;
}

}  // namespace tilewright::kda
