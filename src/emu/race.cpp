// SPDX-License-Identifier: Apache-2.0
// The race check by happens-before: what ran first on the host never matters.
#include "emu/race.h"

#include "emu/object.h"
#include "emu/past.h"
#include "emu/race_judge.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

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

namespace {

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
  Place p = make_place(*grid, c.pc & kPcMask, linear, c.thread % threads);
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

bool same_size(std::uint32_t pc, std::uint32_t other) { return ((pc ^ other) & ~kPcMask) == 0; }

Judged judge(const Party& a, const Conflict& c) {
  const Exec& x = a.x;
  const Strength strength = a.strength;
  const Actor& actor = a.actor;
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
    const bool both_volatile = strength == Strength::volatile_ && c.record.scope() == 5;
    if (both_volatile) j.severity = Severity::undefined;
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
  if (strength != Strength::weak && c.record.scope() != 0 && !same_size(a.pc, c.pc) &&
      include_each_other(x, c.record.block(), c.record.scope(),
                         static_cast<std::uint32_t>(strength))) {
    j.severity = Severity::undefined;
    j.why = "by a strong access of another size";
  }
  if (c.equal) {
    j.severity = Severity::advice;
    j.why += "; both write the same value";
  } else if (awaits_fence(c, actor)) {
    j.severity = Severity::advice;
    j.why = "ordered only by an atomic without .acquire; add a fence behind it";
  }
  return j;
}

}  // namespace

bool is_exempt(const Party& a, Record other, std::uint32_t other_pc) {
  if (!strong_together(a.x, other, other_pc, a.strength, a.pc)) return false;
  const bool both_volatile = a.strength == Strength::volatile_ && other.scope() == 5;
  return !(both_volatile && other.block() == a.x.block->number &&
           other.agent() / 32 == a.actor.agent / 32);
}

void report_conflict(const Party& a, const Conflict& c) {
  const Judged j = judge(a, c);
  if (!a.x.checks(j.kind)) return;
  const std::uint64_t address =
      a.target.address + 4 * c.word + static_cast<unsigned>(std::countr_zero(c.bytes));
  const auto bytes = static_cast<std::uint32_t>(std::popcount(c.bytes));
  const std::string name = a.actor.name.empty() ? "" : std::string(a.actor.name) + " ";
  report(a.x,
         {.kind = j.kind,
          .severity = j.severity,
          .lane = a.lane,
          .message = name + what(a.access) + " " + std::to_string(bytes) +
                     (bytes == 1 ? " byte" : " bytes") + " at " +
                     describe_address(a.x, a.target, address) + " that " +
                     (c.other_writes ? "were written" : "were read") + " by another party " + j.why,
          .range = Range{space_name(a.target.space), address, bytes,
                         object_name(a.x, a.target, address)},
          .other = other_place(a.x, c),
          .other_pc = c.pc & kPcMask});
}

void report_proxy(const Party& a, const Conflict& c) {
  if (!a.x.checks(Kind::proxy_fence)) return;
  const std::uint64_t address = a.target.address + 4 * c.word;
  const std::string verb = what(a.access);
  report(
      a.x,
      {.kind = Kind::proxy_fence,
       .lane = a.lane,
       .message = "lets the " + std::string(a.actor.name) + " " + verb.substr(0, verb.size() - 1) +
                  " 4 bytes at " + describe_address(a.x, a.target, address) +
                  " that were written by an ordinary store with no fence.proxy.async "
                  "between",
       .range = Range{space_name(a.target.space), address, 4, object_name(a.x, a.target, address)},
       .other = other_place(a.x, c)});
}

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

bool strong_together(const Exec& x, Record r, std::uint32_t r_pc, Strength strength,
                     std::uint32_t pc) {
  return strength != Strength::weak && r.scope() != 0 && same_size(r_pc, pc) &&
         include_each_other(x, r.block(), r.scope(), static_cast<std::uint32_t>(strength));
}

bool checks_overtaken(const Exec& x, Access access, const Actor& actor) {
  return actor.async_proxy && access != Access::read && x.checks(Kind::overtaken_read);
}

void report_overtaken(const Party& a, const Conflict& c) {
  const std::uint64_t address = a.target.address + 4 * c.word;
  report(a.x, {.kind = Kind::overtaken_read,
               .severity = Severity::undefined,
               .lane = a.lane,
               .message = "lets the " + std::string(a.actor.name) + " write 4 bytes at " +
                          describe_address(a.x, a.target, address) +
                          " that were read by an ordinary load with no fence.proxy.async between: "
                          "it may overtake the load",
               .range = Range{space_name(a.target.space), address, 4,
                              object_name(a.x, a.target, address)},
               .other = other_place(a.x, c)});
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

}  // namespace tilewright::emu::detail
