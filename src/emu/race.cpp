// SPDX-License-Identifier: Apache-2.0
// The race check by happens-before: what ran first on the host never matters.
#include "emu/race.h"

#include "emu/object.h"
#include "emu/past.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tilewright::emu::detail {

namespace {

struct Conflict {
  Record record;
  std::uint32_t thread = 0;  ///< agent of the other access
  std::uint32_t pc = 0;
  bool other_writes = false;
  std::uint32_t bytes = 15;  ///< of the word that this access touches
};

/// Records of blocks that used the same shared memory before, or of launches that have ended as far
/// as the actor knows.
bool stale(const Exec& x, const ShadowTarget& target, std::uint32_t block, const Actor& actor) {
  if (target.owner != nullptr) {
    const Cluster& c = *target.owner->cluster;
    return block - c.number >= c.blocks.size();
  }
  if (block >= x.run->grids[0]->first_number) return false;
  const Grid* launch = unordered_launch(*x.run, *x.grid, block);
  return launch == nullptr || find_block(actor.knowledge->foreign, launch->first_number) != nullptr;
}

bool knows_agent(const Exec& x, std::uint32_t block, std::uint32_t agent, std::uint32_t epoch,
                 const Actor& actor) {
  if (block == x.block->number) {
    if (agent == actor.agent || agent == actor.issuer) return true;
    if (epoch <= x.block->floor[agent]) return true;
    if (agent == x.block->cp_agent(actor.issuer) && epoch <= actor.copied) return true;
    const ClockRef& clock = actor.knowledge->generic;
    return clock && (*clock)[agent] >= epoch;
  }
  const Known* known = find_block(actor.knowledge->foreign, block);
  return known != nullptr && known->generic && (*known->generic)[agent] >= epoch;
}

bool async_knows(const Exec& x, const ShadowTarget& target, Record r, const Actor& actor) {
  if (stale(x, target, r.block(), actor)) return true;
  ClockRef clock;
  if (r.block() == x.block->number) {
    if (r.agent() >= x.block->threads) return true;  // itself of the asynchronous proxy
    clock = actor.knowledge->async;
  } else if (const Known* known = find_block(actor.knowledge->foreign, r.block())) {
    clock = known->async;
  }
  return clock && (*clock)[r.agent()] >= r.epoch();
}

bool include_each_other(const Exec& x, std::uint32_t other, std::uint32_t a, std::uint32_t b) {
  auto reach = [](std::uint32_t s) { return s == 5 ? 4U : s; };
  const std::uint32_t least = std::min(reach(a), reach(b));
  if (other == x.block->number) return true;
  const Cluster& c = *x.block->cluster;
  if (other - c.number < c.blocks.size()) return least >= 2;
  const Grid& g = *x.grid;
  const Grid* earlier = unordered_launch(*x.run, g, other);
  const bool same_device = earlier != nullptr
                               ? earlier->device == g.device
                               : other >= g.first_number && other - g.first_number < g.blocks;
  return least >= (same_device ? 3U : 4U);
}

std::string what(Access access) {
  switch (access) {
    case Access::read:
      return "reads";
    case Access::write:
      return "writes";
    case Access::atomic:
      return "updates";
  }
  return "";
}

Place other_place(const Exec& x, const Conflict& c) {
  const Grid* earlier = unordered_launch(*x.run, *x.grid, c.record.block());
  const Grid* grid = earlier != nullptr ? earlier : x.grid;
  for (const auto& g : x.run->grids) {
    if (c.record.block() >= g->first_number && c.record.block() - g->first_number < g->blocks) {
      grid = g.get();
    }
  }
  const std::uint64_t linear = grid->linear_of(c.record.block());
  const std::uint32_t threads = grid->threads();
  Place p = make_place(*grid, c.pc, linear, c.thread % threads);
  if (c.thread >= 2 * threads) {
    p.agent = "bulk copy";
    p.thread = {0, 0, 0};
  } else if (c.thread >= threads) {
    p.agent = "cp.async";
  }
  return p;
}

struct Judged {
  Kind kind = Kind::race;
  Severity severity = Severity::error;
  std::string why;
};

/// Would a fence behind an atomic that the thread executed make the other access known? Locks are
/// often taken so; hardware keeps that order.
bool awaits_fence(const Conflict& c, const Actor& actor) {
  for (const Released& r : actor.knowledge->pending) {
    if (!r.by_update) continue;
    const Known* known = find_block(r.snapshot, c.record.block());
    if (known != nullptr && known->generic && (*known->generic)[c.thread] >= c.record.epoch()) {
      return true;
    }
  }
  return false;
}

Judged judge(const Exec& x, const Conflict& c, Strength strength, const Actor& actor, bool equal) {
  Judged j;
  const bool mine = c.record.block() == x.block->number;
  const std::uint32_t threads = x.block->threads;
  if (c.thread >= threads || (actor.agent >= threads && !c.other_writes)) {
    j.kind = Kind::async_in_flight;
    j.why = c.thread >= threads ? "without waiting for the asynchronous copy"
                                : "while an access to it is not ordered before the copy";
    return j;
  }
  if (mine && c.thread / 32 == actor.agent / 32) {
    j.kind = Kind::unordered;
    const bool volatile_ = strength == Strength::volatile_ && c.record.scope() == 5;
    if (volatile_) j.severity = Severity::undefined;
    j.why = "with no bar.warp.sync between lanes of the warp";
  } else {
    const Grid* earlier = unordered_launch(*x.run, *x.grid, c.record.block());
    j.why = mine                 ? "with no barrier between"
            : earlier == nullptr ? "with no synchronisation between the blocks"
            : earlier == x.grid->awaited
                ? "of an earlier launch with no griddepcontrol.wait before"
                : "of an earlier launch with no event or wait between the streams";
    if (strength != Strength::weak && c.record.scope() != 0) {
      j.why = "with scopes that do not include each other";
    }
  }
  if (equal) {
    j.severity = Severity::advice;
    j.why += "; both write the same value";
  } else if (awaits_fence(c, actor)) {
    j.severity = Severity::advice;
    j.why = "ordered only by an atomic without .acquire; add a fence behind it";
  }
  return j;
}

void report_conflict(Exec& x, unsigned lane, const ShadowTarget& target, std::uint64_t word,
                     Access access, Strength strength, const Actor& actor, const Conflict& c,
                     bool equal) {
  Judged j = judge(x, c, strength, actor, equal);
  if (!x.checks(j.kind)) return;
  const std::uint64_t address =
      target.address + 4 * word + static_cast<unsigned>(std::countr_zero(c.bytes));
  const auto bytes = static_cast<std::uint32_t>(std::popcount(c.bytes));
  report(x,
         {.kind = j.kind,
          .severity = j.severity,
          .lane = lane,
          .message =
              (actor.name.empty() ? what(access) : std::string(actor.name) + " " + what(access)) +
              " " + std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes") + " at " +
              describe_address(x, target, address) + " that " +
              (c.other_writes ? "were written" : "were read") + " by another party " + j.why,
          .range = Range{space_name(target.space), address, bytes, object_name(x, target, address)},
          .other = other_place(x, c),
          .other_pc = c.pc});
}

/// One word of one access.
struct WordAccess {
  Exec& x;
  unsigned lane;
  const ShadowTarget& target;
  const ShadowView& view;
  std::uint64_t word;
  std::uint32_t mask;
  Access access;
  Strength strength;
  const Actor& actor;
  bool equal;

