// SPDX-License-Identifier: Apache-2.0
// The gates of Kimi Delta Attention: the decay of a key channel and the strength of a correction.
#pragma once

#include "tilewright/fragment.h"
#include "tilewright/value.h"

#include <optional>

namespace tilewright {
class Arguments;
}

namespace tilewright::kda {

/// With a lower bound L (the safe gate) a channel's log decay is L sigmoid(A u), without one
/// -A softplus(u); u = a + dt_bias, A = e^A_log.
struct GateOptions {
  std::optional<float> lower_bound = {};
  float softplus_beta = 1.0f;
  float softplus_threshold = 20.0f;  ///< softplus(u) is u where softplus_beta u is beyond it
};

/// Those of the options lower_bound (none: a word), softplus_beta and softplus_threshold.
GateOptions gate_options(const Arguments& arguments);

/// The options as parameters of a kernel.
struct GateParameters {
  Value lower_bound, softplus_beta, softplus_threshold;
};

/// 1 / (1 + e^-x), 0 and 1 at the infinities: approximate instructions, 2 ulp.
Value sigmoid_approx(const Value& x);

/// e^A_log, factor 2^exponent, by approximate instructions. The exponent is 0 as long as f32 holds
/// the rate; beyond (A_log > 87) a product with a small number may still be an ordinary one.
struct GateRate {
  Value factor, exponent;
  Value power;  ///< 2^exponent, 2^126 where it is more: any f32 number but 0 becomes a large one
};
GateRate gate_rate(const Value& a_log);
GateRate rate_of_one();

/// The decay factors e^g of channels with u = `u` (f32).
Fragment decay_factors(const Fragment& u, const GateRate& rate, bool safe, const GateParameters& p);

/// e^-rate, for a decay that is the same for all tokens.
Value fixed_decay(const Value& rate);

/// e^g of log decays g.
Fragment decay_factors(const Fragment& g);

/// The log decay g on the host, in double.
double log_decay(double u, double a_log, const GateOptions& options);

}  // namespace tilewright::kda
