// SPDX-License-Identifier: Apache-2.0
// Problems that the tests of moe_dispatch share.
#pragma once

#include "tilewright/array.h"

namespace tilewright {

struct DispatchProblem {
  std::int64_t tokens = 13, k = 4, experts = 16, h = 40;
  Type type = bf16;
};

/// Experts of each token, in an order of no meaning; about one in nine is skipped.
inline Array dispatch_ids(const DispatchProblem& p, std::uint64_t seed = 1) {
  std::vector<double> ids;
  for (std::int64_t choice = 0; choice < p.tokens * p.k; ++choice) {
    auto token = static_cast<std::uint64_t>(choice / p.k);
    auto k = static_cast<std::uint64_t>(choice % p.k);
    std::uint64_t hash = (token + 1) * seed * 0x9e3779b97f4a7c15U >> 40;
    std::uint64_t id = (hash + k * 7) % static_cast<std::uint64_t>(p.experts);
    ids.push_back((hash + k) % 9 == 0 ? -1 : static_cast<double>(id));
  }
  return make_array("ids", s32, {p.tokens, p.k}, ids);
}

/// A row of `values` for each of the tokens.
inline Array dispatch_ids(std::int64_t tokens, const std::vector<double>& values) {
  auto k = static_cast<std::int64_t>(values.size()) / tokens;
  return make_array("ids", s32, {tokens, k}, values);
}

}  // namespace tilewright
