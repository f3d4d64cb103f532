// SPDX-License-Identifier: Apache-2.0
// mbarrier instructions: init, inval, arrive, expect_tx, complete_tx, test_wait, try_wait.
#include "emu/mbarrier.h"

#include "emu/handlers.h"

#include <bit>

namespace tilewright::emu::detail {

namespace {

constexpr std::uint32_t kMaxCount = (1U << 20) - 1;  ///< PTX ISA, mbarrier: valid ranges
constexpr std::int64_t kMaxTx = (1 << 20) - 1;

void misuse(Exec& x, unsigned lane, std::string message, Severity severity = Severity::error,
            bool too_early = false) {
  if (!x.checks(Kind::mbarrier_misuse)) return;
  report(x, {.kind = Kind::mbarrier_misuse,
             .severity = severity,
             .lane = lane,
             .message = std::move(message),
             .range = {},
             .other = {},
             .too_early = too_early});
}

const Slot& operand(const Inst& in, int i) {
  return in.slot[in.info->start[static_cast<std::size_t>(i)]];
}

struct Place8 {
  Space space = Space::shared;
  std::uint64_t address = 0;
};

Place8 place_of(const OpInfo& info, std::uint64_t address) {
  if (info.space != Space::generic) return {info.space, address};
  if (space_of(address) == Space::shared) return {Space::shared_cluster, address % kWindowBytes};
  return {Space::global, address};  // refused by find_mbarrier
}

void note(Exec& x, unsigned lane, Place8 p, const Located& l, Access access, Strength strength) {
  if (!l.shadowed) return;
  note_access(x, lane, l.target, p.address, 8, access, strength, thread_actor(x, lane));
}

/// An mbarrier and its bytes.
struct Object {
  Mbarrier* barrier = nullptr;  ///< null if something was reported
  Located at;
};
Object find_object(Exec& x, unsigned lane, Place8 p);
void check_init(Exec& x, unsigned lane, const ShadowTarget& target, const Mbarrier& m);

/// Whether mbarrier.inval is held against who used the mbarrier.
bool checks_users(const Exec& x) { return race_checked(x) && x.checks(Kind::race); }

/// Lanes use the mbarrier.
void add_users(const Exec& x, Mbarrier& m, std::uint32_t mask) {
  if (!checks_users(x)) return;
  const std::size_t rank = x.block->number - x.block->cluster->number;
  m.users.of_warp(rank * Clock::kWarps + x.warp->id).add(mask, x.pc, x.warp->clocks.epoch);
}

/// The mbarrier, used by a lane.
Mbarrier* use(Exec& x, unsigned lane, Place8 p) {
  const Object object = find_object(x, lane, p);
  if (object.barrier == nullptr) return nullptr;
  note(x, lane, p, object.at, Access::atomic, Strength::cluster);
  add_users(x, *object.barrier, 1U << lane);
  return object.barrier;
}

/// The mbarrier of a block at a shared address; null if there is none.
Mbarrier* look_up(Block& owner, std::uint64_t address) {
  const auto it = owner.mbarriers.find(static_cast<std::uint32_t>(address & 0xffffff));
  return it != owner.mbarriers.end() ? &it->second : nullptr;
}
/// The same of any address; reports nothing.
Mbarrier* look_up(const Exec& x, Place8 p) {
  const bool shared = p.space == Space::shared || p.space == Space::shared_cluster;
  Block* owner = shared ? owner_of(x, p.address) : nullptr;
  return owner != nullptr ? look_up(*owner, p.address) : nullptr;
}

std::uint64_t state_of(const Mbarrier& m) { return m.phase << 24 | m.pending; }

void initialize(Exec& x, const Inst& in, unsigned lane, Place8 p) {
  const auto count = static_cast<std::uint32_t>(x.value(operand(in, 1), lane));
  if (count < 1 || count > kMaxCount) {
    misuse(x, lane,
           "initialises an mbarrier with a count of " + std::to_string(count) + "; use 1 to " +
               std::to_string(kMaxCount));
  }
  Located l;
  if (!locate(x, lane, p.space, p.address, 8, 8, Purpose::update, l)) return;
  note(x, lane, p, l, Access::write, Strength::weak);
  set_initialized(l, 0, 8, true);
  Block* owner = owner_of(x, p.address);
  const auto key = static_cast<std::uint32_t>(p.address & 0xffffff);
  auto [it, fresh] = owner->mbarriers.try_emplace(key);
  if (!fresh) {
    misuse(
        x, lane,
        "initialises the mbarrier at shared address " + hex(key) + " again without mbarrier.inval",
        Severity::undefined);
  }
  it->second = {};
  it->second.expected = it->second.pending = count;
  it->second.init_pc = x.pc;
  const Actor actor = thread_actor(x, lane);
  it->second.init = Record::make(actor.epoch, x.block->number, actor.agent, 0, 15).bits;
  x.run->changed();
}

/// Nobody may use the object later than this.
void check_users(Exec& x, unsigned lane, const ShadowTarget& target, const Mbarrier& m) {
  if (!checks_users(x)) return;
  const Actor actor = thread_actor(x, lane);
  for (std::size_t warp = 0; warp < m.users.all().size(); ++warp) {
    const MbarrierUser& user = m.users.all()[warp];
    const auto rank = static_cast<std::uint32_t>(warp / Clock::kWarps);
    const std::uint32_t block = x.block->cluster->number + rank;
    const auto first = static_cast<std::uint32_t>(warp % Clock::kWarps * 32);
    bool known = user.lanes == 0;
    for_lanes(user.lanes, [&](unsigned l) {
      const Record use = Record::make(user.epoch[l], block, first + l, 0, 15);
      known = known || precedes(x, target, use, actor);
    });
    if (known) continue;
    const auto other = static_cast<std::uint32_t>(std::countr_zero(user.lanes));
    report(x, {.kind = Kind::race,
               .lane = lane,
               .message = "invalidates an mbarrier behind whose last uses it is not ordered; put a "
                          "barrier behind them",
               .range = {},
               .other = make_place(*x.grid, user.pc, x.grid->linear_of(block), first + other),
               .other_pc = user.pc});
    return;
  }
}

/// The object is gone: what was done to it is no access to the bytes that remain. Plain accesses
/// are, and those that follow come behind this.
void invalidate(Exec& x, unsigned lane, Place8 p) {
  const Object object = find_object(x, lane, p);
  if (object.barrier == nullptr) return;
  check_users(x, lane, object.at.target, *object.barrier);
  const ShadowView view = object.at.target.map->view(object.at.target.word, 2);
  for (int word = 0; word < 2; ++word) {
    if (Record{view.writer[word]}.scope() != 0) view.writer[word] = 0;
    if (Record{view.reader[word]}.scope() != 0) view.reader[word] = 0;
  }
  note(x, lane, p, object.at, Access::write, Strength::weak);
  owner_of(x, p.address)->mbarriers.erase(static_cast<std::uint32_t>(p.address & 0xffffff));
}

void expect(Exec& x, unsigned lane, Mbarrier& m, std::int64_t bytes) {
  m.tx += bytes;
  if (m.tx > kMaxTx || bytes < 0) {
    misuse(x, lane,
           "expects " + std::to_string(bytes) + " more bytes, " + std::to_string(m.tx) +
               " in all; the limit is " + std::to_string(kMaxTx));
  }
}

/// The operand is the same in all lanes of the mask.
bool is_uniform(const Exec& x, const Slot& slot) {
  if (!slot.in_frame) return true;
  const auto alike = [&](const auto* lanes) {
    const auto first = lanes[std::countr_zero(x.mask)];
    std::uint64_t differ = 0;
    for_lanes(x.mask, [&](unsigned lane) { differ |= lanes[lane] ^ first; });
    return differ == 0;
  };
  if (slot.cls == Class::b32) return alike(x.lanes<const std::uint32_t>(slot));
  return slot.cls == Class::b64 && alike(x.lanes<const std::uint64_t>(slot));
}

/// The lanes that stand for all of the mask where they know the same: the first and the last.
/// Whoever wrote the object, one of them is another thread.
struct Ends {
  unsigned first, last;
  explicit Ends(std::uint32_t mask)
      : first(static_cast<unsigned>(std::countr_zero(mask))),
        last(31U - static_cast<unsigned>(std::countl_zero(mask))) {}
};

/// The object that all lanes name, used by all of them; null if something is amiss.
Mbarrier* find_together(Exec& x, Place8 p) {
  const Ends ends(x.mask);
  const Object object = find_object(x, ends.first, p);
  if (object.barrier == nullptr) return nullptr;
  note(x, ends.first, p, object.at, Access::atomic, Strength::cluster);
  add_users(x, *object.barrier, x.mask);
  if (ends.last == ends.first) return object.barrier;
  check_init(x, ends.last, object.at.target, *object.barrier);
  note(x, ends.last, p, object.at, Access::atomic, Strength::cluster);
  return object.barrier;
}

/// The states that lanes see which arrive one after the other.
void write_states(Exec& x, const Slot& to, const Mbarrier& m) {
  std::uint64_t state = state_of(m);
  if (to.cls != Class::b64) {
    for_lanes(x.mask, [&](unsigned lane) { x.set(to, lane, state--); });
    return;
  }
  auto* const lanes = x.lanes<std::uint64_t>(to);
  for_lanes(x.mask, [&](unsigned lane) { lanes[lane] = state--; });
  x.defined(to) |= x.mask;
}

/// Plain arrivals of all lanes, once each, in one phase. False, with nothing done, if they are not.
bool arrive_together(Exec& x, const Inst& in) {
  const OpInfo& info = *in.info;
  const Slot& address = operand(in, 1);
  const bool plain = info.operands == 2 && !info.has<"noComplete">() && !info.has<"arrive_drop">();
  if (!plain || x.warp->clocks.each || !is_uniform(x, address)) return false;
  const Place8 p = place_of(
      info, x.value(address, Ends(x.mask).first) + static_cast<std::uint64_t>(info.offset[1]));
  const auto lanes = static_cast<std::uint32_t>(std::popcount(x.mask));
  const Mbarrier* known = look_up(x, p);
  if (known == nullptr || known->pending < lanes) return false;
  Mbarrier* m = find_together(x, p);
  if (m == nullptr) return true;
  if (!info.has<"relaxed">()) release_lanes(*x.warp, x.mask, m->arriving);
  write_states(x, operand(in, 0), *m);
  m->pending -= lanes;
  settle(*x.run, *m);
  return true;
}

void arrive(Exec& x, const Inst& in, unsigned lane, Place8 p) {
  const bool with_tx = in.info->has<"expect_tx">();
  const bool relaxed = in.info->has<"relaxed">();
  const OpInfo& info = *in.info;
  Mbarrier* m = use(x, lane, p);
  if (m == nullptr) return;
  std::uint32_t count = 1;
  if (with_tx) {
    expect(x, lane, *m, static_cast<std::int32_t>(x.value(operand(in, 2), lane)));
  } else if (info.operands > 2) {
    count = static_cast<std::uint32_t>(x.value(operand(in, 2), lane));
  }
  if (operand(in, 0).cls != Class::sink) x.set(operand(in, 0), lane, state_of(*m));
  if (count < 1 || count > m->pending) {
    misuse(x, lane,
           "arrives with a count of " + std::to_string(count) + " at the mbarrier at " +
               hex(p.address & 0xffffff) + ", where " + std::to_string(m->pending) +
               " arrivals are pending");
    return;
  }
  if (!relaxed) accumulate(m->arriving, release_snapshot(*x.warp, lane));
  m->pending -= count;
  if (in.info->has<"arrive_drop">()) m->expected -= std::min(count, m->expected);
  if (in.info->has<"noComplete">() && m->pending == 0 && m->tx == 0) {
    misuse(x, lane, "completes the phase, which .noComplete promises not to");
  }
  settle(*x.run, *m);
}

void change_tx(Exec& x, const Inst& in, unsigned lane, Place8 p) {
  Mbarrier* m = use(x, lane, p);
  if (m == nullptr) return;
  const auto bytes = static_cast<std::int32_t>(x.value(operand(in, 1), lane));
  if (in.info->has<"complete_tx">()) {
    complete_tx(*x.run, *m, bytes, nullptr);
  } else {
    expect(x, lane, *m, bytes);
    settle(*x.run, *m);
  }
}

bool is_complete(const Mbarrier& m, std::uint64_t state, bool parity) {
  return parity ? (m.phase & 1) != (state & 1) : m.phase > state >> 24;
}

/// All lanes look at one object, with one phase in mind.
void wait_together(Exec& x, const Inst& in) {
  const unsigned lane = Ends(x.mask).first;
  const Place8 p = place_of(
      *in.info, x.value(operand(in, 1), lane) + static_cast<std::uint64_t>(in.info->offset[1]));
  const Mbarrier* m = find_together(x, p);
  const bool done =
      m == nullptr || is_complete(*m, x.value(operand(in, 2), lane), in.info->has<"parity">());
  if (m != nullptr && done && !in.info->has<"relaxed">()) {
    acquire_lanes(*x.warp, x.mask, m->completed);
  }
  const Slot& answer = operand(in, 0);
  auto& lanes = *x.lanes<std::uint32_t>(answer);
  lanes = done ? lanes | x.mask : lanes & ~x.mask;
  x.defined(answer) |= x.mask;
  if (!done) x.split->polled = true;
}

/// All lanes ask for one phase of one object.
bool asks_together(const Exec& x, const Inst& in) {
  return is_uniform(x, operand(in, 1)) && is_uniform(x, operand(in, 2));
}

/// Lanes that see the phase complete; they acquire. `alike`: asks_together().
void wait(Exec& x, const Inst& in, bool alike) {
  if (!x.warp->clocks.each && operand(in, 0).cls == Class::pred && alike) {
    wait_together(x, in);
    return;
  }
  const bool parity = in.info->has<"parity">();
  std::uint32_t done = 0;
  SnapshotRef snapshot;
  std::uint32_t sharing = 0;
  auto flush = [&] {
    if (sharing != 0 && !in.info->has<"relaxed">()) acquire_lanes(*x.warp, sharing, snapshot);
    sharing = 0;
  };
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t at =
        x.value(operand(in, 1), lane) + static_cast<std::uint64_t>(in.info->offset[1]);
    const Place8 p = place_of(*in.info, at);
    const Mbarrier* m = use(x, lane, p);
    if (m == nullptr) {
      done |= 1U << lane;
      continue;
    }
    if (!is_complete(*m, x.value(operand(in, 2), lane), parity)) continue;
    done |= 1U << lane;
    if (m->completed != snapshot) flush();
    snapshot = m->completed;
    sharing |= 1U << lane;
  }
  flush();
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    x.set(operand(in, 0), lane, done >> lane & 1);
  }
  if ((x.mask & ~done) != 0) x.split->polled = true;
}

