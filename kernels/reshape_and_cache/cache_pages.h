// SPDX-License-Identifier: Apache-2.0
// Paged caches of keys and values in one form, whatever their layout.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/tensor.h"
#include "tilewright/value.h"
#include "tilewright/view.h"

namespace tilewright {

enum class CacheLayout : std::uint8_t {
  nhd,  ///< [pages, page size, heads, D]
  hnd,  ///< [pages, heads, page size, D]
  v0    ///< keys [pages, heads, D / x, page size, x], values [pages, heads, D, page size]
};

/// The cache as [pages, page size, heads, D / x, x], the last mode contiguous. Refuses other ranks
/// than the layout's. `which` is "key_cache" or "value_cache".
View paged(const View& cache, CacheLayout layout, std::string_view which,
           const rows::Caller& caller);
/// A slot is one of both caches, which are paged(), or of none.
void check_same_pages(const View& keys, const View& values, const rows::Caller& caller);

/// Where a token's heads go. Traced.
struct CacheSlot {
  Value page, offset;  ///< s64
  Value exists;        ///< predicate: slot is not negative, and its page is in the cache
  Value beyond;        ///< predicate: the page is not in the cache
};
/// Pre: `cache` is a paged() view's tensor; its page size is static.
CacheSlot cache_slot(const Tensor& cache, const Value& slot);

}  // namespace tilewright
