// SPDX-License-Identifier: Apache-2.0
// The race check: each access against what the words' shadow says of earlier ones.
#pragma once

#include "emu/grid.h"

#include <cstdint>

namespace tilewright::emu::detail {

/// Strength in Records: 0 weak, else how far it reaches; volatile accesses are strong but lanes of
/// a warp that rely on them are reported.
enum class Strength : std::uint8_t { weak, cta, cluster, gpu, sys, volatile_ };
enum class Access : std::uint8_t { read, write, atomic };

/// Consecutive words of one memory object and how to name them.
struct ShadowTarget {
  ShadowView view;            ///< of the word at `address`
  std::uint64_t address = 0;  ///< multiple of 4
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

/// Checks and records an access of bytes [address, address + bytes) by a lane. `fresh` and `old`
/// are the bytes after and before a write, or null: equal ones make a conflict mere advice.
void note_access(Exec& x, unsigned lane, const ShadowTarget& target, std::uint64_t address,
                 std::int64_t bytes, Access access, Strength strength, const Actor& actor,
                 const std::byte* fresh = nullptr, const std::byte* old = nullptr);

/// Does an access record precede what the actor does?
bool precedes(const Exec& x, const ShadowTarget& target, Record record, const Actor& actor);

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
void acquire_snapshot(Warp& warp, unsigned lane, const SnapshotRef& snapshot);
/// The same for several lanes; keeps their knowledge common where it is.
void acquire_lanes(Warp& warp, std::uint32_t mask, const SnapshotRef& snapshot);

}  // namespace tilewright::emu::detail