  bool exempt(Record r) const {
    // Strong accesses do not race; lanes of a warp that exchange values by volatile ones do wait
    // for an order that nothing promises.
    if (!strong_together(x, r, strength)) return false;
    const bool both_volatile = strength == Strength::volatile_ && r.scope() == 5;
    return !(both_volatile && r.block() == x.block->number && r.agent() / 32 == actor.agent / 32);
  }
  void conflict(Record r, std::uint32_t thread, std::uint32_t pc, bool writes) const {
    report_conflict(x, lane, target, word, access, strength, actor, {r, thread, pc, writes, mask},
                    equal && writes);
  }
  void check_writer() const {
    const Record r{view.writer[word]};
    if (r.bits == 0 || (r.mask() & mask) == 0) return;
    const bool harmless = exempt(r);
    if (harmless && !actor.async_proxy) return;
    if (precedes(x, target, r, actor)) {
      check_proxy(r);
      return;
    }
    if (!harmless) conflict(r, r.agent(), view.writer_pc[word], true);
  }
  void check_proxy(Record r) const {
    if (!actor.async_proxy || async_knows(x, target, r, actor)) return;
    if (!x.checks(Kind::proxy_fence)) return;
    const std::uint64_t address = target.address + 4 * word;
    report(x,
           {.kind = Kind::proxy_fence,
            .lane = lane,
            .message = "lets the " + std::string(actor.name) + " " +
                       what(access).substr(0, what(access).size() - 1) + " 4 bytes at " +
                       describe_address(x, target, address) +
                       " that were written by an ordinary store with no fence.proxy.async "
                       "between",
            .range = Range{space_name(target.space), address, 4, object_name(x, target, address)},
            .other = other_place(x, {r, r.agent(), view.writer_pc[word], true})});
  }
  bool by_half() const { return (view.reader_pc[word] & kByHalf) != 0; }
  Halves halves() const;
  void set_halves(Halves all) const;
  void add_to_halves(Halves before, std::uint32_t bit) const;
  void check_readers() const;
  void record_read() const;
  void record_other_block(Record r, std::uint32_t scope) const;
  void set_reader(std::uint32_t epoch, std::uint32_t block, std::uint32_t agent,
                  std::uint32_t scope, std::uint32_t lanes) const;
  void add_reader(Record r, std::uint32_t scope, std::uint32_t bit) const;
  void record_write() const;
};

constexpr std::uint32_t kLow = 3, kHigh = 12;  // bytes of a word's halves

Halves WordAccess::halves() const {
  if (by_half()) return target.map->halves(target.word + word);
  const std::uint32_t bytes = Record{view.reader[word]}.mask();
  const std::uint32_t set = view.lanes[word];
  return {(bytes & kLow) != 0 ? set : 0, (bytes & kHigh) != 0 ? set : 0};
}

void WordAccess::set_halves(Halves all) const {
  target.map->halves(target.word + word) = all;
  view.reader_pc[word] |= kByHalf;
}

void WordAccess::add_to_halves(Halves before, std::uint32_t bit) const {
  if ((mask & kLow) != 0) before.low |= bit;
  if ((mask & kHigh) != 0) before.high |= bit;
  set_halves(before);
}

void WordAccess::check_readers() const {
  const Record r{view.reader[word]};
  if (r.bits == 0 || (r.mask() & mask) == 0 || stale(x, target, r.block(), actor)) return;
  if (r.block() == x.block->number && r.epoch() <= x.block->floor.epoch &&
      (r.agent() < x.block->threads || r.agent() >= kReaderList)) {
    return;
  }
  if (exempt(r)) return;
  if (target.owner == nullptr && r.block() < x.run->grids[0]->first_number) {
    conflict(r, r.agent() < kAgents ? r.agent() : 0, view.reader_pc[word], false);
    return;
  }
  const Halves each = halves();
  std::uint32_t lanes = view.lanes[word];
  const std::uint32_t pc = view.reader_pc[word] & ~kByHalf;
  if (by_half() && r.agent() != kManyBlocks) {
    lanes = ((mask & kLow) != 0 ? each.low : 0) | ((mask & kHigh) != 0 ? each.high : 0);
  }
  auto check = [&](std::uint32_t warp, std::uint32_t set, std::uint32_t epoch, std::uint32_t at) {
    for (std::uint32_t left = set; left != 0; left &= left - 1) {
      const std::uint32_t t = warp * 32 + static_cast<std::uint32_t>(std::countr_zero(left));
      if (knows_agent(x, r.block(), t, epoch, actor)) continue;
      conflict(r, t, at, false);
      return false;
    }
    return true;
  };
  if (r.agent() == kReaderList) {
    const Block* owner = r.block() == x.block->number ? x.block : x.grid->block_of(r.block());
    if (owner == nullptr || r.epoch() <= owner->floor.epoch) {  // the list is no more
      if (find_block(actor.knowledge->foreign, r.block()) == nullptr) conflict(r, 0, pc, false);
      return;
    }
    for (const Reader& reader : owner->reader_lists[lanes]) {
      if (!check(reader.warp, reader.lanes, reader.epoch, reader.pc)) return;
    }
  } else if (r.agent() == kManyWarps) {
    for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
      const auto warp = static_cast<std::uint32_t>(std::countr_zero(left));
      if (r.block() == x.block->number && warp == actor.agent / 32 &&
          actor.agent < x.block->threads) {
        continue;
      }
      bool any = false;
      for (std::uint32_t l = 0; l < 32 && !any; ++l) {
        any = knows_agent(x, r.block(), warp * 32 + l, r.epoch(), actor);
      }
      if (any) continue;
      conflict(r, warp * 32, pc, false);
      return;
    }
  } else if (r.agent() == kManyBlocks) {
    for (const std::uint32_t block : {r.block(), lanes}) {
      const std::uint32_t bytes = block == r.block() ? each.low : each.high;
      if (by_half() && (bytes & mask) == 0) continue;
      if (block == x.block->number || find_block(actor.knowledge->foreign, block) != nullptr) {
        continue;
      }
      conflict(Record::make(r.epoch(), block, 0, r.scope(), r.mask()), 0, pc, false);
      return;
    }
  } else if (r.agent() >= x.grid->threads()) {
    if (!knows_agent(x, r.block(), r.agent(), r.epoch(), actor)) {
      conflict(r, r.agent(), pc, false);
    }
  } else {
    check(r.agent() / 32, lanes, r.epoch(), pc);
  }
}

