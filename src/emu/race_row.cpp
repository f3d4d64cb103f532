// SPDX-License-Identifier: Apache-2.0
// The race check for whole rows: branch-free over 32 lanes where nothing is amiss, which is usual.
#include "emu/access.h"

#include <algorithm>
#include <array>
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

/// Lanes that access consecutive elements of `words` words each; a constant, for vector code.
template <unsigned words>
struct Row {
  Exec& x;
  const ShadowTarget& target;
  const RowAccess& row;
  ShadowView view;
  std::uint32_t pc;
  std::uint32_t scope;
  Settled settled;
  bool one_epoch = false;
  std::array<std::uint64_t, 32> own;  ///< records of reads: with the warp's first agent

  Row(Exec& x_, const ShadowTarget& t, const RowAccess& r)
      : x(x_),
        target(t),
        row(r),
        view(t.map->view(t.word, kCount)),
        pc(r.sized(x_.pc)),
        scope(static_cast<std::uint32_t>(r.strength)),
        settled(x_, t) {
    const auto& epoch = row.copies ? x.warp->cp_epoch : x.warp->clocks.epoch;
    const std::uint32_t first = x.warp->id * 32 + (row.copies ? x.block->threads : 0);
    const std::uint64_t rest = Record::make(0, x.block->number, first, scope, 15).bits;
    std::uint64_t differ = 0;
    for (unsigned l = 0; l < 32; ++l) {
      own[l] = rest | std::uint64_t{epoch[l]} << Record::kEpochShift;
      differ |= own[l] ^ own[0];
    }
    one_epoch = differ == 0;
  }
  static constexpr unsigned kCount = 32 * words;
  bool exempt(Record r, std::uint32_t r_pc) const {
    return row.strength != Strength::volatile_ && r.agent() < kAgents &&
           strong_together(x, r, r_pc, row.strength, pc);
  }
  bool known(unsigned word, Record r) const {
    if (r.agent() >= kAgents) return false;  // of several threads
    const unsigned lane = word / words;
    return precedes(x, target, r, row.copies ? copy_actor(x, lane) : thread_actor(x, lane));
  }
  bool same_readers() const;
  bool consecutive_writers() const;
  bool writers_known() const;
  bool plain(bool same) const;
  bool readers_join() const;
  bool readers_known() const;
  void record_read();
  void record_joint_read();
  void record_same_joint_read();
  void record_write();
  bool only_me(unsigned word) const;
  bool joins(unsigned word) const;
};

/// All words have the same record of readers: one look suffices.
template <unsigned words>
bool Row<words>::same_readers() const {
  std::uint64_t differ = 0;
  for (unsigned i = 0; i < kCount; ++i)
    differ |= view.reader[i] ^ view.reader[0];
  return differ == 0;
}

/// The lanes of one warp, in order, wrote the words in one epoch.
template <unsigned words>
bool Row<words>::consecutive_writers() const {
  std::uint64_t differ = 0;
  for (unsigned i = 0; i < kCount; ++i) {
    const std::uint64_t lane = std::uint64_t{i / words} << Record::kAgentShift;
    differ |= (view.writer[i] - lane) ^ view.writer[0];
  }
  return differ == 0;
}

/// A thread's own earlier write is in order too: its record differs in epoch, scope, mask only.
template <unsigned words>
bool Row<words>::writers_known() const {
  const Record one{view.writer[0]}, last{view.writer[kCount - 1]};
  if (consecutive_writers()) {
    if (settled(one.bits) && settled(last.bits)) return true;
    if (last.agent() / 32 == one.agent() / 32 && warp_precedes(x, one)) return true;
  }
  bool good = true;
  for (unsigned i = 0; i < kCount; ++i) {
    const std::uint64_t me = own[i / words] + (std::uint64_t{i / words} << Record::kAgentShift);
    const std::uint64_t w = view.writer[i];
    good &= settled(w) | (((w ^ me) & Record::kWho) == 0);
  }
  if (good) return true;
  for (unsigned i = 0; i < kCount; ++i) {
    const Record w{view.writer[i]};
    if (!settled(w.bits) && !exempt(w, view.writer_pc[i]) && !known(i, w)) return false;
  }
  return true;
}