/// Every lane waits for a phase that is not complete. Anything odd is left to wait().
bool must_sleep(const Exec& x, const Inst& in, bool alike) {
  const bool parity = in.info->has<"parity">();
  const std::uint32_t lanes = alike ? x.mask & (0 - x.mask) : x.mask;  // or the first one
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t at =
        x.value(operand(in, 1), lane) + static_cast<std::uint64_t>(in.info->offset[1]);
    const Mbarrier* m = look_up(x, place_of(*in.info, at));
    if (m == nullptr || is_complete(*m, x.value(operand(in, 2), lane), parity)) return false;
  }
  return true;
}

/// try_wait suspends the thread. It gives up only once nothing else can happen.
Flow try_wait(Exec& x, const Inst& in) {
  Split& s = *x.split;
  const bool alike = asks_together(x, in);
  if (!s.timed_out && must_sleep(x, in, alike)) {
    s.wait = Wait::memory;
    s.asleep = true;
    s.seen_version = x.run->version;
    x.run->spinning.push_back(x.warp);
    return Flow::stop;
  }
  s.timed_out = false;
  wait(x, in, alike);
  if (!s.polled) return Flow::next;
  ++s.pc;
  return Flow::stop;
}

}  // namespace

Block* owner_of(const Exec& x, std::uint64_t address) {
  const auto rank = static_cast<std::size_t>(address >> kRankShift);
  const auto& blocks = x.block->cluster->blocks;
  return rank < blocks.size() ? blocks[rank] : nullptr;
}