void WordAccess::record_write() const {
  const auto scope = static_cast<std::uint32_t>(strength);
  view.writer[word] = Record::make(actor.epoch, x.block->number, actor.agent, scope, mask).bits;
  view.writer_pc[word] = x.pc;
  if (mask == 15) view.reader[word] = 0;
}

/// The strength of several readers together: that of the weakest.
std::uint32_t weakest(std::uint32_t a, std::uint32_t b) {
  if (a == 0 || b == 0) return 0;
  return a == 5 ? b : b == 5 ? a : std::min(a, b);
}

void WordAccess::set_reader(std::uint32_t epoch, std::uint32_t block, std::uint32_t agent,
                            std::uint32_t scope, std::uint32_t lanes) const {
  const ShadowView v = view;
  const std::uint32_t old = Record{v.reader[word]}.mask();
  v.reader[word] = Record::make(epoch, block, agent, scope, mask | old).bits;
  v.lanes[word] = lanes;
  v.reader_pc[word] = x.pc;
}

void WordAccess::record_read() const {
  const ShadowView v = view;
  const Record r{v.reader[word]};
  const auto scope = static_cast<std::uint32_t>(strength);
  const std::uint32_t bit = 1U << (actor.agent & 31);
  const std::uint32_t threads = x.block->threads, number = x.block->number;
  const bool thread = actor.agent < threads;
  const bool mine = r.block() == number;
  const bool settled = r.bits == 0 || stale(x, target, r.block(), actor) ||
                       (mine && r.epoch() <= x.block->floor.epoch &&
                        (r.agent() < threads || r.agent() >= kReaderList));
  if (settled) {
    v.reader[word] = 0;
    set_reader(actor.epoch, number, thread ? actor.agent & ~31U : actor.agent, scope, bit);
    return;
  }
  const std::uint32_t both = weakest(r.scope(), scope);
  if (!mine || r.agent() == kManyBlocks) {
    record_other_block(r, both);
    return;
  }
  const Halves before = halves();
  const bool split = by_half() || r.mask() != mask;
  const bool plain = r.agent() < threads && thread;
  if (plain && r.agent() / 32 == actor.agent / 32 && r.epoch() == actor.epoch) {
    set_reader(r.epoch(), number, r.agent(), both, v.lanes[word] | bit);
    if (split) add_to_halves(before, bit);
    return;
  }
  const bool many = r.agent() == kManyWarps;
  const std::uint32_t floor = x.block->floor.epoch + 1;
  if (actor.epoch == floor && r.epoch() == floor && thread && (plain || many)) {
    const std::uint32_t other = many ? 0 : 1U << (r.agent() / 32), me = 1U << (actor.agent / 32);
    set_reader(floor, number, kManyWarps, both, (many ? v.lanes[word] : other) | me);
    if (!split) return;
    add_to_halves(many ? before : Halves{before.low != 0 ? other : 0, before.high != 0 ? other : 0},
                  me);
    return;
  }
  if (plain || r.agent() == kReaderList) {
    add_reader(r, both, bit);
    return;
  }
  // A thread's read does not make an unfinished copy's read forgotten.
  const bool copy = r.agent() >= threads && r.agent() < kAgents;
  if (copy && thread && !knows_agent(x, number, r.agent(), r.epoch(), actor)) return;
  set_reader(actor.epoch, number, thread ? actor.agent & ~31U : actor.agent, scope, bit);
}

