// SPDX-License-Identifier: Apache-2.0
// The race check for accesses of whole 128-byte lines: one look at one record a line.
#include "emu/grid.h"
#include "emu/race_judge.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tilewright::emu::detail {

namespace {

constexpr unsigned kWords = ShadowLine::kWords;

Record next_agents(Record r, unsigned count) {
  return {r.bits + (std::uint64_t{count} << Record::kAgentShift)};
}

bool alike(const std::array<std::uint32_t, 32>& values) {
  std::uint32_t differ = 0;
  for (const std::uint32_t v : values)
    differ |= v ^ values[0];
  return differ == 0;
}

/// One row of a warp on lines that have a record each.
class LineRow {
 public:
  LineRow(Exec& x, const ShadowTarget& target, const RowAccess& row)
      : x_(x),
        target_(target),
        row_(row),
        settled_(x, target),
        shift_(static_cast<std::uint8_t>(std::countr_zero(row.words))) {
    const auto& epoch = row.copies ? x.warp->cp_epoch : x.warp->clocks.epoch;
    one_epoch_ = row.copies ? alike(epoch) : x.warp->clocks.in_one_epoch();
    const std::uint32_t first = x.warp->id * 32 + (row.copies ? x.block->threads : 0);
    const auto scope = static_cast<std::uint32_t>(row.strength);
    own_ = Record::make(epoch[0], x.block->number, first, scope, 15);
  }
  bool note();

 private:
  Exec& x_;
  const ShadowTarget& target_;
  const RowAccess& row_;
  Settled settled_;
  std::uint8_t shift_;
  bool one_epoch_ = false;
  Record own_;

