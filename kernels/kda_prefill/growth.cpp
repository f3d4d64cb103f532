// SPDX-License-Identifier: Apache-2.0
// The largest product of successive decays, chunk by chunk.
#include "kernels/kda_prefill/growth.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace tilewright {
namespace {

const Array* find(std::span<const Array> inputs, std::string_view name) {
  for (const Array& input : inputs) {
    if (input.name == name) return &input;
  }
  return nullptr;
}

/// The tokens at which chunks begin anew.
std::vector<std::int64_t> first_tokens(std::span<const Array> inputs, const GivenDecays& decays,
                                       std::int64_t all) {
  std::vector<std::int64_t> first;
  if (const Array* cu_seqlens = find(inputs, "cu_seqlens")) {
    for (double each : to_doubles(*cu_seqlens))
      first.push_back(std::clamp<std::int64_t>(static_cast<std::int64_t>(each), 0, all));
    return first;
  }
  for (std::int64_t at = 0; at <= all && decays.tokens > 0; at += decays.tokens)
    first.push_back(at);
  return first;
}

}  // namespace

void check_growth(const Arguments& arguments, std::span<const Array> inputs,
                  const GivenDecays& decays) {
  const Array* given = find(inputs, decays.name);
  if (given == nullptr || decays.chunk == 0 || decays.columns == 0) return;
  const double most = std::log(kMostGrowth);
  const std::vector<double> values = to_doubles(*given);
  const auto all = static_cast<std::int64_t>(values.size()) / decays.columns;
  const std::vector<std::int64_t> first = first_tokens(inputs, decays, all);
  for (std::size_t n = 0; n + 1 < first.size(); ++n) {
    std::vector<double> growth(static_cast<std::size_t>(decays.columns));  // log of the product
    for (std::int64_t token = first[n]; token < first[n + 1]; ++token) {
      const bool begins = (token - first[n]) % decays.chunk == 0;
      for (std::size_t column = 0; column < growth.size(); ++column) {
        const std::size_t at = static_cast<std::size_t>(token * decays.columns) + column;
        const double log = decays.logs ? values[at] : std::log(values[at]);
        growth[column] = (begins ? 0 : std::max(growth[column], 0.0)) + log;
        if (!(growth[column] > most)) continue;
        arguments.fail(std::string(decays.name) + ": the decay factors up to element " +
                       std::to_string(at) + " multiply to more than 16, which chunks of " +
                       std::to_string(decays.chunk) +
                       " tokens cannot hold; chunk=1 takes any factor");
      }
    }
  }
}

}  // namespace tilewright
