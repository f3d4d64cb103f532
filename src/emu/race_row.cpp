// SPDX-License-Identifier: Apache-2.0
// The race check for whole rows: branch-free over 32 lanes where nothing is amiss, which is usual.
#include "emu/access.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

namespace {

/// All lanes that matter are in one epoch.
bool one_epoch(const LaneClocks& c, std::uint32_t mask, std::uint32_t& epoch) {
  epoch = c.epoch[static_cast<unsigned>(std::countr_zero(mask))];
  std::uint32_t differ = 0;
  for (unsigned l = 0; l < 32; ++l) {
    differ |= static_cast<std::uint32_t>(c.epoch[l] != epoch) << l;
  }
  return (differ & mask) == 0;
}

constexpr std::uint64_t kMaskBits = 15 | std::uint64_t{7} << Record::kScopeShift;

/// A record that every thread of the block knows: none, of this block up to the floor, of an
/// earlier launch, or left in shared memory by a block that ended.
struct Settled {
  std::uint64_t block, floor_limit, agent_limit, first;
  bool alone;

  Settled(const Exec& x, const ShadowTarget& target)
      : block(x.block->number),
        floor_limit(std::uint64_t{x.block->floor + 1} << Record::kEpochShift),
        agent_limit(x.block->threads),
        first(target.owner != nullptr ? 0 : x.run->grids[0]->first_number),
        alone(target.owner != nullptr && x.block->cluster->blocks.size() == 1) {}
  bool operator()(std::uint64_t bits) const {
    const std::uint64_t at = bits >> Record::kBlockShift & Record::kBlockLimit;
    const std::uint64_t agent = bits >> Record::kAgentShift & 0xfff;
    const bool mine = at == block;
    const bool thread = (agent < agent_limit) | (agent >= kReaderList);
    return (bits == 0) | (mine & thread & (bits < floor_limit)) | (at < first) | (alone & !mine);
  }
};

}  // namespace

bool note_row(Exec& x, const ShadowTarget& target, unsigned words, Access access,
              Strength strength) {
  std::uint32_t epoch = 0;
  if (!one_epoch(x.warp->clocks, ~std::uint32_t{0}, epoch)) return false;
  const Settled settled(x, target);
  const std::uint32_t first = x.warp->id * 32;
  const auto scope = static_cast<std::uint32_t>(strength);
  const std::uint64_t own = Record::make(epoch, x.block->number, first, scope, 15).bits;
  const ShadowView v = target.view;
  const unsigned count = 32 * words;
  // A thread's own earlier write is in order too: its record differs in epoch, scope, mask only.
  constexpr std::uint64_t kWho = (std::uint64_t{Record::kBlockLimit} << Record::kBlockShift) |
                                 (0xfffULL << Record::kAgentShift);
  bool good = true;
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t me = own + (std::uint64_t{i / words} << Record::kAgentShift);
    const std::uint64_t w = v.writer[i];
    good &= settled(w) | (((w ^ me) & kWho) == 0);
  }
  const std::uint64_t reader = own & ~kMaskBits;
  if (access == Access::read) {
    for (unsigned i = 0; i < count; ++i) {
      const std::uint64_t r = v.reader[i];
      good &= settled(r) | ((r & ~kMaskBits) == reader);
    }
    if (!good) return false;
    for (unsigned i = 0; i < count; ++i) {
      const std::uint32_t bit = 1U << (i / words);
      const bool same = (v.reader[i] & ~kMaskBits) == reader;
      v.lanes[i] = same ? v.lanes[i] | bit : bit;
      v.reader[i] = own;
      v.reader_pc[i] = x.pc;
    }
    return true;
  }
  for (unsigned i = 0; i < count; ++i) {
    const std::uint64_t r = v.reader[i];
    const bool only_me = ((r & ~kMaskBits) == reader) & (v.lanes[i] == 1U << (i / words));
    good &= settled(r) | only_me;
  }
  if (!good) return false;
  for (unsigned i = 0; i < count; ++i) {
    v.writer[i] = own + (std::uint64_t{i / words} << Record::kAgentShift);
    v.reader[i] = 0;
    v.writer_pc[i] = x.pc;
  }
  return true;
}

bool note_broadcast(Exec& x, std::uint32_t mask, const ShadowTarget& target, unsigned words,
                    Strength strength) {
  std::uint32_t epoch = 0;
  if (!one_epoch(x.warp->clocks, mask, epoch)) return false;
  const Settled settled(x, target);
  const auto scope = static_cast<std::uint32_t>(strength);
  const std::uint64_t own = Record::make(epoch, x.block->number, x.warp->id * 32, scope, 15).bits;
  const ShadowView v = target.view;
  const bool at_floor = epoch == x.block->floor + 1;
  for (unsigned i = 0; i < words; ++i) {
    if (!settled(v.writer[i])) return false;
    const Record r{v.reader[i]};
    const bool mine = r.block() == x.block->number;
    const bool same = (r.bits & ~kMaskBits) == (own & ~kMaskBits);
    const bool many = mine && r.agent() == kManyWarps;
    const bool joins = mine && at_floor && r.epoch() == epoch && scope == 0 &&
                       (many || r.agent() < x.block->threads);
    if (!settled(r.bits) && !same && !joins) return false;
  }
  for (unsigned i = 0; i < words; ++i) {
    const Record r{v.reader[i]};
    const bool same = (r.bits & ~kMaskBits) == (own & ~kMaskBits);
    const bool live = r.bits != 0 && !settled(r.bits) && r.epoch() == epoch;
    if (same) {
      v.lanes[i] |= mask;
      v.reader[i] = own;
    } else if (live) {
      const std::uint32_t warps = r.agent() == kManyWarps ? v.lanes[i] : 1U << (r.agent() / 32);
      v.lanes[i] = warps | 1U << x.warp->id;
      v.reader[i] = Record::make(epoch, x.block->number, kManyWarps, 0, 15).bits;
    } else {
      v.lanes[i] = mask;
      v.reader[i] = own;
    }
    v.reader_pc[i] = x.pc;
  }
  return true;
}

}  // namespace tilewright::emu::detail