namespace {

/// Is the object the lanes' own?
bool made_by(const Exec& x, const Mbarrier& m) {
  const Record init{m.init};
  return init.block() == x.block->number && init.agent() / 32 == x.warp->id &&
         (x.mask >> (init.agent() % 32) & 1) != 0;
}

/// A cluster barrier behind fence.mbarrier_init, which the thread has passed.
bool was_shown(const Exec& x, unsigned lane, const ShadowTarget& target, const Mbarrier& m) {
  const Cluster& c = *target.owner->cluster;
  const std::size_t thread = std::size_t{x.block->rank} * x.block->threads + x.warp->thread(lane);
  return m.published != 0 && c.phase >= m.published && thread < c.arrived_phase.size() &&
         c.arrived_phase[thread] >= m.published;
}

/// The init must be known to whoever uses the object: strong accesses since do not hide it.
void check_init(Exec& x, unsigned lane, const ShadowTarget& target, const Mbarrier& m) {
  const Record init{m.init};
  if (!race_checked(x) || precedes(x, target, init, thread_actor(x, lane))) return;
  if (!x.checks(Kind::race) || was_shown(x, lane, target, m)) return;
  const std::uint64_t block = x.grid->linear_of(init.block());
  report(x, {.kind = Kind::race,
             .lane = lane,
             .message = "uses an mbarrier whose mbarrier.init is not ordered before; put a barrier "
                        "behind the init",
             .range = {},
             .other = make_place(*x.grid, m.init_pc, block, init.agent()),
             .other_pc = m.init_pc});
}

Object find_object(Exec& x, unsigned lane, Place8 p) {
  Object out;
  if (p.space != Space::shared && p.space != Space::shared_cluster) {
    misuse(x, lane, "names an mbarrier at " + hex(p.address) + ", which is not in shared memory");
    return out;
  }
  if (!locate(x, lane, p.space, p.address, 8, 8, Purpose::update, out.at)) return out;
  out.barrier = look_up(*out.at.target.owner, p.address);
  if (out.barrier != nullptr) {
    check_init(x, lane, out.at.target, *out.barrier);
    return out;
  }
  misuse(x, lane,
         "uses an mbarrier at shared address " + hex(p.address & 0xffffff) +
             " that mbarrier.init has not made",
         Severity::error, true);
  // Recorded all the same: an init that comes later races with this.
  note(x, lane, p, out.at, Access::atomic, Strength::cluster);
  set_initialized(out.at, 0, 8, true);
  return out;
}

}  // namespace