/// Two blocks have read the word: the record names one, `lanes` the other that read it later.
void WordAccess::record_other_block(Record r, std::uint32_t scope) const {
  const std::uint32_t number = x.block->number;
  const bool many = r.agent() == kManyBlocks;
  Halves bytes{r.mask(), r.mask()};
  if (many && by_half()) bytes = halves();
  std::uint32_t first = r.block(), second = view.lanes[word];
  if (many && (first == number || second == number)) {
    (first == number ? bytes.low : bytes.high) |= mask;
  } else {
    if (many) {
      first = second;
      bytes.low = bytes.high;
    }
    second = number;
    bytes.high = mask;
  }
  set_reader(r.epoch(), first, kManyBlocks, scope, second);
  if (bytes.low != 15 || bytes.high != 15) set_halves(bytes);
}

/// Readers of several warps with several epochs: a list, until the next barrier of the block.
void WordAccess::add_reader(Record r, std::uint32_t scope, std::uint32_t bit) const {
  const ShadowView v = view;
  std::uint32_t index = v.lanes[word];
  if (r.agent() != kReaderList) {
    const Reader first{r.agent() / 32, r.epoch(), v.lanes[word], v.reader_pc[word] & ~kByHalf};
    index = x.block->take_list();
    x.block->reader_lists[index].assign(1, first);
  }
  set_reader(x.block->floor.epoch + 1, x.block->number, kReaderList, scope, index);
  auto& list = x.block->reader_lists[index];
  for (Reader& reader : list) {
    if (reader.warp != actor.agent / 32) continue;
    if (reader.epoch != actor.epoch) reader.lanes = 0;
    reader.epoch = actor.epoch;
    reader.lanes |= bit;
    reader.pc = x.pc;
    return;
  }
  list.push_back({actor.agent / 32, actor.epoch, bit, x.pc});
}

}  // namespace

