// SPDX-License-Identifier: Apache-2.0
// Tokens into pages on the host, element by element, in the layouts' own coordinates.
#include "kernels/reshape_and_cache/reference.h"

#include "kernels/reshape_and_cache/cache_codes.h"

#include <algorithm>

namespace tilewright {
namespace {

struct Place {
  std::int64_t page, offset, head, d;
};

std::int64_t page_size_of(const Array& cache, CacheLayout layout) {
  if (layout == CacheLayout::nhd) return cache.shape[1];
  if (layout == CacheLayout::hnd) return cache.shape[2];
  return cache.shape[3];
}

/// The element's number in row-major order.
std::int64_t element_at(const Array& cache, CacheLayout layout, const Place& at) {
  const std::vector<std::int64_t>& s = cache.shape;
  switch (layout) {
    case CacheLayout::nhd:
      return ((at.page * s[1] + at.offset) * s[2] + at.head) * s[3] + at.d;
    case CacheLayout::hnd:
      return ((at.page * s[1] + at.head) * s[2] + at.offset) * s[3] + at.d;
    case CacheLayout::v0:
      break;
  }
  if (s.size() == 4) return ((at.page * s[1] + at.head) * s[2] + at.d) * s[3] + at.offset;
  const std::int64_t chunk = at.d / s[4];
  return (((at.page * s[1] + at.head) * s[2] + chunk) * s[3] + at.offset) * s[4] + at.d % s[4];
}

Array written(const Array& in, const Array& cache, const std::vector<double>& slots,
              const Array* scale, CacheLayout layout) {
  const std::vector<double> elements = to_doubles(in);
  const std::vector<double> scales = scale == nullptr ? std::vector<double>{1} : to_doubles(*scale);
  std::vector<double> out = to_doubles(cache);
  const bool converts = in.type != cache.type;
  const std::int64_t size = page_size_of(cache, layout), heads = in.shape[1], d = in.shape[2];
  for (std::size_t t = 0; t < slots.size(); ++t) {
    const auto slot = static_cast<std::int64_t>(slots[t]);
    if (slot < 0 || slot >= cache.shape[0] * size) continue;
    for (std::int64_t i = 0; i < heads * d; ++i) {
      const double s = scales[scales.size() == 1 ? 0 : static_cast<std::size_t>(i / d)];
      const double x =
          elements[t * static_cast<std::size_t>(heads * d) + static_cast<std::size_t>(i)];
      const std::int64_t at = element_at(cache, layout, {slot / size, slot % size, i / d, i % d});
      out[static_cast<std::size_t>(at)] = converts ? cache_number(x, s, cache.type) : x;
    }
  }
  return make_array(cache.name, cache.type, cache.shape, out);
}

}  // namespace

void reshape_and_cache_reference(CacheLayout layout, HostTensors& tensors) {
  const std::vector<double> slots = to_doubles(tensors.at("slot_mapping"));
  const Array& keys = tensors.at("key_cache");
  const std::int64_t limit = keys.shape[0] * page_size_of(keys, layout);
  if (const Array* skipped = tensors.find("skipped")) {
    auto beyond = [&](double slot) { return slot >= static_cast<double>(limit); };
    const double count = to_doubles(*skipped).front() +
                         static_cast<double>(std::count_if(slots.begin(), slots.end(), beyond));
    tensors.set(make_array("skipped", u32, {1}, std::vector<double>{count}));
  }
  Array key_cache = written(tensors.at("key"), keys, slots, tensors.find("k_scale"), layout);
  Array value_cache = written(tensors.at("value"), tensors.at("value_cache"), slots,
                              tensors.find("v_scale"), layout);
  tensors.set(std::move(key_cache));
  tensors.set(std::move(value_cache));
}

}  // namespace tilewright
