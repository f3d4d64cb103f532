// SPDX-License-Identifier: Apache-2.0
// Which numbers a sweep evaluates a function at: the same on the host and in a traced kernel.
#pragma once

#include "lang/maths_number.h"

#include <cstdint>

namespace bench {

namespace lang = tilewright::lang;

/// A number spread over 32 bits: the finaliser of splitmix64.
template <class W>
auto scattered(const W& n) {
  W a = (n ^ (n >> 30)) * lang::word64(n, 0xbf58476d1ce4e5b9u);
  W b = (a ^ (a >> 27)) * lang::word64(n, 0x94d049bb133111ebu);
  return lang::to_u32(b >> 32);
}

template <class B>
struct PairBits {
  B x, y;
};

/// Pair number `n` (u64) as bits of two f32, in four strata: any two numbers; x near 1; exponents
/// close to each other; both near 1.
template <class W>
auto pair_of(const W& n) {
  constexpr std::uint32_t kOne = 0x3f800000u, kRest = 0x807fffffu, kExponent = 0x7f800000u;
  auto x = scattered<W>((n << 1) + 1);
  auto y = scattered<W>((n << 1) + 2);
  auto more = scattered<W>(n ^ lang::word64(n, ~std::uint64_t{0}));
  auto stratum = lang::to_u32(n) & 3u;
  auto exponent_near_one = [&](const auto& bits) {
    return ((bits & 15u) << 23) + (kOne - (8u << 23));
  };
  auto x_near = (x & kRest) | (((more & 1u) ^ 127u) << 23);
  auto x_around = (x & kRest) | exponent_near_one(more);
  auto y_close = (y & kRest) | ((x + ((more & 7u) << 23) - (4u << 23)) & kExponent);
  auto y_around = (y & kRest) | exponent_near_one(more >> 4);
  auto x_chosen = select(stratum == 3u, x_around, select(stratum == 1u, x_near, x));
  auto y_chosen = select(stratum == 3u, y_around, select(stratum == 2u, y_close, y));
  return PairBits<decltype(x)>{x_chosen, y_chosen};
}

}  // namespace bench
