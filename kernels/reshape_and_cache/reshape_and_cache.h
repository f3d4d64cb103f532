// SPDX-License-Identifier: Apache-2.0
// reshape_and_cache: keys and values of new tokens into the pages of a cache.
#pragma once

#include "kernels/reshape_and_cache/cache_pages.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <array>
#include <optional>
#include <string>

namespace tilewright {

/// A cache's type is its source's, whose bits are copied, or e4m3 or e5m2: then each element is
/// divided by the scale and rounded, saturating.
template <class T>
struct CacheWrite {
  T key;                          ///< [N, heads, D] bf16, f16, f32 or e4m3, own strides
  T value;                        ///< [N, heads, DV]
  T slot_mapping;                 ///< [T] s32 or s64, T at most N
  std::optional<T> k_scale = {};  ///< [1] or [heads] f32; absent: 1
  std::optional<T> v_scale = {};  ///< as k_scale
  T key_cache;                    ///< of the layout
  T value_cache;
  std::optional<T> skipped = {};  ///< [1] u32: slots beyond the cache are added to it
};
using CacheWriteTensors = CacheWrite<View>;

/// Keys or values: heads, and how a thread takes part.
struct CachePart {
  int heads = 0, d = 0;
  int vector_elems = 8;  ///< of an access
  bool converts = false;
  friend bool operator==(const CachePart&, const CachePart&) = default;
  int accesses() const { return heads * d / vector_elems; }  ///< of a token
};

/// The specialisation besides the facts of the arguments.
struct CacheWriteConfig {
  std::array<CachePart, 2> parts;  ///< keys, values
  bool wide_index = false;         ///< accesses are counted in s64
  int threads = 128;
  int turns = 1;  ///< accesses of a thread
  friend bool operator==(const CacheWriteConfig&, const CacheWriteConfig&) = default;
};

struct ReshapeAndCachePlan {
  CacheWriteConfig config;
  CacheWriteTensors tensors;  ///< caches paged(), bits where they are copied
  CacheWrite<TensorArg> args;
  LaunchConfig launch;
  std::int32_t key_blocks = 0;  ///< the first blocks, the others take the values

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};
ReshapeAndCachePlan plan_reshape_and_cache(const DeviceProperties& device,
                                           const CacheWriteTensors& tensors,
                                           CacheLayout layout = CacheLayout::nhd,
                                           SourceLoc at = SourceLoc::here());
void launch_reshape_and_cache(const Stream& stream, const ReshapeAndCachePlan& plan,
                              SourceLoc at = SourceLoc::here());

/// Token t goes to slot_mapping[t] % page size of page slot_mapping[t] / page size; negative slots
/// and slots beyond the cache are skipped. No two tokens have one slot. A cache of latents is two
/// views of its rows: latents as keys, rotary parts as values. Allocates nothing, does not wait.
void reshape_and_cache(const Stream& stream, const CacheWriteTensors& tensors,
                       CacheLayout layout = CacheLayout::nhd, SourceLoc at = SourceLoc::here());

const Operator& reshape_and_cache_operator();

}  // namespace tilewright