Mbarrier* find_mbarrier(Exec& x, unsigned lane, Space space, std::uint64_t address) {
  return find_object(x, lane, {space, address}).barrier;
}

void fence_inits(Exec& x) {
  for (auto& [address, m] : x.block->mbarriers) {
    if (m.fenced || !made_by(x, m)) continue;
    m.fenced = true;
    Located l;
    const auto lane = static_cast<unsigned>(std::countr_zero(x.mask));
    const std::uint64_t at = std::uint64_t{x.block->rank} << kRankShift | address;
    if (!locate(x, lane, Space::shared, at, 8, 8, Purpose::update, l)) continue;
    // From here on check_init() alone judges who comes behind.
    const ShadowView view = l.target.map->view(l.target.word, 2);
    view.writer[0] = view.writer[1] = 0;
  }
}

void publish_inits(Exec& x, std::uint64_t phase) {
  for (auto& [address, m] : x.block->mbarriers) {
    if (m.fenced && m.published == 0 && made_by(x, m)) m.published = phase;
  }
}

void settle(Run& run, Mbarrier& m) {
  run.changed();
  if (m.pending != 0 || m.tx != 0) return;
  ++m.phase;
  run.phase_completed = true;
  m.pending = m.expected;
  m.completed = std::move(m.arriving);
  m.arriving = nullptr;
}

