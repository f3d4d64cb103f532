// SPDX-License-Identifier: Apache-2.0
// The f64 functions on a device give the bits that the host's operations give.
#include "lang/maths_gamma_f64.h"
#include "lang/maths_power_f64.h"
#include "lang/maths_trig_f64.h"
#include "run_fixture.h"
#include "tilewright/math.h"

#include <bit>
#include <cmath>
#include <random>

namespace tilewright {
namespace {

using test::Data;
using H = lang::Host<double>;

Value cube_root(const Arg& x) { return pow(x, constant(f64, 1 / 3.0)); }
H cube_root_on_host(const H& x) { return lang::pow_f64<H>(x, 1 / 3.0); }

class MathF64 : public test::RunTest {};

TEST_F(MathF64, AgreesWithTheHostBitForBit) {
  struct Row {
    const char* name;
    Value (*traced)(const Arg&);
    H (*host)(const H&);
  };
  constexpr Row kRows[] = {
      {"exp", exp, lang::exp_f64<H>},          {"log", log, lang::log_f64<H>},
      {"sin", sin, lang::sin_f64<H>},          {"cos", cos, lang::cos_f64<H>},
      {"lgamma", lgamma, lang::lgamma_f64<H>}, {"pow", cube_root, cube_root_on_host}};
  std::mt19937_64 random(4);
  Data x(f64, {1024});
  for (std::uint64_t& bits : x.bits)  // half of them of ordinary size
    bits =
        random() % 2 == 0
            ? random()
            : std::bit_cast<std::uint64_t>(std::ldexp(static_cast<double>(random() % 20000), -8));
  for (const Row& row : kRows) {
    Data y(f64, {1024});
    run(
        {.threads = 256, .grid = {4}},
        [&](const Tensor& in, const Tensor& out) {
          Value i = block_idx().x * 256 + thread_idx().x;
          out(i) = row.traced(in(i).load());
        },
        x, y);
    for (std::size_t i = 0; i < x.bits.size(); ++i) {
      double expected = row.host(H(std::bit_cast<double>(x.bits[i]))).v;
      auto got = std::bit_cast<double>(y.bits[i]);
      EXPECT_TRUE(std::isnan(expected) ? std::isnan(got)
                                       : std::bit_cast<std::uint64_t>(expected) == y.bits[i])
          << row.name << " of " << std::bit_cast<double>(x.bits[i]) << ": " << got;
    }
  }
}

}  // namespace
}  // namespace tilewright
