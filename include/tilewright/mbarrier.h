// SPDX-License-Identifier: Apache-2.0
// Mbarriers: counters in shared memory that threads and asynchronous copies complete, phase by
// phase.
#pragma once

#include "tilewright/tensor.h"

#include <type_traits>

namespace tilewright {

/// One mbarrier. A phase is complete when all expected arrivals and all expected bytes have come;
/// then the next begins. The phase in progress has parity 0, then 1, then 0, ...
class Mbarrier {
 public:
  /// Sets the arrivals that each phase expects: by one thread, once, before a barrier that all
  /// users pass (with fence_mbarrier_init() and a cluster barrier if peers use it).
  void init(int arrivals, SourceLoc at = SourceLoc::here()) const;
  /// Ends its use, so that its bytes may hold something else.
  void invalidate(SourceLoc at = SourceLoc::here()) const;

  /// Counts one arrival and releases what the thread wrote before.
  void arrive(SourceLoc at = SourceLoc::here()) const;
  /// Counts one arrival of a thread that has only read what the mbarrier guards: the reads have
  /// ended, and nothing it wrote is released to peers. At a peer's mbarrier far cheaper.
  void arrive_after_reads(SourceLoc at = SourceLoc::here()) const;
  /// Expects `bytes` more from asynchronous copies in this phase, then arrives.
  void arrive_expect_tx(const Arg& bytes) const;
  /// Expects `bytes` more without arriving.
  void expect_tx(const Arg& bytes) const;
  /// Arrives when the thread's cp.async copies so far are done; the arrival is one of those
  /// expected.
  void arrive_after_copies(SourceLoc at = SourceLoc::here()) const;

  /// Whether the phase of `parity` (0 or 1; u32 or s32) is complete; may wait for a while first.
  /// If so, what its arrivals released is visible.
  Value try_wait(const Arg& parity) const;
  /// Waits for the end of the phase of `parity`.
  void wait(const Arg& parity) const;

  /// The same mbarrier in the cluster's block `rank`: it can be arrived at, not waited for.
  Mbarrier peer(const Arg& rank, SourceLoc at = SourceLoc::here()) const;

  const Element& cell() const { return cell_; }

 private:
  friend class Mbarriers;
  explicit Mbarrier(const Element& cell) : cell_(cell) {}
  Element cell_;
};

/// `count` mbarriers in shared memory, one a pipeline stage for example.
class Mbarriers {
 public:
  explicit Mbarriers(int count = 1, SourceLoc at = SourceLoc::here());
  int count() const { return count_; }
  /// Which mbarrier, with the line where it is written.
  struct Place {
    template <class T>
    requires std::is_constructible_v<Index, const T&>
    // NOLINTNEXTLINE(google-explicit-constructor): an index is a plain number or a value
    Place(const T& number, SourceLoc line = SourceLoc::here()) : index(number), at(line) {}
    Index index;
    SourceLoc at;
  };
  Mbarrier operator[](const Place& place) const { return at(place.index, place.at); }
  Mbarrier at(const Index& index, SourceLoc where = SourceLoc::here()) const;
  /// init() of all of them.
  void init(int arrivals, SourceLoc at = SourceLoc::here()) const;

 private:
  int count_;
  Tensor cells_;
};

/// Stores to a peer's shared memory, and completes the value's bytes at a mbarrier of the same peer
/// (st.async): the peer's wait sees it, with no fence and no barrier.
/// Pre: an element of 32 or 64 bits.
void store_async(const Element& cell, const Arg& value, const Mbarrier& completed);

}  // namespace tilewright
