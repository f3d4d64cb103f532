// SPDX-License-Identifier: Apache-2.0
// The table of the references.
#include "bench/maths/reference.h"

#include "tilewright/error.h"

#include <string>

namespace bench {
namespace {

using H = lang::Host<double>;

template <Value (*F)(const Value&)>
Value traced(const Value& x, const Value& /*unused*/) {
  return F(x);
}
template <H (*F)(const H&)>
double host(double x, double /*unused*/) {
  return F(x).v;
}
template <H (*F)(const H&, const H&)>
double host2(double x, double y) {
  return F(x, y).v;
}

namespace r = reference;

// clang-format off
constexpr Reference kReferences[] = {
    {"acos", traced<r::acos<Value>>, host<r::acos<H>>},
    {"asin", traced<r::asin<Value>>, host<r::asin<H>>},
    {"atan", traced<r::atan<Value>>, host<r::atan<H>>},
    {"atan2", r::atan2<Value>, host2<r::atan2<H>>},
    {"cbrt", traced<r::cbrt<Value>>, host<r::cbrt<H>>},
    {"cos", traced<lang::cos_f64<Value>>, host<lang::cos_f64<H>>},
    {"cosh", traced<r::cosh<Value>>, host<r::cosh<H>>},
    {"erf", traced<r::erf<Value>>, host<r::erf<H>>},
    {"erfc", traced<r::erfc<Value>>, host<r::erfc<H>>},
    {"exp", traced<lang::exp_f64<Value>>, host<lang::exp_f64<H>>},
    {"exp2", traced<r::exp2<Value>>, host<r::exp2<H>>},
    {"expm1", traced<r::expm1<Value>>, host<r::expm1<H>>},
    {"fmod", r::fmod<Value>, host2<r::fmod<H>>},
    {"hypot", r::hypot<Value>, host2<r::hypot<H>>},
    {"lgamma", traced<r::lgamma<Value>>, host<r::lgamma<H>>},
    {"log", traced<lang::log_f64<Value>>, host<lang::log_f64<H>>},
    {"log1p", traced<r::log1p<Value>>, host<r::log1p<H>>},
    {"log2", traced<r::log2<Value>>, host<r::log2<H>>},
    {"pow", r::pow<Value>, host2<r::pow<H>>},
    {"rsqrt", traced<r::rsqrt<Value>>, host<r::rsqrt<H>>},
    {"sigmoid", traced<r::sigmoid<Value>>, host<r::sigmoid<H>>},
    {"sin", traced<lang::sin_f64<Value>>, host<lang::sin_f64<H>>},
    {"sinh", traced<r::sinh<Value>>, host<r::sinh<H>>},
    {"tan", traced<r::tan<Value>>, host<r::tan<H>>},
    {"tanh", traced<r::tanh<Value>>, host<r::tanh<H>>},
};
// clang-format on

}  // namespace

const Reference& reference_of(std::string_view name) {
  for (const Reference& reference : kReferences) {
    if (reference.name == name) return reference;
  }
  throw tilewright::Error(tilewright::ErrorKind::internal,
                          "no reference for " + std::string(name) + "; add it to the table");
}

}  // namespace bench
