// SPDX-License-Identifier: Apache-2.0
// The maths functions as the language has them: types checked, lines attributed to the caller.
#include "tilewright/math.h"

#include "lang/maths_arc.h"
#include "lang/maths_erf.h"
#include "lang/maths_exp.h"
#include "lang/maths_f64.h"
#include "lang/maths_gamma.h"
#include "lang/maths_gamma_f64.h"
#include "lang/maths_log.h"
#include "lang/maths_power.h"
#include "lang/maths_power_f64.h"
#include "lang/maths_trig.h"
#include "lang/maths_trig_f64.h"
#include "lang/tracer.h"

#include <string>

namespace tilewright {
namespace {

using lang::Tracer;

Value operand_f32(const Arg& x, const char* what) {
  Value value = x.is_literal() ? x.as(f32, what) : x.value();
  if (value.type() != f32) {
    throw Error(ErrorKind::user,
                std::string(what) + ": not defined for " + std::string(name(value.type())) +
                    "; it takes f32: convert with .to(f32)",
                x.at());
  }
  return value;
}

template <class F>
Value unary(const Arg& x, const char* what, F function) {
  Tracer& tracer = Tracer::current(what, x.at());
  Tracer::AttributeTo line(tracer, x.at());
  Value operand = operand_f32(x, what);
  return function(operand);
}

template <class F>
Value binary(const Arg& x, const Arg& y, const char* what, F function) {
  Tracer& tracer = Tracer::current(what, x.at());
  Tracer::AttributeTo line(tracer, x.at());
  Value first = operand_f32(x, what);
  Value second = operand_f32(y, what);
  return function(first, second);
}

bool is_f64(const Arg& x) { return !x.is_literal() && x.value().type() == f64; }

}  // namespace

Value exp(const Arg& x) {
  if (!is_f64(x)) return unary(x, "exp", lang::exp_f32<Value>);
  Tracer::AttributeTo line(Tracer::current("exp", x.at()), x.at());
  return lang::exp_f64(x.value());
}
Value log(const Arg& x) {
  if (!is_f64(x)) return unary(x, "log", lang::log_f32<Value>);
  Tracer::AttributeTo line(Tracer::current("log", x.at()), x.at());
  return lang::log_f64(x.value());
}
Value exp2(const Arg& x) {
  return unary(x, "exp2", [](const Value& v) { return exp2_approx(v); });
}
Value rsqrt(const Arg& x) {
  return unary(x, "rsqrt", [](const Value& v) { return rsqrt_approx(v); });
}

Value expm1(const Arg& x) { return unary(x, "expm1", lang::expm1_f32<Value>); }
Value log2(const Arg& x) { return unary(x, "log2", lang::log2_f32<Value>); }
Value log1p(const Arg& x) { return unary(x, "log1p", lang::log1p_f32<Value>); }
Value cbrt(const Arg& x) { return unary(x, "cbrt", lang::cbrt_f32<Value>); }
Value sin(const Arg& x) {
  if (!is_f64(x)) return unary(x, "sin", lang::sin_f32<Value>);
  Tracer::AttributeTo line(Tracer::current("sin", x.at()), x.at());
  return lang::sin_f64(x.settled());
}
Value cos(const Arg& x) {
  if (!is_f64(x)) return unary(x, "cos", lang::cos_f32<Value>);
  Tracer::AttributeTo line(Tracer::current("cos", x.at()), x.at());
  return lang::cos_f64(x.settled());
}
Value tan(const Arg& x) { return unary(x, "tan", lang::tan_f32<Value>); }
Value asin(const Arg& x) { return unary(x, "asin", lang::asin_f32<Value>); }
Value acos(const Arg& x) { return unary(x, "acos", lang::acos_f32<Value>); }
Value atan(const Arg& x) { return unary(x, "atan", lang::atan_f32<Value>); }
Value sinh(const Arg& x) { return unary(x, "sinh", lang::sinh_f32<Value>); }
Value cosh(const Arg& x) { return unary(x, "cosh", lang::cosh_f32<Value>); }
Value tanh(const Arg& x) { return unary(x, "tanh", lang::tanh_f32<Value>); }
Value erf(const Arg& x) { return unary(x, "erf", lang::erf_f32<Value>); }
Value erfc(const Arg& x) { return unary(x, "erfc", lang::erfc_f32<Value>); }
Value lgamma(const Arg& x) {
  if (!is_f64(x)) return unary(x, "lgamma", lang::lgamma_f32<Value>);
  Tracer::AttributeTo line(Tracer::current("lgamma", x.at()), x.at());
  return lang::lgamma_f64(x.settled());
}
Value sigmoid(const Arg& x) { return unary(x, "sigmoid", lang::sigmoid_f32<Value>); }

Value pow(const Arg& x, const Arg& y) {
  if (!is_f64(x) && !is_f64(y)) return binary(x, y, "pow", lang::pow_f32<Value>);
  Tracer::AttributeTo line(Tracer::current("pow", x.at()), x.at());
  return lang::pow_f64(x.as(f64, "pow"), y.as(f64, "pow"));
}
Value atan2(const Arg& y, const Arg& x) { return binary(y, x, "atan2", lang::atan2_f32<Value>); }
Value hypot(const Arg& x, const Arg& y) { return binary(x, y, "hypot", lang::hypot_f32<Value>); }
Value fmod(const Arg& x, const Arg& y) { return binary(x, y, "fmod", lang::fmod_f32<Value>); }

Value silu(const Arg& x) {
  return unary(x, "silu", [](const Value& v) { return v * lang::sigmoid_f32(v); });
}
Value relu(const Arg& x) {
  return unary(x, "relu", [](const Value& v) { return max(v, 0.0f, NanMode::propagate); });
}
Value gelu(const Arg& x) {
  return unary(x, "gelu", [](const Value& v) {
    constexpr float kHalfRoot = 0x1.6a09e6p-1f;  // sqrt(1/2)
    Value half = v * 0.5f;
    return fma(half, lang::erf_f32<Value>(v * kHalfRoot), half);
  });
}
Value gelu_tanh(const Arg& x) {
  return unary(x, "gelu_tanh", [](const Value& v) {
    constexpr float kLinear = 0x1.988454p-1f;  // sqrt(2 / pi)
    constexpr float kCubic = 0x1.2444f2p-5f;   // 0.044715 sqrt(2 / pi)
    Value inner = v * fma(v * v, kCubic, kLinear);
    Value half = v * 0.5f;
    return fma(half, lang::tanh_f32<Value>(inner), half);
  });
}

}  // namespace tilewright
