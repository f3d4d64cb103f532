// SPDX-License-Identifier: Apache-2.0
// The race check: each access against what the words' shadow says of earlier ones.
#pragma once

#include "emu/grid.h"

#include <array>
#include <cstdint>

namespace tilewright::emu::detail {

/// Strength in Records: 0 weak, else how far it reaches; volatile accesses are strong but lanes of
/// a warp that rely on them are reported.
enum class Strength : std::uint8_t { weak, cta, cluster, gpu, sys, volatile_ };
enum class Access : std::uint8_t { read, write, atomic };

/// Consecutive words of one memory object and how to name them.
struct ShadowTarget {
  ShadowMap* map = nullptr;
  std::size_t word = 0;       ///< in the map
  std::uint64_t address = 0;  ///< of that word
  Space space = Space::global;
  Block* owner = nullptr;  ///< shared memory: whose
};

/// Who accesses: a lane's thread, or an asynchronous operation on its behalf.
struct Actor {
  std::uint32_t agent = 0;
  std::uint32_t epoch = 0;
  const Knowledge* knowledge = nullptr;
  std::uint32_t issuer = 0;  ///< the thread that issued an asynchronous operation; else `agent`
  std::uint32_t copied = 0;  ///< that thread's cp.async groups known to it alone to be complete
  bool async_proxy = false;  ///< sees generic writes only behind a proxy fence
  std::string_view name;     ///< of an asynchronous operation
};
Actor thread_actor(Exec& x, unsigned lane);
/// The lane's cp.async group that is being filled.
Actor copy_actor(Exec& x, unsigned lane);

/// Checks and records an access of bytes [address, address + bytes) by a lane. `fresh` and `old`
/// are the bytes after and before a write, or null: equal ones make a conflict mere advice.
void note_access(Exec& x, unsigned lane, const ShadowTarget& target, std::uint64_t address,
                 std::int64_t bytes, Access access, Strength strength, const Actor& actor,
                 const std::byte* fresh = nullptr, const std::byte* old = nullptr);
/// The same for a vector, whose elements are accesses of their own where they are strong.
struct Elements {
  std::int64_t count = 1, bytes = 4;
};
void note_vector(Exec& x, unsigned lane, const ShadowTarget& target, std::uint64_t address,
                 const Elements& elements, Access access, Strength strength, const Actor& actor,
                 const std::byte* fresh = nullptr, const std::byte* old = nullptr);

/// Does an access record precede what the actor does?
bool precedes(const Exec& x, const ShadowTarget& target, Record record, const Actor& actor);
/// Does what the lanes of the record's warp did up to its epoch precede what the running lanes do,
/// by what these know in common? False where only a look at each lane can say.
bool warp_precedes(const Exec& x, Record record);
/// Does a write precede what the actor does, and see it the proxy through which that is done?
bool visible(const Exec& x, const ShadowTarget& target, Record write, const Actor& actor);

/// The 32 lanes of a warp, or the copies they start, access consecutive elements of some words.
struct RowAccess {
  unsigned words = 1;  ///< of a lane: 1, 2 or 4
  Access access = Access::read;
  Strength strength = Strength::weak;
  bool copies = false;  ///< writes by cp.async
  std::uint32_t element_bytes = 4;

  /// As in the shadow: with the size of strong accesses.
  std::uint32_t sized(std::uint32_t pc) const {
    return strength == Strength::weak ? pc : sized_pc(pc, element_bytes);
  }
};
/// Checks and records a row. Returns false, with nothing recorded, if some word needs the check by
/// lane: then something may be amiss.
bool note_row(Exec& x, const ShadowTarget& target, const RowAccess& row);
/// The same for all lanes of `mask` reading one element or vector.
bool note_broadcast(Exec& x, std::uint32_t mask, const ShadowTarget& target, const RowAccess& row);
/// The running lanes update one or two words each.
struct WarpUpdates {
  const std::array<std::uint32_t, 32>& at;  ///< bytes behind the target
  unsigned words = 1;
  Strength strength = Strength::gpu;
};
/// The same for atomics anywhere in the target.
bool note_updates(Exec& x, const ShadowTarget& target, const WarpUpdates& updates);
/// Are a record's access and one by the block both strong, of one size, with scopes that include
/// each other? The `pc` have the sizes.
bool strong_together(const Exec& x, Record record, std::uint32_t record_pc, Strength strength,
                     std::uint32_t pc);
/// note_row for a row that begins with a line, where one record a line says all.
bool note_row_lines(Exec& x, const ShadowTarget& target, const RowAccess& row);
/// As note_access for an asynchronous operation's whole lines; returns their bytes, 0 if `target`
/// is not the start of one.
std::int64_t note_lines(Exec& x, unsigned lane, const ShadowTarget& target, std::int64_t bytes,
                        Access access, const Actor& actor);

/// Knows the records that every thread of the block knows: none, of this block up to the floor, of
/// an earlier launch, or left in shared memory by a block that ended.
struct Settled {
  std::uint64_t block, threads, epochs_end, copies_end, first;
  bool alone;

  Settled(const Exec& x, const ShadowTarget& target);
  bool operator()(std::uint64_t bits) const {
    const std::uint64_t at = bits >> Record::kBlockShift & Record::kBlockLimit;
    const std::uint64_t agent = bits >> Record::kAgentShift & 0xfff;
    const bool mine = at == block;
    const bool thread = (agent < threads) | (agent >= kPairs);
    const bool copy = (agent >= threads) & (agent < 2 * threads);
    return (bits == 0) | (mine & thread & (bits < epochs_end)) |
           (mine & copy & (bits < copies_end)) | (at < first) | (alone & !mine);
  }
};

/// Every thread of the block knows everything up to now (a barrier of the whole block).
void synchronize_block(Block& block);
/// The lanes of `mask` of one warp know each other's accesses.
void synchronize_lanes(Warp& warp, std::uint32_t mask);
/// The lanes of `mask` begin a new epoch, after handing on what they did in this one.
void raise_epochs(Warp& warp, std::uint32_t mask);
/// What the lanes of `mask` know of their block, together with what they did themselves.
std::shared_ptr<Clock> own_clock(Warp& warp, std::uint32_t mask);
/// What a lane hands on when it releases now; begins a new epoch for it.
SnapshotRef release_snapshot(Warp& warp, unsigned lane);
/// Adds to `into` what the lanes of `mask` hand on together; begins a new epoch for them.
void release_lanes(Warp& warp, std::uint32_t mask, SnapshotRef& into);
void acquire_snapshot(Warp& warp, unsigned lane, const SnapshotRef& snapshot);
/// The same for several lanes; keeps their knowledge common where it is.
void acquire_lanes(Warp& warp, std::uint32_t mask, const SnapshotRef& snapshot);

}  // namespace tilewright::emu::detail
