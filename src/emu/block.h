// SPDX-License-Identifier: Apache-2.0
// A block in flight: shared memory, its shadow, barriers, mbarriers, asynchronous copies, warps.
#pragma once

#include "emu/clock.h"
#include "emu/mbarrier_users.h"
#include "emu/shadow.h"
#include "emu/warp.h"

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace tilewright::emu::detail {

struct Grid;
struct Cluster;

/// Where each window of the generic address space begins. Shared and local addresses are 32 bits
/// wide; a shared address has the block's rank in its cluster in bits 24 and up, as on hardware.
constexpr std::uint64_t kSharedWindow = 0x0100'0000'0000;
constexpr std::uint64_t kLocalWindow = 0x0200'0000'0000;
constexpr std::uint64_t kParamWindow = 0x0300'0000'0000;
constexpr std::uint64_t kWindowBytes = 0x1'0000'0000;
constexpr std::uint32_t kRankShift = 24;
constexpr std::uint32_t kSharedBase = 1024;  ///< the first variable; below lies what is reserved
constexpr std::uint32_t kLocalBase = 64;     ///< so that a null local pointer is out of bounds
/// Local memory of a thread. CUDA Programming Guide, technical specifications.
constexpr std::uint32_t kMostLocalBytes = 512 * 1024;

/// What one arrival at a barrier waits for or brings.
struct BarrierState {
  bool open = false;           ///< some thread has arrived
  std::uint32_t expected = 0;  ///< threads
  bool whole_block = false;    ///< every thread of the block
  bool counted = false;        ///< by a number of threads: those that exited do not count
  std::uint32_t arrived = 0;   ///< lanes
  std::uint32_t first_pc = 0;
  std::array<std::uint32_t, 32> lanes{};    ///< by warp: the arrived ones
  std::array<std::uint32_t, 32> waiting{};  ///< by warp: those that wait (not bar.arrive)
  std::shared_ptr<Clock> generic;
  ClockRef async;
  SnapshotRef foreign;
  std::uint32_t votes_true = 0, votes = 0;  ///< bar.red
  std::uint32_t result_true = 0, result_votes = 0;

  /// For the next use, with the results of this one.
  void close();
};

/// A word in shared memory that mbarrier.init made.
struct Mbarrier {
  std::uint32_t expected = 0;  ///< of the next phase
  std::uint32_t pending = 0;
  std::int64_t tx = 0;
  std::uint64_t phase = 0;  ///< completed ones
  SnapshotRef arriving;     ///< of the current phase
  SnapshotRef completed;    ///< of the phase that completed last
  std::uint32_t init_pc = 0;
  std::uint64_t init = 0;  ///< Record of who made it
  MbarrierUsers users;
  bool fenced = false;          ///< by fence.mbarrier_init of who made it
  std::uint64_t published = 0;  ///< the cluster barrier's phase that shows it then, from 1
};

/// Some of the readers that one Record cannot hold.
struct Reader {
  std::uint32_t agent = 0;  ///< of bit 0 of `lanes`: a warp's first thread, or an asynchronous copy
  std::uint32_t epoch = 0, lanes = 0, pc = 0;
  std::uint32_t scope = 0;  ///< as in Record
  bool any = false;         ///< some of the lanes read, at one time: one that is known tells all
};

/// A bulk operation that reads or writes the block's shared memory, and how to know of its end.
struct Issued {
  std::uint32_t agent = 0, epoch = 0;
  std::uint32_t block = 0;  ///< number of the issuing block, whose agent it is
  std::uint32_t thread = 0, pc = 0;
  bool reads = false;
};

/// A bulk operation of a bulk group.
struct BulkGroupOp {
  std::uint32_t thread = 0;
  std::uint64_t group = 0;
  BulkAgent reader, writer;
};

struct Block {
  Grid* grid = nullptr;
  Cluster* cluster = nullptr;
  std::uint32_t number = 0;  ///< unique in the fabric: what Records hold
  std::uint64_t linear = 0;
  Dim3 index{0, 0, 0};
  std::uint32_t rank = 0;  ///< in the cluster
  std::uint32_t threads = 0;
  std::uint32_t live_threads = 0;
  std::vector<std::byte> shared;           ///< from address kSharedBase
  std::vector<std::uint64_t> shared_init;  ///< a bit a byte
  std::unique_ptr<ShadowMap> shadow;
  std::vector<std::unique_ptr<Warp>> warps;
  std::array<BarrierState, 16> barriers;
  std::unordered_map<std::uint32_t, Mbarrier> mbarriers;  ///< by shared address without rank
  Floor floor;  ///< what every thread of the block knows of the block
  std::vector<std::vector<Reader>> reader_lists;
  std::vector<std::uint32_t> free_lists;
  std::uint32_t next_slot = 0;  ///< of bulk agents
  std::vector<std::uint32_t> slot_epoch;
  std::uint32_t in_flight = 0;  ///< asynchronous operations not complete
  std::vector<Issued> issued;
  std::vector<BulkGroupOp> bulk_groups;
  std::uint32_t cp_users = 0;  ///< cp.async instructions issued
  SnapshotRef exit_known;      ///< what threads knew when they ended, if that matters
  bool done = false;

  std::uint32_t cp_agent(std::uint32_t thread) const { return threads + thread; }
  std::uint32_t first_bulk_agent() const { return 2 * threads; }
  std::size_t warp_count() const { return (threads + 31) / 32; }
  std::uint32_t take_list();
  void free_list(std::uint32_t list);
  void free_reader_lists();
};

/// Blocks that run together; a launch without clusters has clusters of one block.
struct Cluster {
  std::vector<Block*> blocks;  ///< by rank
  std::uint32_t number = 0;
  std::uint32_t arrived = 0, live = 0;
  std::uint64_t phase = 0;
  SnapshotRef arriving, completed;
  std::vector<std::uint64_t> arrived_phase;  ///< by rank * threads + thread: phases arrived at
};

}  // namespace tilewright::emu::detail
