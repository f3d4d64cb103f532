// SPDX-License-Identifier: Apache-2.0
// Bulk copies: one thread has the copy engine move a contiguous piece of memory (cp.async.bulk).
#pragma once

#include "tilewright/mbarrier.h"
#include "tilewright/tensor.h"

#include <cstdint>

namespace tilewright {

// Every size is a multiple of 16 bytes, and every address known to be aligned to 16. A size that
// is a Value must be known to be such a multiple: see Value::assume. One thread begins the copy.

/// `policy` is a cache_policy() for the lines of global memory.
struct BulkOptions {
  std::optional<Value> policy{};
};

/// Begins copying from global memory to the block's shared memory; the bytes complete at `done`,
/// which must expect them (arrive_expect_tx).
void bulk_load(const Element& destination, const Element& source, const Arg& bytes,
               const Mbarrier& done, const BulkOptions& options = {});
/// The same to the same place in every block of the cluster whose bit is set in `blocks`; each
/// block's own mbarrier at that place gets the bytes.
void bulk_load_multicast(const Element& destination, const Element& source, const Arg& bytes,
                         const Mbarrier& done, const Arg& blocks);
/// Begins copying from the block's shared memory to a peer's, completing at the peer's mbarrier.
/// Needs fence_async_proxy() after ordinary writes of the source.
void bulk_send(const Element& destination, const Element& source, const Arg& bytes,
               const Mbarrier& done);
/// Begins copying from shared to global memory, in the thread's bulk group. Needs
/// fence_async_proxy() after ordinary writes of the source.
void bulk_store(const Element& destination, const Element& source, const Arg& bytes,
                const BulkOptions& options = {});
// As bulk_store, but each element there is combined with the source's, atomically (relaxed, scope
// gpu).
/// Integers of 32 and 64 bits, f16, bf16, f32 and f64.
void bulk_add(const Element& destination, const Element& source, const Arg& bytes);
/// Integers of 32 and 64 bits, f16 and bf16.
void bulk_min(const Element& destination, const Element& source, const Arg& bytes);
void bulk_max(const Element& destination, const Element& source, const Arg& bytes);
/// Any type of 32 or 64 bits.
void bulk_and(const Element& destination, const Element& source, const Arg& bytes);
void bulk_or(const Element& destination, const Element& source, const Arg& bytes);
void bulk_xor(const Element& destination, const Element& source, const Arg& bytes);
/// Begins fetching from global memory into the L2 cache.
void bulk_prefetch(const Element& source, const Arg& bytes);

/// Closes the thread's bulk group.
void bulk_commit(SourceLoc at = SourceLoc::here());
/// Waits until at most `pending` of the thread's newest bulk groups are unfinished.
void bulk_wait(int pending = 0, SourceLoc at = SourceLoc::here());
/// The same, but only until the sources have been read, so that their shared memory can be written
/// again. A block must wait so much before it ends.
void bulk_wait_read(int pending = 0, SourceLoc at = SourceLoc::here());

}  // namespace tilewright