  bool exempt(std::uint64_t bits, std::uint32_t pc) const {
    return row_.strength != Strength::volatile_ &&
           strong_together(x_, {bits}, pc, row_.strength, row_.sized(x_.pc));
  }
  bool known(Record first, unsigned shift, unsigned lane) const;
  bool writer_known(const ShadowLine& line, unsigned lane) const;
  bool warps_known(Record r, std::uint32_t warps) const;
  bool readers_known(const ShadowLine& line, unsigned lane) const;
  bool joins(const ShadowLine& line) const;
  bool can_read(const ShadowLine& line, unsigned lane) const;
  void record_read(ShadowLine& line, unsigned lane) const;
  void record_write(ShadowLine& line, unsigned lane) const;
};

/// Does each lane know the accesses of the words that it accesses? Agents `first`, and so on, have
/// `1 << shift` words each; the lanes from `lane` on have the line.
bool LineRow::known(Record first, unsigned shift, unsigned lane) const {
  const std::uint32_t last = first.agent() + ((kWords - 1) >> shift);
  if (last / 32 == first.agent() / 32 && warp_precedes(x_, first)) return true;
  const bool alike = !x_.warp->clocks.each && first.agent() >= x_.block->threads && !row_.copies;
  const unsigned step = 1U << (alike ? shift : std::min<unsigned>(shift, shift_));
  for (unsigned w = 0; w < kWords; w += step) {
    const unsigned at = lane + (w >> shift_);
    const Actor actor = row_.copies ? copy_actor(x_, at) : thread_actor(x_, at);
    if (!precedes(x_, target_, next_agents(first, w >> shift), actor)) return false;
  }
  return true;
}

bool LineRow::writer_known(const ShadowLine& line, unsigned lane) const {
  if (settled_(line.writer)) return true;
  const std::uint64_t own = next_agents(own_, lane).bits;
  if (((line.writer ^ own) & Record::kWho) == 0 && line.writer_shift == shift_) return true;
  if (exempt(line.writer, line.writer_pc)) return true;
  return known({line.writer}, line.writer_shift, lane);
}

bool LineRow::readers_known(const ShadowLine& line, unsigned lane) const {
  if (settled_(line.reader)) return true;
  const Record r{line.reader};
  if (exempt(r.bits, line.reader_pc)) return true;
  if (r.agent() == kManyWarps) return warps_known(r, line.lanes);
  if (r.agent() >= kAgents) return false;
  if (r.agent() >= x_.grid->threads()) return known(r, 5, lane);
  return known(next_agents(r, line.lanes), line.reader_shift, lane);
}

/// Is what the warps of a set did up to the record's epoch known? The set does not say which lanes
/// read, so that a thread need not know of its own warp.
bool LineRow::warps_known(Record r, std::uint32_t warps) const {
  if (r.block() == x_.block->number && !row_.copies) warps &= ~(1U << x_.warp->id);
  for (; warps != 0; warps &= warps - 1) {
    const auto warp = static_cast<std::uint32_t>(std::countr_zero(warps));
    const Record one = Record::make(r.epoch(), r.block(), warp * 32, r.scope(), 15);
    if (!warp_precedes(x_, one)) return false;
  }
  return true;
}

/// Other warps read the line since the block's last barrier, and so does this one.
bool LineRow::joins(const ShadowLine& line) const {
  const Record r{line.reader};
  const std::uint32_t next = x_.block->floor.epoch + 1;
  if (r.block() != x_.block->number || r.epoch() != next || own_.epoch() != next) return false;
  if (r.scope() != 0 || own_.scope() != 0) return false;
  return r.agent() == kManyWarps ||
         (r.agent() < x_.block->threads && r.agent() / 32 != x_.warp->id);
}

bool LineRow::can_read(const ShadowLine& line, unsigned lane) const {
  if (settled_(line.reader)) return true;
  if (line.reader == own_.bits && own_.scope() == 0)
    return line.lanes == lane && line.reader_shift == shift_;
  return joins(line);
}

void LineRow::record_read(ShadowLine& line, unsigned lane) const {
  const Record r{line.reader};
  line.reader_pc = row_.sized(x_.pc);
  if (settled_(r.bits) || r.bits == own_.bits) {
    line.reader = own_.bits;
    line.lanes = lane;
    line.reader_shift = shift_;
    return;
  }
  const std::uint32_t others = r.agent() == kManyWarps ? line.lanes : 1U << (r.agent() / 32);
  line.lanes = others | 1U << x_.warp->id;
  line.reader = Record::make(r.epoch(), x_.block->number, kManyWarps, 0, 15).bits;
}

void LineRow::record_write(ShadowLine& line, unsigned lane) const {
  line.writer = next_agents(own_, lane).bits;
  line.writer_shift = shift_;
  line.writer_pc = row_.sized(x_.pc);
  line.reader = 0;
}

bool LineRow::note() {
  if (!one_epoch_) return false;
  const unsigned lanes = kWords >> shift_;  // of a line
  for (unsigned i = 0; i < row_.words; ++i) {
    const ShadowLine& line = target_.map->line(target_.word + i * kWords);
    if (line.by_word || !writer_known(line, i * lanes)) return false;
    const bool read = row_.access == Access::read;
    if (read ? !can_read(line, i * lanes) : !readers_known(line, i * lanes)) return false;
  }
  for (unsigned i = 0; i < row_.words; ++i) {
    ShadowLine& line = target_.map->line(target_.word + i * kWords);
    if (row_.access == Access::read) {
      record_read(line, i * lanes);
    } else {
      record_write(line, i * lanes);
    }
  }
  return true;
}

void record_write(ShadowLine& line, const Exec& x, const Actor& actor) {
  line = {};
  line.writer = Record::make(actor.epoch, x.block->number, actor.agent, 0, 15).bits;
  line.writer_shift = 5;
  line.writer_pc = x.pc;
}

/// One line by one asynchronous operation.
bool note_line(Exec& x, const ShadowTarget& target, ShadowLine& line, Access access,
               const Actor& actor) {
  if (line.by_word) return false;
  if (line.reader != 0 && checks_overtaken(x, access, actor)) return false;
  for (unsigned w = 0; w < kWords && line.writer != 0; w += 1U << line.writer_shift) {
    if (!visible(x, target, {line.writer_of(w)}, actor)) return false;
  }
  const Settled settled(x, target);
  const Record own = Record::make(actor.epoch, x.block->number, actor.agent, 0, 15);
  const Record r{line.reader};
  if (access == Access::read) {
    if (!settled(r.bits)) return false;
    line.reader = own.bits;
    line.reader_pc = x.pc;
    line.lanes = 0;
    line.reader_shift = 5;
    return true;
  }
  if (!settled(r.bits)) {
    if (r.agent() >= kAgents) return false;
    const bool copy = r.agent() >= x.grid->threads();
    for (unsigned w = 0; w < kWords; w += copy ? kWords : 1U << line.reader_shift) {
      const unsigned lane = copy ? 0 : line.lanes + (w >> line.reader_shift);
      if (!precedes(x, target, next_agents(r, lane), actor)) return false;
    }
  }
  record_write(line, x, actor);
  return true;
}

}  // namespace

bool note_row_lines(Exec& x, const ShadowTarget& target, const RowAccess& row) {
  return target.word % kWords == 0 && LineRow(x, target, row).note();
}

std::int64_t note_lines(Exec& x, unsigned lane, const ShadowTarget& target, std::int64_t bytes,
                        Access access, const Actor& actor) {
  constexpr auto kBytes = static_cast<std::int64_t>(4 * kWords);
  if (target.word % kWords != 0 || target.address % (4 * kWords) != 0) return 0;
  std::int64_t done = 0;
  for (; bytes - done >= kBytes; done += kBytes) {
    ShadowTarget at = target;
    at.word += static_cast<std::size_t>(done / 4);
    at.address += static_cast<std::uint64_t>(done);
    ShadowLine& line = at.map->line(at.word);
    if (note_line(x, at, line, access, actor)) continue;
    note_access(x, lane, at, at.address, kBytes, access, Strength::weak, actor);
    if (access == Access::write) record_write(line, x, actor);
  }
  return done;
}

}  // namespace tilewright::emu::detail