/// The only earlier reader of the word is the lane that accesses it now, by weak reads.
template <unsigned words>
bool Row<words>::only_me(unsigned i) const {
  constexpr std::uint64_t kRest = Record::kWho | std::uint64_t{7} << Record::kScopeShift;
  return ((view.reader[i] ^ own[i / words]) & kRest) == 0 && scope == 0 &&
         view.lanes[i] == 1U << (i / words);
}

/// Other warps read the word since the block's last barrier, and so does this one.
template <unsigned words>
bool Row<words>::joins(unsigned i) const {
  const Record r{view.reader[i]};
  const std::uint32_t floor = x.block->floor.epoch + 1;
  return r.block() == x.block->number && r.epoch() == floor && r.scope() == 0 && scope == 0 &&
         r.mask() == 15 && x.warp->clocks.epoch[i / words] == floor &&
         (r.agent() < x.block->threads || r.agent() == kManyWarps);
}

template <unsigned words>
bool Row<words>::readers_join() const {
  for (unsigned i = 0; i < kCount; ++i) {
    const std::uint64_t r = view.reader[i];
    const bool same = r == own[i / words] && scope == 0;
    if (!settled(r) && !same && !only_me(i) && !joins(i)) return false;
  }
  return true;
}

template <unsigned words>
void Row<words>::record_read() {
  const ShadowView& v = view;
  for (unsigned i = 0; i < kCount; ++i) {
    const std::uint32_t bit = 1U << (i / words);
    const bool same = v.reader[i] == own[i / words];
    v.lanes[i] = same ? v.lanes[i] | bit : bit;
    v.reader[i] = own[i / words];
    v.reader_pc[i] = pc;
  }
}

template <unsigned words>
void Row<words>::record_joint_read() {
  const ShadowView& v = view;
  for (unsigned i = 0; i < kCount; ++i) {
    const std::uint32_t bit = 1U << (i / words);
    const Record r{v.reader[i]};
    const bool same = r.bits == own[i / words];
    v.reader_pc[i] = pc;
    if (same || settled(r.bits) || !joins(i)) {
      v.lanes[i] = same ? v.lanes[i] | bit : bit;
      v.reader[i] = own[i / words];
      continue;
    }
    const std::uint32_t warps = r.agent() == kManyWarps ? v.lanes[i] : 1U << (r.agent() / 32);
    v.lanes[i] = warps | 1U << x.warp->id;
    v.reader[i] = Record::make(r.epoch(), x.block->number, kManyWarps, 0, 15).bits;
  }
}

/// A write must know of every reader: threads of one warp, or one asynchronous copy.
template <unsigned words>
bool Row<words>::readers_known() const {
  for (unsigned i = 0; i < kCount; ++i) {
    const Record r{view.reader[i]};
    if (settled(r.bits) || only_me(i) || exempt(r, view.reader_pc[i]) || warp_precedes(x, r))
      continue;
    if (r.agent() >= kAgents) return false;
    if (r.agent() >= x.grid->threads()) {
      if (!known(i, r)) return false;
      continue;
    }
    const std::uint32_t first = r.agent() & ~31U;
    for (std::uint32_t left = view.lanes[i]; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
      if (!known(i, Record::make(r.epoch(), r.block(), first + lane, 0, 15))) return false;
    }
  }
  return true;
}

/// Whole lines are back at one record each.
template <unsigned words>
void Row<words>::record_write() {
  if (one_epoch && target.word % ShadowLine::kWords == 0) {
    for (unsigned i = 0; i < kCount; i += ShadowLine::kWords) {
      ShadowLine& line = target.map->line(target.word + i);
      line = {};
      line.writer = own[0] + (std::uint64_t{i / words} << Record::kAgentShift);
      line.writer_shift = std::countr_zero(words);
      line.writer_pc = pc;
    }
    return;
  }
  for (unsigned i = 0; i < kCount; ++i) {
    view.writer[i] = own[i / words] + (std::uint64_t{i / words} << Record::kAgentShift);
    view.reader[i] = 0;
    view.writer_pc[i] = pc;
  }
}

