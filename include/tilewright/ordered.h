// SPDX-License-Identifier: Apache-2.0
// Loads, stores and fences that order memory accesses between threads.
#pragma once

#include "tilewright/sync.h"
#include "tilewright/tensor.h"

#include <cstdint>

namespace tilewright {

/// What an access orders besides itself (PTX ISA, memory consistency model).
enum class Order : std::uint8_t { relaxed, acquire, release, acq_rel };

/// Strong loads: relaxed reads what others wrote; acquire also makes everything before their
/// release visible to this thread. Both threads must lie within `scope` of each other. For volatile
/// accesses see Cache::volatile_.
Value load_relaxed(const Element& cell, Scope scope, SourceLoc at = SourceLoc::here());
Value load_acquire(const Element& cell, Scope scope, SourceLoc at = SourceLoc::here());
void store_relaxed(const Element& cell, const Arg& value, Scope scope);
/// Publishes what this thread wrote or has observed before.
void store_release(const Element& cell, const Arg& value, Scope scope);

/// fence(scope) is acquire and release; this one is also in one order with all others of its kind.
void fence_sc(Scope scope, SourceLoc at = SourceLoc::here());

/// Which memory a proxy fence is about.
enum class ProxySpace : std::uint8_t { all, global, shared, cluster };
/// Orders this thread's ordinary accesses before its asynchronous ones that follow (bulk and tensor
/// copies, wgmma). Needed between writing shared memory and a bulk store of it.
void fence_async_proxy(ProxySpace space = ProxySpace::all, SourceLoc at = SourceLoc::here());
/// Makes this thread's mbarrier inits visible to the cluster, before a cluster barrier.
void fence_mbarrier_init(SourceLoc at = SourceLoc::here());

}  // namespace tilewright
