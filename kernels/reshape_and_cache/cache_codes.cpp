// SPDX-License-Identifier: Apache-2.0
// Codes of caches: checks, and their making on device and host.
#include "kernels/reshape_and_cache/cache_codes.h"

#include "kernels/quantize/group_codes.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace tilewright {

void check_cache_codes(const View& in, const View& cache, const std::optional<View>& scale,
                       const CacheNames& names, const rows::Caller& caller) {
  const bool fp8 = cache.type == e4m3 || cache.type == e5m2;
  if (cache.type != in.type && !(fp8 && rows::is_real_type(in.type))) {
    caller.refuse(std::string(names.cache) + " has type " + std::string(name(cache.type)) +
                  "; it must be e4m3, e5m2 or " + std::string(names.in) + "'s type " +
                  std::string(name(in.type)));
  }
  if (!scale) return;
  const std::string what = std::string(names.scale) + " is " + to_string(*scale);
  const bool fits = scale->type == f32 && scale->rank == 1 &&
                    (scale->shape[0] == 1 || scale->shape[0] == in.shape[1]);
  if (!fits)
    caller.refuse(what + "; it must be f32[1] or f32[" + std::to_string(in.shape[1]) + "]");
  if (cache.type == in.type) {
    caller.refuse(what + ", but the cache has " + std::string(names.in) +
                  "'s type, whose bits are copied");
  }
  rows::check_apart(*scale, names.scale, cache, names.cache, caller);
}

std::vector<Fragment> cache_codes(const std::vector<Fragment>& elements,
                                  const std::optional<Tensor>& scale, const Value& head,
                                  Type type) {
  std::vector<Fragment> wide, codes;
  for (const Fragment& each : elements)
    wide.push_back(each.to(f32));
  if (scale) {
    const bool per_head = scale->shape()[0].value().value() > 1;
    Value divisor = (*scale)(per_head ? head : constant(s32, 0));
    return Quotient(Division::exact, divisor).codes(wide, type);
  }
  for (const Fragment& each : wide)
    codes.push_back(each.to(type));
  return codes;
}

// Conversions to eight bits saturate, infinities too, and keep NaN.
double cache_number(double x, double scale, Type type) {
  const float quotient = static_cast<float>(x) / static_cast<float>(scale);
  const float largest = type == e4m3 ? 448.0f : 57344.0f;
  return static_cast<double>(std::isnan(quotient) ? quotient
                                                  : std::clamp(quotient, -largest, largest));
}

}  // namespace tilewright
