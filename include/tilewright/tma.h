// SPDX-License-Identifier: Apache-2.0
// Tensor copies (TMA): one thread has the copy engine move a box of a tensor that a map describes.
#pragma once

#include "tilewright/bulk_copy.h"
#include "tilewright/mbarrier.h"
#include "tilewright/tensor.h"
#include "tilewright/trace.h"

#include <initializer_list>

namespace tilewright {

// Coordinates count elements, innermost dimension first as in the map, and may lie outside of the
// tensor: a load gives the map's fill there, a store writes nothing. The box in shared memory is
// dense (or swizzled as the map says) and begins at a multiple of 128 bytes.

/// Begins fetching the map itself, so that its first copy need not wait.
void tensor_prefetch(const TensorMapParam& map, SourceLoc at = SourceLoc::here());
/// Begins copying the box at `coordinates` to shared memory; its bytes complete at `done`, which
/// must expect all of them, those outside included (arrive_expect_tx).
void tensor_load(const Element& destination, const TensorMapParam& map,
                 std::initializer_list<Arg> coordinates, const Mbarrier& done,
                 const BulkOptions& options = {}, SourceLoc at = SourceLoc::here());
/// The same to the same place in every block of the cluster whose bit is set in `blocks` (u16).
void tensor_load_multicast(const Element& destination, const TensorMapParam& map,
                           std::initializer_list<Arg> coordinates, const Mbarrier& done,
                           const Arg& blocks);
/// Begins copying pixels in im2col mode: those from `coordinates` on, each moved by `offsets` (u16,
/// innermost first, one for each dimension between channels and batch).
void tensor_load_im2col(const Element& destination, const TensorMapParam& map,
                        std::initializer_list<Arg> coordinates, std::initializer_list<Arg> offsets,
                        const Mbarrier& done, SourceLoc at = SourceLoc::here());
/// Begins copying a box from shared memory to the tensor, in the thread's bulk group: see
/// bulk_commit(). Needs fence_async_proxy() after ordinary writes of the source.
void tensor_store(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                  const Element& source, const BulkOptions& options = {},
                  SourceLoc at = SourceLoc::here());
/// Begins fetching a box into the L2 cache.
void tensor_prefetch_box(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                         SourceLoc at = SourceLoc::here());
// As tensor_store, but each element there is combined with the source's, atomically: bulk_copy.h
// has the types of each.
void tensor_add(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const Element& source, SourceLoc at = SourceLoc::here());
void tensor_min(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const Element& source, SourceLoc at = SourceLoc::here());
void tensor_max(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const Element& source, SourceLoc at = SourceLoc::here());
void tensor_and(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const Element& source, SourceLoc at = SourceLoc::here());
void tensor_or(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
               const Element& source, SourceLoc at = SourceLoc::here());
void tensor_xor(const TensorMapParam& map, std::initializer_list<Arg> coordinates,
                const Element& source, SourceLoc at = SourceLoc::here());

}  // namespace tilewright