void complete_tx(Run& run, Mbarrier& m, std::int64_t bytes, const SnapshotRef& released) {
  m.tx -= bytes;
  accumulate(m.arriving, released);
  settle(run, m);
}

Flow exec_mbarrier(Exec& x, const Inst& in) {
  if (in.info->has<"pending_count">()) {
    for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(left));
      x.set(operand(in, 0), lane, x.value(operand(in, 1), lane) & 0xffffff);
    }
    return Flow::next;
  }
  if (in.info->has<"try_wait">()) return try_wait(x, in);
  if (in.info->has<"test_wait">()) {
    wait(x, in, asks_together(x, in));
    return Flow::next;
  }
  const bool arrives = in.info->has<"arrive">() || in.info->has<"arrive_drop">();
  if (arrives && arrive_together(x, in)) return Flow::next;
  const int address = arrives ? 1 : 0;
  for (std::uint32_t left = x.mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const std::uint64_t at =
        x.value(operand(in, address), lane) +
        static_cast<std::uint64_t>(in.info->offset[static_cast<std::size_t>(address)]);
    const Place8 p = place_of(*in.info, at);
    if (in.info->has<"init">()) {
      initialize(x, in, lane, p);
    } else if (in.info->has<"inval">()) {
      invalidate(x, lane, p);
    } else if (arrives) {
      arrive(x, in, lane, p);
    } else {
      change_tx(x, in, lane, p);
    }
  }
  return Flow::next;
}

}  // namespace tilewright::emu::detail
