// SPDX-License-Identifier: Apache-2.0
// Elements in a cache of another type than theirs: e4m3 or e5m2, by the scale of their head.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/fragment.h"
#include "tilewright/tensor.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tilewright {

/// What messages call elements, their cache and its scale.
struct CacheNames {
  std::string_view in, cache, scale;
};

/// Refuses a cache that has neither in's type nor one of eight bits for numbers, and a scale that
/// is not one for all or for each of in's heads. `in` is [T, heads, D].
void check_cache_codes(const View& in, const View& cache, const std::optional<View>& scale,
                       const CacheNames& names, const rows::Caller& caller);

/// Elements of a head divided by its scale, 1 where there is none, and rounded, saturating. Traced.
std::vector<Fragment> cache_codes(const std::vector<Fragment>& elements,
                                  const std::optional<Tensor>& scale, const Value& head, Type type);

/// The same on the host, before the rounding.
double cache_number(double x, double scale, Type type);

}  // namespace tilewright
