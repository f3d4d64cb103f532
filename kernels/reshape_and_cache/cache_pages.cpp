// SPDX-License-Identifier: Apache-2.0
// Views of paged caches, and the place of a slot.
#include "kernels/reshape_and_cache/cache_pages.h"

#include "tilewright/trace.h"

namespace tilewright {
namespace {

constexpr std::int64_t kMaxPageSize = std::int64_t{1} << 20;  // slots

View with_modes(const View& cache, std::array<int, 4> modes) {
  View view = cache;
  view.rank = 5;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto from = static_cast<std::size_t>(modes[i]);
    view.shape[i] = modes[i] < 0 ? 1 : cache.shape[from];
    view.stride[i] = modes[i] < 0 ? 0 : cache.stride[from];
  }
  view.shape[4] = 1;
  view.stride[4] = 1;
  return view;
}

void set_contiguous(View& view, const View& cache) {
  const auto last = static_cast<std::size_t>(cache.rank - 1);
  view.shape[4] = cache.shape[last];
  view.stride[4] = cache.shape[last] > 1 ? cache.stride[last] : 1;
}

const char* shape_text(CacheLayout layout, bool keys) {
  if (layout == CacheLayout::nhd) return "[pages, page size, heads, D]";
  if (layout == CacheLayout::hnd) return "[pages, heads, page size, D]";
  return keys ? "[pages, heads, D / x, page size, x]" : "[pages, heads, D, page size]";
}

}  // namespace

View paged(const View& cache, CacheLayout layout, std::string_view which,
           const rows::Caller& caller) {
  const bool keys = which == "key_cache";
  const bool split_keys = layout == CacheLayout::v0 && keys;
  const std::string what = std::string(which) + " is " + to_string(cache);
  if (cache.rank != (split_keys ? 5 : 4))
    caller.refuse(what + "; its shape must be " + shape_text(layout, keys));
  View view;
  if (layout == CacheLayout::nhd) view = with_modes(cache, {0, 1, 2, -1});
  if (layout == CacheLayout::hnd) view = with_modes(cache, {0, 2, 1, -1});
  if (layout == CacheLayout::v0) view = with_modes(cache, {0, 3, 1, 2});
  if (layout != CacheLayout::v0 || keys) set_contiguous(view, cache);
  if (view.stride[4] != 1) caller.refuse(what + "; its last stride must be 1");
  if (view.shape[1] < 1 || view.shape[1] > kMaxPageSize) {
    caller.refuse(what + "; a page must have 1 to " + std::to_string(kMaxPageSize) + " slots");
  }
  return view;
}

void check_same_pages(const View& keys, const View& values, const rows::Caller& caller) {
  if (keys.shape[0] == values.shape[0] && keys.shape[1] == values.shape[1]) return;
  caller.refuse("key_cache has " + std::to_string(keys.shape[0]) + " pages of " +
                std::to_string(keys.shape[1]) + " tokens and value_cache " +
                std::to_string(values.shape[0]) + " of " + std::to_string(values.shape[1]) +
                "; they must be equal");
}

CacheSlot cache_slot(const Tensor& cache, const Value& slot) {
  const Value page_size = to_value(cache.shape()[1].value()).to(s64);
  const Value at = slot.to(s64);
  const Value page = at / page_size;
  const Value beyond = page >= to_value(cache.shape()[0].value()).to(s64);
  return {page, at % page_size, at >= 0 && !beyond, beyond};
}

}  // namespace tilewright
