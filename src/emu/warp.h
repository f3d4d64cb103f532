// SPDX-License-Identifier: Apache-2.0
// A warp: its splits (lanes at one place of the program), call frames, registers, local memory.
#pragma once

#include "emu/clock.h"
#include "emu/code.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace tilewright::emu::detail {

struct Block;

constexpr std::uint32_t kNoFrame = 0xffffffff;

/// A call in progress. Splits with the same frame have the same call stack.
struct Frame {
  std::uint32_t parent = kNoFrame;
  std::uint32_t function = 0;
  std::uint32_t return_pc = 0;
  std::uint32_t base = 0;       ///< byte offset in the warp's stack
  std::uint32_t local = 0;      ///< byte offset in the lanes' local memory
  std::uint32_t allocated = 0;  ///< bytes of alloca behind the function's variables
  std::uint32_t depth = 0;
  const OpInfo* call = nullptr;
};

enum class Wait : std::uint8_t {
  none,     ///< ready to run
  lanes,    ///< at a warp-wide instruction, for the lanes it names
  barrier,  ///< arrived at a block barrier; `pc` is behind it
  cluster,  ///< at barrier.cluster.wait
  memory,   ///< spins: nothing can change until memory does
  async,    ///< at a wait for asynchronous operations
  grid,     ///< at griddepcontrol.wait or another grid-wide wait
};

struct Split {
  std::uint32_t pc = 0;
  std::uint32_t mask = 0;
  std::uint32_t frame = 0;
  Wait wait = Wait::none;
  std::uint8_t barrier = 0;
  bool resumed = false;         ///< the wait ended: the instruction at pc may go on
  bool polled = false;          ///< looked at an mbarrier in vain: its loop may spin
  bool asleep = false;          ///< in mbarrier.try_wait, until a phase completes
  bool timed_out = false;       ///< woken from it though none did, since nothing else could happen
  bool gathering = false;       ///< at an aligned barrier, not yet arrived at it
  std::uint32_t branches = 0;   ///< backward ones since it was chosen
  std::uint64_t looked_at = 0;  ///< a word that it read by a strong operation since then, or 0
  std::uint32_t spin_pc = 0xffffffff;
  std::uint64_t spin_hash = 0;
  std::uint64_t seen_version = 0;  ///< of memory, when it began to wait
};

/// Local memory of 32 lanes, interleaved: row i holds word i of each lane.
struct LocalRow {
  std::array<std::uint32_t, 32> data{};
  std::array<std::uint32_t, 4> init{};  ///< by byte: the lanes in which it was written
};

/// 128-byte aligned storage for registers.
class RegisterStack {
 public:
  std::byte* data() { return data_; }
  std::size_t size() const { return size_; }
  void grow(std::size_t bytes);

 private:
  std::vector<std::byte> storage_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// One cp.async warp instruction in flight.
struct CpAsync {
  std::uint32_t pc = 0;
  std::uint32_t pending = 0;           ///< lanes whose data has not moved
  std::uint32_t bytes = 0;             ///< of the destination
  bool row = false;                    ///< 32 consecutive elements, `to` and `from` of the first
  std::array<std::uint32_t, 32> to{};  ///< shared addresses
  std::array<std::uint64_t, 32> from{};
  std::array<std::uint32_t, 32> source_bytes{};  ///< the rest is zeros
  std::array<std::uint32_t, 32> group{};
};

/// The agent of an asynchronous operation in its block's clocks.
struct BulkAgent {
  std::uint32_t agent = 0, epoch = 0;
};

/// One wgmma.mma_async of a warp that was not waited for.
struct PendingWgmma {
  const Inst* inst = nullptr;
  std::uint32_t pc = 0;
  std::uint32_t frame_base = 0;
  std::uint64_t group = 0;
  std::uint64_t a = 0, b = 0;                ///< descriptors
  std::array<std::uint64_t, 16> metadata{};  ///< of a sparse a, by row
  bool accumulate = true;
  bool delivered = false;
  BulkAgent agent;
};

/// Calls `each(lane)` for the lanes of `mask`; all of them is usual, and vector code.
template <class F>
void for_lanes(std::uint32_t mask, F each) {
  if (mask == ~std::uint32_t{0}) {
    for (unsigned lane = 0; lane < 32; ++lane)
      each(lane);
    return;
  }
  for (; mask != 0; mask &= mask - 1)
    each(static_cast<unsigned>(std::countr_zero(mask)));
}

struct Warp {
  Block* block = nullptr;
  std::uint32_t id = 0;
  std::uint32_t exist = 0;  ///< lanes that the block has
  std::uint32_t live = 0;   ///< lanes that have not exited
  std::vector<Split> splits;
  std::size_t current = 0;  ///< the split that runs
  std::vector<Frame> frames;
  RegisterStack stack;
  std::vector<LocalRow> local;
  LaneClocks clocks;
  std::vector<CpAsync> cp_async;
  std::uint32_t cp_pc = 0;                     ///< of the last cp.async
  std::array<std::uint32_t, 32> cp_used{};     ///< the last group with a copy, 0: none
  std::array<std::uint32_t, 32> cp_epoch{};    ///< cp.async: the group that is being filled, from 1
  std::array<std::uint64_t, 32> bulk_group{};  ///< bulk copies: the group that is being filled
  std::vector<PendingWgmma> wgmma;
  std::uint64_t wgmma_group = 1;                   ///< the group that is being filled
  std::vector<bool> wgmma_results, wgmma_sources;  ///< registers in flight, by frame offset / 128
  std::vector<bool> written;                       ///< registers written since wgmma.fence
  bool queued = false;                             ///< in the scheduler's list

  std::uint32_t thread(unsigned lane) const { return id * 32 + lane; }
};

/// Index of a frame for a call, shared by splits that make the same call from the same stack.
std::uint32_t enter_frame(Warp& warp, std::uint32_t parent, std::uint32_t return_pc,
                          std::uint32_t function, const OpInfo* call);
/// Makes one split of those that are ready and at the same place. Returns whether any merged.
bool merge_splits(Warp& warp);
/// Moves the lanes of `mask` out of split `index` into a new one, which is returned by index.
std::size_t divide(Warp& warp, std::size_t index, std::uint32_t mask);

}  // namespace tilewright::emu::detail
