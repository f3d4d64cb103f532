// SPDX-License-Identifier: Apache-2.0
// A launch in progress, the scheduler that interleaves launches, and what a handler works on.
#pragma once

#include "emu/block.h"
#include "emu/code.h"
#include "emu/decide.h"
#include "emu/launch_hooks.h"
#include "emu/memory.h"
#include "emu/report.h"
#include "tilewright/emulator.h"

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tilewright::emu::detail {

struct Run;

/// One emulated device.
struct Device {
  ptx::Target target;
  MachineOptions options;
  std::unique_ptr<Fabric> own_fabric;
  Memory* memory = nullptr;
  int index = 0;
  std::vector<std::unique_ptr<Code>> codes;
  LaunchHooks hooks;
};

/// Event counts by pc; empty unless counters are on.
struct PcCount {
  std::uint64_t executions = 0, divergent = 0, lanes = 0;
  std::uint64_t sectors = 0, ideal_sectors = 0, wavefronts = 0, ideal_wavefronts = 0;
};

struct Grid {
  Run* run = nullptr;
  Device* device = nullptr;
  std::uint32_t index = 0;  ///< in Run::grids
  const Code* code = nullptr;
  const FunctionCode* entry = nullptr;
  Launch launch;
  Options options;
  LaunchReport report;
  Reporter reporter;
  std::vector<PcCount> counts;
  std::vector<std::byte> params;
  std::uint64_t blocks = 0, next_block = 0, done_blocks = 0;
  std::uint32_t first_number = 0;  ///< of blocks; lower ones belong to earlier launches
  std::uint32_t capacity = 1;      ///< blocks alive at a time, at most
  std::uint32_t window = 1;        ///< blocks alive unless all of them wait
  std::int64_t shared_bytes = 0;   ///< of a block, static and dynamic, with gaps between variables
  std::int64_t declared_shared_bytes = 0;  ///< without them: what the hardware needs
  std::uint32_t dynamic_offset = 0;        ///< of dynamic shared memory, from kSharedBase
  std::uint64_t workspace = 0;             ///< cooperative launches: what %envreg1 and 2 point to
  std::vector<std::unique_ptr<Block>> live;
  std::vector<std::unique_ptr<Cluster>> clusters;
  std::vector<std::unique_ptr<Block>> spare;     ///< ended ones, for reuse of their storage
  Allocation* last_allocation = nullptr;         ///< of the last global access
  std::vector<std::shared_ptr<Grid>> unordered;  ///< earlier launches that it may run beside
  Grid* awaited = nullptr;                       ///< of those, what griddepcontrol.wait waits for
  bool stopped = false;

  bool checks(Kind kind) const { return options.checks.has(kind); }
  Dim3 block_index(std::uint64_t linear) const;
  /// The linear index of a block by its number: clusters have consecutive numbers.
  std::uint64_t linear_of(std::uint32_t number) const;
  Block* block_of(std::uint32_t number) const;
  std::uint32_t threads() const { return static_cast<std::uint32_t>(launch.block.count()); }
};

/// A word of global memory that releases were written to.
struct SyncWord {
  std::vector<Released> released;
};

/// A copy or arrival in flight: what happens when the engine gets to it.
struct AsyncOp {
  Grid* grid = nullptr;
  Block* block = nullptr;   ///< that issued it
  Block* target = nullptr;  ///< whose shared memory or mbarrier it reaches; null: none other
  std::uint32_t thread = 0;
  std::uint64_t group = 0;  ///< bulk group of the thread; 0: completes on an mbarrier
  std::function<void()> deliver;
};

/// A warp that waits for a word. Due: it has not looked since the last release.
struct Watcher {
  Warp* warp = nullptr;
  bool due = false;
};

/// Grids that run interleaved.
struct Run {
  std::vector<std::unique_ptr<Grid>> grids;
  Memory* memory = nullptr;
  Decisions decisions;
  Options options;
  std::vector<Warp*> ready;
  std::vector<Warp*> spinning;  ///< warps with splits that wait for memory
  std::uint64_t version = 0;    ///< counts changes of memory and synchronisation objects
  std::uint64_t steps = 0;
  std::uint64_t seen_version = 0;   ///< the version at version_steps
  std::uint64_t version_steps = 0;  ///< steps when the version was last seen to change
  std::uint64_t patience = 0;       ///< steps without a change after which more is tried
  std::uint64_t clock_reads = 0;
  std::uint64_t timeout_version = 0;  ///< the version when only time-outs were left to wake
  int timeouts = 0;                   ///< how often that was so since the version changed
  std::uint32_t first_unordered = 0;  ///< blocks with lower numbers are known to all of these grids
  /// By word: warps that wait for it or may do so next. Each looks at what was released there
  /// before it is written again: what they learn from it must not depend on when they happen to
  /// run.
  std::unordered_map<std::uint64_t, std::vector<Watcher>> watchers;
  std::vector<Warp*> called;             ///< watchers that look before the running warp goes on
  bool calling = false, looked = false;  ///< a called one runs; it has read such a word
  std::uint32_t calls_left = 1U << 15;   ///< looking costs
  bool phase_completed = false;          ///< of an mbarrier, since sleepers were woken
  bool some_done = false;                ///< a block ended since drop_dead()
  std::deque<std::unique_ptr<AsyncOp>> async;
  std::unordered_map<std::uint64_t, SyncWord> sync_words;  ///< by address (shared: with block)
  std::unordered_set<std::uint64_t> edited_maps;           ///< tensor maps that no fence published

  explicit Run(const Options& o) : decisions(o), options(o) {}
  void changed() { ++version; }
  void make_ready(Warp& warp) {
    if (warp.queued) return;
    warp.queued = true;
    ready.push_back(&warp);
  }
};

/// What a handler works on.
struct Exec {
  Run* run = nullptr;
  Grid* grid = nullptr;
  Block* block = nullptr;
  Warp* warp = nullptr;
  Split* split = nullptr;
  std::byte* frame = nullptr;
  std::uint32_t mask = 0;  ///< active lanes, the guard applied
  std::uint32_t pc = 0;
  ptx::semantics::LaneArgs args{};  ///< of the usual lane-pure instructions: one result

  std::uint64_t address(std::uint64_t value, bool in_frame) const {
    const std::uint64_t keep = 0 - std::uint64_t{in_frame};  // a mask, not a branch
    return value + (reinterpret_cast<std::uint64_t>(frame) & keep);
  }
  template <class T>
  T* lanes(const Slot& slot) const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a slot stands at an address
    return reinterpret_cast<T*>(address(slot.value, slot.in_frame));
  }
  std::uint32_t& defined(const Slot& slot) const {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return *reinterpret_cast<std::uint32_t*>(address(slot.defined, slot.in_frame));
  }
  /// The value of one lane, zero-extended; pred as 0 or 1.
  std::uint64_t value(const Slot& slot, unsigned lane) const {
    if (slot.cls == Class::b32) return lanes<const std::uint32_t>(slot)[lane];
    return other_value(slot, lane);
  }
  std::uint64_t other_value(const Slot& slot, unsigned lane) const;  ///< of other widths
  /// Writes one lane and marks it defined.
  void set(const Slot& slot, unsigned lane, std::uint64_t value) const;
  bool checks(Kind kind) const { return grid->checks(kind); }
};

/// Runs every grid to its end, or to a stop; fills their reports.
void run_all(Run& run);

/// Ends the lanes of `mask` in the current split (exit, or ret from the entry).
Flow exit_lanes(Exec& x, std::uint32_t mask);
/// A defect after which nothing sensible follows: the launch stops.
void stop_grid(Grid& grid);
/// Called when a block's last thread ended.
void finish_block(Block& block);

}  // namespace tilewright::emu::detail