Actor thread_actor(Exec& x, unsigned lane) {
  const std::uint32_t thread = x.warp->thread(lane);
  LaneClocks& c = x.warp->clocks;
  return {thread, c.epoch[lane], &c.lane(lane), thread, c.copied[lane], false, {}};
}

Actor copy_actor(Exec& x, unsigned lane) {
  Actor actor = thread_actor(x, lane);
  actor.agent = x.block->cp_agent(actor.issuer);
  actor.epoch = x.warp->cp_epoch[lane];
  actor.name = "cp.async";
  return actor;
}

bool visible(const Exec& x, const ShadowTarget& target, Record write, const Actor& actor) {
  return precedes(x, target, write, actor) &&
         (!actor.async_proxy || async_knows(x, target, write, actor));
}

bool precedes(const Exec& x, const ShadowTarget& target, Record r, const Actor& actor) {
  if (r.block() == x.block->number) {
    return knows_agent(x, r.block(), r.agent(), r.epoch(), actor);
  }
  return stale(x, target, r.block(), actor) ||
         knows_agent(x, r.block(), r.agent(), r.epoch(), actor);
}

bool strong_together(const Exec& x, Record r, Strength strength) {
  return strength != Strength::weak && r.scope() != 0 &&
         include_each_other(x, r.block(), r.scope(), static_cast<std::uint32_t>(strength));
}

bool warp_precedes(const Exec& x, Record r) {
  if (x.warp->clocks.each || r.agent() >= x.block->threads) return false;
  const Knowledge& common = x.warp->clocks.common;
  const Clock* clock = common.generic.get();
  if (r.block() != x.block->number) {
    const Known* known = find_block(common.foreign, r.block());
    clock = known != nullptr ? known->generic.get() : nullptr;
  }
  return clock != nullptr && clock->of_warp(r.agent() / 32) >= r.epoch();
}

void note_access(Exec& x, unsigned lane, const ShadowTarget& target, std::uint64_t address,
                 std::int64_t bytes, Access access, Strength strength, const Actor& actor,
                 const std::byte* fresh, const std::byte* old) {
  const std::uint64_t begin = address - target.address;
  const std::uint64_t end = begin + static_cast<std::uint64_t>(bytes);
  const ShadowView view = target.map->view(target.word, (end + 3) / 4);
  for (std::uint64_t word = begin / 4; word * 4 < end; ++word) {
    const std::uint64_t from = std::max(begin, word * 4);
    const std::uint64_t to = std::min(end, word * 4 + 4);
    const auto mask = static_cast<std::uint32_t>(((1U << (to - from)) - 1) << (from - word * 4));
    const bool equal = fresh != nullptr &&
                       std::memcmp(fresh + (from - begin), old + (from - begin), to - from) == 0;
    const WordAccess a{x, lane, target, view, word, mask, access, strength, actor, equal};
    a.check_writer();
    if (access == Access::read) {
      a.record_read();
    } else {
      a.check_readers();
      a.record_write();
    }
  }
}

}  // namespace tilewright::emu::detail
