// SPDX-License-Identifier: Apache-2.0
// Whether given decay factors stay where chunks can take them.
#pragma once

#include "tilewright/operator.h"

#include <cstdint>
#include <span>
#include <string_view>

namespace tilewright {

/// Decays that an input gives as they are: `name` has [..., columns], a row a token.
struct GivenDecays {
  std::string_view name;
  bool logs = false;         ///< of the factors
  std::int64_t columns = 1;  ///< of a token
  std::int64_t tokens = 0;   ///< of a sequence, without cu_seqlens
  int chunk = 0;             ///< tokens of a chunk; 0: token by token, where any factor will do
};

/// Chunks are computed in f16: predictions from a state that has rows of 128 numbers up to 2^8, and
/// so a length below 2^11.5, reach 2^16 where a decay has grown by more. Throws if factors above 1
/// of successive tokens of a chunk multiply to more than kMostGrowth.
void check_growth(const Arguments& arguments, std::span<const Array> inputs,
                  const GivenDecays& decays);

inline constexpr double kMostGrowth = 16;

}  // namespace tilewright
