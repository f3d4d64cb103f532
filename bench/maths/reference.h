// SPDX-License-Identifier: Apache-2.0
// The f32 functions in f64, by other methods than theirs: what a sweep on a device holds them
// against. Their own errors are below 0.001 ulp of f32; maths_sweep checks that against the host's
// library.
#pragma once

#include "lang/maths_f64.h"
#include "lang/maths_gamma_f64.h"
#include "lang/maths_power_f64.h"
#include "lang/maths_trig_f64.h"

#include <array>
#include <limits>
#include <optional>
#include <string_view>

namespace bench {

namespace lang = tilewright::lang;
using tilewright::Value;

namespace reference {

using lang::literal;

constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr double kInf = std::numeric_limits<double>::infinity();

/// 1, 1/2!, 1/3!, ... : (e^x - 1) / x
template <std::size_t N>
constexpr std::array<double, N> exponential_series() {
  std::array<double, N> c{1};
  for (std::size_t k = 1; k < N; ++k)
    c[k] = c[k - 1] / static_cast<double>(k + 1);
  return c;
}
/// 1, sign/3, 1/5, sign/7, ... : atan(x) / x or atanh(x) / x in x^2
template <std::size_t N>
constexpr std::array<double, N> odd_series(double sign) {
  std::array<double, N> c{};
  for (std::size_t k = 0; k < N; ++k)
    c[k] = (k % 2 == 0 ? 1 : sign) / static_cast<double>(2 * k + 1);
  return c;
}
constexpr double power_of_two(int n) {
  double power = 1;
  for (int i = 0; i < n; ++i)
    power *= 2;
  return power;
}
/// A number that steps of the trace replace: a Value cannot be assigned.
template <class D>
class Running {
 public:
  explicit Running(const D& first) : now_(first) {}
  void set(const D& next) { now_.emplace(next); }
  const D& operator*() const { return *now_; }