template <unsigned words>
bool Row<words>::plain(bool same) const {
  bool good = true;
  for (unsigned i = 0; i < (same ? 1 : kCount); ++i) {
    const std::uint64_t r = view.reader[i];
    const bool mine = r == own[i / words];
    good &= settled(r) | (mine & (row.access == Access::read) & (scope == 0));
  }
  return good;
}

/// Records a read where all words had the same readers, from other warps.
template <unsigned words>
void Row<words>::record_same_joint_read() {
  const ShadowView& v = view;
  const Record r{v.reader[0]};
  const bool many = r.agent() == kManyWarps;
  const std::uint32_t both = 1U << x.warp->id | (many ? 0 : 1U << (r.agent() / 32));
  const std::uint32_t keep = many ? ~std::uint32_t{0} : 0;
  const std::uint64_t bits = Record::make(r.epoch(), x.block->number, kManyWarps, 0, 15).bits;
  for (unsigned i = 0; i < kCount; ++i) {
    v.lanes[i] = (v.lanes[i] & keep) | both;
    v.reader[i] = bits;
    v.reader_pc[i] = pc;
  }
}

template <unsigned words>
bool note(Exec& x, const ShadowTarget& target, const RowAccess& access) {
  Row<words> row(x, target, access);
  if (!row.writers_known()) return false;
  const bool same = row.same_readers() && row.one_epoch;
  const bool plain = row.plain(same);
  if (access.access != Access::read) {
    if (!plain && !row.readers_known()) return false;
    row.record_write();
    return true;
  }
  if (plain) {
    row.record_read();
    return true;
  }
  if (same && row.joins(0) && Record{row.view.reader[0]}.agent() / 32 != x.warp->id) {
    row.record_same_joint_read();
    return true;
  }
  if (!row.readers_join()) return false;
  row.record_joint_read();
  return true;
}

}  // namespace

Settled::Settled(const Exec& x, const ShadowTarget& target)
    : block(x.block->number),
      threads(x.block->threads),
      epochs_end(std::uint64_t{x.block->floor.epoch + 1} << Record::kEpochShift),
      copies_end(std::uint64_t{x.block->floor.copies + 1} << Record::kEpochShift),
      first(target.owner != nullptr ? 0 : x.run->first_unordered),
      alone(target.owner != nullptr && x.block->cluster->blocks.size() == 1) {}

bool note_row(Exec& x, const ShadowTarget& target, const RowAccess& row) {
  if (note_row_lines(x, target, row)) return true;
  if (row.words == 1) return note<1>(x, target, row);
  return row.words == 2 ? note<2>(x, target, row) : note<4>(x, target, row);
}

bool note_broadcast(Exec& x, std::uint32_t mask, const ShadowTarget& target, const RowAccess& row) {
  std::uint32_t epoch = 0;
  if (!one_epoch(x.warp->clocks, mask, epoch)) return false;
  const Settled settled(x, target);
  const auto scope = static_cast<std::uint32_t>(row.strength);
  const std::uint32_t pc = row.sized(x.pc);
  const std::uint64_t own = Record::make(epoch, x.block->number, x.warp->id * 32, scope, 15).bits;
  const ShadowView v = target.map->view(target.word, row.words);
  const bool at_floor = epoch == x.block->floor.epoch + 1;
  for (unsigned i = 0; i < row.words; ++i) {
    if (!settled(v.writer[i])) return false;
    const Record r{v.reader[i]};
    const bool mine = r.block() == x.block->number;
    const bool same = r.bits == own && ((v.reader_pc[i] ^ pc) & ~kPcMask) == 0;
    const bool many = mine && r.agent() == kManyWarps;
    const bool joins = mine && at_floor && r.epoch() == epoch && r.scope() == 0 && scope == 0 &&
                       r.mask() == 15 && (many || r.agent() < x.block->threads);
    if (!settled(r.bits) && !same && !joins) return false;
  }
  for (unsigned i = 0; i < row.words; ++i) {
    const Record r{v.reader[i]};
    const bool same = r.bits == own;
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
    v.reader_pc[i] = pc;
  }
  return true;
}

}  // namespace tilewright::emu::detail
