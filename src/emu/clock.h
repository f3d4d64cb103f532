// SPDX-License-Identifier: Apache-2.0
// Vector clocks: what a thread knows to have happened, in its own block and in others.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace tilewright::emu::detail {

/// What is known of each of a block's threads, and of the cp.async groups of each. Barriers of the
/// whole block raise these, so that nothing need be kept by thread.
struct Floor {
  std::uint32_t threads = 0;  ///< how many; 0: nothing is known
  std::uint32_t epoch = 0;
  std::uint32_t copies = 0;
  std::uint32_t operator[](std::uint32_t agent) const {
    return agent < threads ? epoch : agent < 2 * threads ? copies : 0;
  }
  bool operator==(const Floor&) const = default;
};

/// For each agent of one block, the last epoch known. Agents are the block's threads, then one
/// cp.async agent a thread, then slots for bulk copies. Absent entries are 0.
struct Clock {
  static constexpr std::size_t kWarps = 32;  ///< of a block, at most

  Floor floor;                                ///< the least
  std::array<std::uint32_t, kWarps> warps{};  ///< of all threads of a warp, which mostly are alike
  std::vector<std::uint32_t> at;              ///< of an agent, beyond both

  /// What is known of every thread of a warp.
  std::uint32_t of_warp(std::uint32_t warp) const {
    return warps[warp] > floor.epoch ? warps[warp] : floor.epoch;
  }
  std::uint32_t operator[](std::uint32_t agent) const {
    const std::uint32_t least = agent < floor.threads ? of_warp(agent / 32) : floor[agent];
    return agent < at.size() && at[agent] > least ? at[agent] : least;
  }
  void raise(std::uint32_t agent, std::uint32_t epoch);
  void raise(const Floor& least);
  void raise(const Clock& other);
};
using ClockRef = std::shared_ptr<const Clock>;

/// The elementwise maximum; shares an argument that is already it. Null is zero.
ClockRef join(const ClockRef& a, const ClockRef& b);
/// `clock` with one agent raised to `epoch`.
ClockRef raised(const ClockRef& clock, std::uint32_t agent, std::uint32_t epoch);
/// The clock, to be raised: a copy if others have it too, a new one if it is null.
Clock& make_own(ClockRef& clock);

/// Knowledge of one block: what is known, and which of it the asynchronous proxy may see.
struct Known {
  std::uint32_t block = 0;
  ClockRef generic;
  ClockRef async;
};
/// Knowledge of several blocks, by ascending block number; what synchronisation objects carry.
using Snapshot = std::vector<Known>;
using SnapshotRef = std::shared_ptr<const Snapshot>;

const Known* find_block(const SnapshotRef& snapshot, std::uint32_t block);
SnapshotRef join(const SnapshotRef& a, const SnapshotRef& b);
/// sum = join(sum, more), in place where nobody else has `sum`.
void accumulate(SnapshotRef& sum, const SnapshotRef& more);
/// The snapshot's entry of a block, to be raised; made, like the snapshot, if there is none.
Known& make_own(SnapshotRef& snapshot, std::uint32_t block);

/// What a release by some thread hands on, and how far: kept by synchronisation words.
struct Released {
  SnapshotRef snapshot;
  std::uint32_t block = 0;  ///< of the releasing thread
  std::uint32_t cluster = 0;
  int device = 0;
  std::uint8_t scope = 0;  ///< emu::detail::Scope
  bool by_update = false;  ///< observed by an atomic
};

/// The knowledge of a thread, or of the 32 lanes of a warp while they have the same.
struct Knowledge {
  ClockRef generic, async;        ///< of the own block
  SnapshotRef foreign;            ///< of other blocks; what it says of the own one is known anyway
  SnapshotRef fenced;             ///< handed on by later strong writes: set by a release fence
  std::uint8_t fence_scope = 0;   ///< of that fence
  std::vector<Released> pending;  ///< observed by relaxed reads: taken by a later acquire fence
};

/// The knowledge of a warp's lanes and their own epochs.
struct LaneClocks {
  Knowledge common;
  std::unique_ptr<std::array<Knowledge, 32>> each;  ///< while the lanes differ
  std::array<std::uint32_t, 32> epoch{};            ///< an access is known to have happened once
                                                    ///< its epoch is; releases begin a new one
  bool together = true;                             ///< all epochs are known to be the same
  std::array<std::uint32_t, 32> copied{};           ///< the lane's own cp.async groups up to this
                                                    ///< are complete, as it alone knows
  Knowledge& lane(unsigned lane) { return each ? (*each)[lane] : common; }
  /// All lanes are in one epoch.
  bool in_one_epoch() { return together || compare_epochs(); }
  bool compare_epochs();
  std::uint32_t latest_epoch() const;
  /// Gives every lane a copy of its own.
  void split();
  /// Makes the lanes' knowledge common if it is the same.
  void try_unify();
  /// All lanes have `knowledge` from now on.
  void unify(Knowledge knowledge);
};

}  // namespace tilewright::emu::detail
