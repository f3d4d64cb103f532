// SPDX-License-Identifier: Apache-2.0
// The table of the f32 maths functions.
#include "tilewright/math_functions.h"

#include "lang/maths_arc.h"
#include "lang/maths_erf.h"
#include "lang/maths_exp.h"
#include "lang/maths_gamma.h"
#include "lang/maths_log.h"
#include "lang/maths_power.h"
#include "lang/maths_trig.h"

#include <array>
#include <cmath>

namespace tilewright {
namespace {

using F32 = lang::Host<float>;

template <Value (*F)(const Arg&)>
Value traced(const Arg& x, const Arg& /*unused*/) {
  return F(x);
}
template <F32 (*F)(const F32&)>
float host(float x, float /*unused*/) {
  return F(x).v;
}
template <F32 (*F)(const F32&, const F32&)>
float host2(float x, float y) {
  return F(x, y).v;
}
template <double (*F)(double)>
double exact(double x, double /*unused*/) {
  return F(x);
}
template <double (*F)(double, double)>
double exact2(double x, double y) {
  return F(x, y);
}

double rsqrt_exact(double x) { return 1 / std::sqrt(x); }
double sigmoid_exact(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
F32 exp2_host(const F32& x) { return exp2_approx(x); }
F32 rsqrt_host(const F32& x) { return rsqrt_approx(x); }

constexpr auto kBits = HostAgreement::bits;
constexpr auto kApprox = HostAgreement::approximate;

// clang-format off
constexpr std::array kFunctions = {
    MathFunction{"acos", 1, traced<acos>, host<lang::acos_f32<F32>>, exact<std::acos>, 1.5, 2, kBits},
    MathFunction{"asin", 1, traced<asin>, host<lang::asin_f32<F32>>, exact<std::asin>, 2.45, 2, kBits},
    MathFunction{"atan", 1, traced<atan>, host<lang::atan_f32<F32>>, exact<std::atan>, 2, 2, kBits},
    MathFunction{"atan2", 2, atan2, host2<lang::atan2_f32<F32>>, exact2<std::atan2>, 2.5, 3, kBits},
    MathFunction{"cbrt", 1, traced<cbrt>, host<lang::cbrt_f32<F32>>, exact<std::cbrt>, 0.6, 1, kApprox},
    MathFunction{"cos", 1, traced<cos>, host<lang::cos_f32<F32>>, exact<std::cos>, 2, 2, kBits},
    MathFunction{"cosh", 1, traced<cosh>, host<lang::cosh_f32<F32>>, exact<std::cosh>, 2, 2, kBits},
    MathFunction{"erf", 1, traced<erf>, host<lang::erf_f32<F32>>, exact<std::erf>, 2, 2, kApprox},
    MathFunction{"erfc", 1, traced<erfc>, host<lang::erfc_f32<F32>>, exact<std::erfc>, 4.5, 4, kBits},
    MathFunction{"exp", 1, traced<exp>, host<lang::exp_f32<F32>>, exact<std::exp>, 1.1, 2, kBits},
    MathFunction{"exp2", 1, traced<exp2>, host<exp2_host>, exact<std::exp2>, 2.5, 2, kApprox},
    MathFunction{"expm1", 1, traced<expm1>, host<lang::expm1_f32<F32>>, exact<std::expm1>, 1.45, 1, kBits},
    MathFunction{"fmod", 2, fmod, host2<lang::fmod_f32<F32>>, exact2<std::fmod>, 0, 0, kBits},
    MathFunction{"hypot", 2, hypot, host2<lang::hypot_f32<F32>>, exact2<std::hypot>, 0.51, 3, kBits},
    MathFunction{"lgamma", 1, traced<lgamma>, host<lang::lgamma_f32<F32>>, exact<std::lgamma>, 1.3, 6, kBits},
    MathFunction{"log", 1, traced<log>, host<lang::log_f32<F32>>, exact<std::log>, 1.1, 1, kBits},
    MathFunction{"log1p", 1, traced<log1p>, host<lang::log1p_f32<F32>>, exact<std::log1p>, 1.4, 1, kBits},
    MathFunction{"log2", 1, traced<log2>, host<lang::log2_f32<F32>>, exact<std::log2>, 1.1, 1, kBits},
    MathFunction{"pow", 2, pow, host2<lang::pow_f32<F32>>, exact2<std::pow>, 1.2, 4, kBits},
    MathFunction{"rsqrt", 1, traced<rsqrt>, host<rsqrt_host>, exact<rsqrt_exact>, 2, 2, kApprox},
    MathFunction{"sigmoid", 1, traced<sigmoid>, host<lang::sigmoid_f32<F32>>, exact<sigmoid_exact>, 2.45, -1, kBits},
    MathFunction{"sin", 1, traced<sin>, host<lang::sin_f32<F32>>, exact<std::sin>, 2, 2, kBits},
    MathFunction{"sinh", 1, traced<sinh>, host<lang::sinh_f32<F32>>, exact<std::sinh>, 2, 3, kBits},
    MathFunction{"tan", 1, traced<tan>, host<lang::tan_f32<F32>>, exact<std::tan>, 3.5, 4, kBits},
    MathFunction{"tanh", 1, traced<tanh>, host<lang::tanh_f32<F32>>, exact<std::tanh>, 2, 2, kApprox},
};
// clang-format on

}  // namespace

std::span<const MathFunction> math_functions() { return kFunctions; }

}  // namespace tilewright