 private:
  std::optional<D> now_;
};
template <class D, std::size_t N>
D polynomial(const D& x, const std::array<double, N>& c) {
  Running<D> sum(literal<D>(c[N - 1]));
  for (std::size_t k = N - 1; k-- > 0;)
    sum.set(fma(*sum, x, literal<D>(c[k])));
  return *sum;
}
template <class D>
D with_sign_of(const D& magnitude, const D& x) {
  return select(lang::as_s64(x) < std::int64_t{0}, -magnitude, magnitude);
}

template <class D>
D expm1(const D& x) {
  D small = select(abs(x) < 0.5, x, literal<D>(0.0));
  return select(abs(x) < 0.5, x * polynomial<D>(small, exponential_series<18>()),
                lang::exp_f64<D>(x) - 1.0);
}
template <class D>
D log2(const D& x) {
  return lang::log_f64<D>(x) * 0x1.71547652b82fep+0;
}
template <class D>
D log1p(const D& x) {
  auto small = abs(x) < 0.25;
  D u = select(small, x / (x + 2.0), literal<D>(0.0));
  return select(small, u * 2.0 * polynomial<D>(u * u, odd_series<12>(1)),
                lang::log_f64<D>(x + 1.0));
}
template <class D>
D exp2(const D& x) {
  return lang::exp_f64<D>(x * lang::kLn2);
}
template <class D>
D tan(const D& x) {
  return lang::sin_f64<D>(x) / lang::cos_f64<D>(x);
}
/// The angle is halved twice, then a series.
template <class D>
D atan(const D& x) {
  D magnitude = abs(x);
  auto steep = magnitude > 1.0;
  Running<D> t(select(steep, literal<D>(1.0) / magnitude, magnitude));
  for (int i = 0; i < 2; ++i)
    t.set(*t / (sqrt(fma(*t, *t, 1.0)) + 1.0));
  D angle = *t * 4.0 * polynomial<D>(*t * *t, odd_series<14>(-1));
  return with_sign_of<D>(select(steep, literal<D>(kPi / 2) - angle, angle), x);
}
template <class D>
D asin(const D& x) {
  return atan<D>(x / sqrt((literal<D>(1.0) - x) * (x + 1.0)));
}
template <class D>
D acos(const D& x) {
  return atan<D>(sqrt((literal<D>(1.0) - x) / (x + 1.0))) * 2.0;
}
template <class D>
D atan2(const D& y, const D& x) {
  D up = abs(y), along = abs(x);
  D ratio = select(up == along, literal<D>(1.0), up / along);
  D angle = atan<D>(select(up == 0.0, literal<D>(0.0), ratio));
  D turned = select(lang::as_s64(x) < std::int64_t{0}, literal<D>(kPi) - angle, angle);
  return select(x != x || y != y, x + y, with_sign_of<D>(turned, y));
}
template <class D>
D sinh(const D& x) {
  D e = expm1<D>(min(abs(x), 700.0));
  return select(x == x, with_sign_of<D>((e + e / (e + 1.0)) * 0.5, x), x);
}
template <class D>
D cosh(const D& x) {
  D e = lang::exp_f64<D>(min(abs(x), 700.0));
  return select(x == x, (e + literal<D>(1.0) / e) * 0.5, x);
}
template <class D>
D tanh(const D& x) {
  D e = expm1<D>(min(abs(x), 350.0) * 2.0);
  return select(x == x, with_sign_of<D>(e / (e + 2.0), x), x);
}
template <class D>
D sigmoid(const D& x) {
  D e = lang::exp_f64<D>(-abs(x));
  return select(x < 0.0, e, literal<D>(1.0)) / (e + 1.0);
}
/// For |x| < 3: 2 / sqrt(pi) e^(-x^2) x (1 + 2 x^2 / 3 (1 + 2 x^2 / 5 (...))).
template <class D>
D erf_by_series(const D& x) {
  constexpr int kTerms = 64;
  D square = x * x;  // exact
  Running<D> sum(literal<D>(1.0));
  for (int n = kTerms; n > 0; --n)
    sum.set(fma(square * (2.0 / (2 * n + 1)), *sum, 1.0));
  return x * *sum * lang::exp_f64<D>(-square) * 0x1.20dd750429b6dp+0;
}
/// For x >= 3: e^(-x^2) / sqrt(pi) / (x + 1/2 / (x + 2/2 / (x + 3/2 / ...))).
template <class D>
D erfc_by_fraction(const D& x) {
  constexpr int kLevels = 50;
  Running<D> above(x), below(literal<D>(1.0));  // of the fraction, from the innermost level out
  for (int n = kLevels; n > 0; --n) {
    D next = fma(*below, n * 0.5, x * *above);
    below.set(*above);
    above.set(next);
  }
  return lang::exp_f64<D>(-(x * x)) * 0x1.20dd750429b6dp-1 * *below / *above;
}
template <class D>
D erfc(const D& x) {
  auto series = abs(x) < 3.0;
  D near = literal<D>(1.0) - erf_by_series<D>(select(series, x, literal<D>(0.0)));
  D far = erfc_by_fraction<D>(min(max(abs(x), 3.0), 30.0));
  D result = select(series, near, select(x < 0.0, literal<D>(2.0) - far, far));
  return select(x == x, result, x);
}
template <class D>
D erf(const D& x) {
  auto series = abs(x) < 3.0;
  D near = erf_by_series<D>(select(series, x, literal<D>(0.0)));
  D far = literal<D>(1.0) - erfc_by_fraction<D>(min(max(abs(x), 3.0), 30.0));
  return select(x == x, select(series, near, with_sign_of<D>(far, x)), x);
}
/// log(gamma(x + 24) / |x (x + 1) ... (x + 23)|) for -12 < x < 0, in double-double, for the zeros.
template <class D>
D lgamma_by_product(const D& x) {
  constexpr int kFactors = 24;
  Running<D> product(x), product_low(literal<D>(0.0));
  for (int i = 1; i < kFactors; ++i) {
    D factor = x + static_cast<double>(i);  // exact where it matters
    D next = *product * factor;
    product_low.set(fma(*product, factor, -next) + *product_low * factor);
    product.set(next);
  }
  auto log = lang::log_double_f64<D>(abs(*product), literal<D>(0.0));
  D y = x + static_cast<double>(kFactors);
  auto log_y = lang::log_double_f64<D>(y, literal<D>(0.0));
  D a = y - 0.5;
  D main = a * log_y.high;
  D main_low = fma(a, log_y.high, -main) + a * log_y.low;
  D inverse = literal<D>(1.0) / y;
  D series = lang::horner(inverse * inverse, lang::kStirlingF64) * inverse;
  constexpr double kHalfLog2Pi = 0x1.d67f1c864beb5p-1, kHalfLog2PiLow = -0x1.65b5a1b7ff5dfp-55;
  D sum = main - y;
  D sum_low = (main - sum) - y;
  D all = sum + kHalfLog2Pi;
  D all_low = (sum - all) + kHalfLog2Pi + kHalfLog2PiLow;
  D result = all - log.high;
  D rest = (all - result) - log.high;
  return result +
         (rest + all_low + sum_low + main_low + series - log.low - *product_low / *product);
}
template <class D>
D lgamma(const D& x) {
  D near = min(max(x, -13.0), 0.0);
  auto zeros = x > -12.0 && x < -1.0 && lang::to_f64(lang::to_s64(near)) != near;
  D inside = select(zeros, x, literal<D>(-1.5));
  D outside = select(zeros, literal<D>(1.0), x);
  return select(zeros, lgamma_by_product<D>(inside), lang::lgamma_f64<D>(outside));
}
template <class D>
D rsqrt(const D& x) {
  return literal<D>(1.0) / sqrt(x);
}
template <class D>
D cbrt(const D& x) {
  D magnitude = abs(x);
  auto plain = magnitude > 0.0 && magnitude < kInf;
  D m = select(plain, magnitude, literal<D>(1.0));
  D root = lang::exp_f64<D>(lang::log_f64<D>(m) * (1.0 / 3.0));
  D square = root * root;
  D better = root - fma(square, root, -m) / (square * 3.0);
  return select(plain, with_sign_of<D>(better, x), x);
}
template <class D>
D hypot(const D& x, const D& y) {
  auto infinite = abs(x) == kInf || abs(y) == kInf;
  return select(infinite, literal<D>(kInf), sqrt(fma(x, x, y * y)));  // x^2 is exact
}
/// Long division, 24 bits of the quotient at a time: all remainders are exact.
template <class D>
D fmod(const D& x, const D& y) {
  auto plain = abs(x) < kInf && y != 0.0 && y == y;
  D divisor = select(plain, abs(y), literal<D>(1.0));
  Running<D> rest(select(plain, abs(x), literal<D>(0.0)));
  for (int step = 11; step >= 0; --step) {
    D scaled = divisor * power_of_two(24 * step);
    D quotient = lang::to_f64(lang::to_s64(*rest / scaled));
    D below = fma(-quotient, scaled, *rest);
    rest.set(select(below < 0.0, below + scaled, below));
  }
  D result = select(abs(y) == kInf, abs(x), *rest);
  return select(plain, with_sign_of<D>(result, x),
                literal<D>(std::numeric_limits<double>::quiet_NaN()));
}
template <class D>
D pow(const D& x, const D& y) {
  return lang::pow_f64<D>(x, y);
}

}  // namespace reference

/// A reference traced and on the host.
struct Reference {
  std::string_view name;
  Value (*traced)(const Value&, const Value&);
  double (*host)(double, double);
};
/// Throws Error(internal) if there is none.
const Reference& reference_of(std::string_view name);

}  // namespace bench
