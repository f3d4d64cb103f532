// SPDX-License-Identifier: Apache-2.0
// Warp-wide instructions: parks lanes until those they name have come; reports those that cannot.
#include "emu/gather.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

namespace {

std::string mask_text(std::uint32_t mask) { return hex(mask); }

/// Leaves only the guarded lanes in the current split; the others go on behind the instruction.
void isolate(Exec& x) {
  if (x.mask == x.split->mask) return;
  const std::size_t rest = divide(*x.warp, x.warp->current, x.split->mask & ~x.mask);
  x.split = &x.warp->splits[x.warp->current];
  x.warp->splits[rest].pc = x.pc + 1;
  x.warp->splits[rest].resumed = false;
}

/// Takes in the splits that wait at this instruction.
void take_in(Exec& x) {
  Warp& w = *x.warp;
  for (std::size_t i = w.splits.size(); i-- > 0;) {
    if (i == w.current) continue;
    Split& s = w.splits[i];
    if (s.wait != Wait::lanes || s.pc != x.pc || s.frame != x.split->frame) continue;
    x.split->mask |= s.mask;
    x.split->resumed |= s.resumed;
    w.splits.erase(w.splits.begin() + static_cast<std::ptrdiff_t>(i));
    if (i < w.current) --w.current;
    x.split = &w.splits[w.current];
  }
  x.mask = x.split->mask;
}

Gather park(Exec& x) {
  x.split->wait = Wait::lanes;
  return Gather::wait;
}

void report_exited(Exec& x, std::uint32_t members, std::uint32_t exited) {
  report(x, {.kind = Kind::shuffle_mask,
             .severity = Severity::undefined,
             .lane = static_cast<unsigned>(std::countr_zero(x.mask)),
             .message = "names lanes " + mask_text(members) + ", but lanes " + mask_text(exited) +
                        " have exited; compute the mask before any thread returns",
             .range = {},
             .other = {}});
}

}  // namespace

Gather gather(Exec& x, const Slot& members) {
  isolate(x);
  take_in(x);
  Warp& w = *x.warp;
  const bool forced = x.split->resumed;
  x.split->resumed = false;
  std::uint32_t ready = 0;
  for (std::uint32_t left = x.mask; left != 0;) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    const auto m = static_cast<std::uint32_t>(x.value(members, lane));
    std::uint32_t same = 0;
    for (std::uint32_t rest = left; rest != 0; rest &= rest - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(rest));
      if (static_cast<std::uint32_t>(x.value(members, l)) == m) same |= 1U << l;
    }
    left &= ~same;
    if ((same & ~m) != 0 && x.checks(Kind::shuffle_mask)) {
      const auto outside = static_cast<unsigned>(std::countr_zero(same & ~m));
      report(x, {.kind = Kind::shuffle_mask,
                 .lane = outside,
                 .message = "is lane " + std::to_string(outside) + ", which its mask " +
                            mask_text(m) + " does not name; every executing lane must be named",
                 .range = {},
                 .other = {}});
    }
    const std::uint32_t exited = m & w.exist & ~w.live;
    if ((m & w.live & ~same) == 0 || forced) {
      ready |= same;
      if (exited != 0 && x.checks(Kind::shuffle_mask)) report_exited(x, m, exited);
    }
  }
  if (ready == 0) return park(x);
  if (ready != x.mask) {
    const std::size_t rest = divide(w, w.current, x.mask & ~ready);
    w.splits[rest].wait = Wait::lanes;
    x.split = &w.splits[w.current];
    x.mask = ready;
  }
  return Gather::ready;
}

Gather gather_aligned(Exec& x) {
  Warp& w = *x.warp;
  if (x.mask == w.exist) return Gather::ready;
  isolate(x);
  take_in(x);
  const bool forced = x.split->resumed;
  x.split->resumed = false;
  if (x.mask != w.live && !forced) return park(x);
  if (w.live != w.exist && x.mask == w.live && x.checks(Kind::barrier_divergence)) {
    report(x, {.kind = Kind::barrier_divergence,
               .severity = Severity::undefined,
               .lane = static_cast<unsigned>(std::countr_zero(x.mask)),
               .message = "is executed by lanes " + mask_text(x.mask) + " of warp " +
                          std::to_string(w.id) + " after lanes " + mask_text(w.exist & ~w.live) +
                          " have exited; all threads of the warp must execute it",
               .range = {},
               .other = {}});
  }
  return Gather::ready;
}

void wake_gathering(Warp& warp) {
  for (Split& s : warp.splits) {
    if (s.wait == Wait::lanes) {
      s.wait = Wait::none;
      warp.block->grid->run->make_ready(warp);
    }
  }
}

namespace {

void report_stuck(Grid& grid, Warp& w, const Split& s) {
  const bool aligned = grid.code->insts[s.pc].info->has<"aligned">();
  const Kind kind = aligned ? Kind::barrier_divergence : Kind::shuffle_mask;
  if (!grid.checks(kind)) return;
  Diagnostic* d = grid.reporter.add(kind, Severity::error, s.pc, grid.options.limits.findings);
  if (d == nullptr) return;
  const auto lane = static_cast<unsigned>(std::countr_zero(s.mask));
  d->entry = grid.entry->name;
  d->place = make_place(grid, s.pc, w.block->linear, w.thread(lane));
  std::uint32_t missing = w.live & ~s.mask;
  d->message = "is reached by lanes " + mask_text(s.mask) + " of warp " + std::to_string(w.id) +
               " only; lanes " + mask_text(missing);
  for (const Split& o : w.splits) {
    if (&o == &s || (o.mask & missing) == 0) continue;
    const auto other = static_cast<unsigned>(std::countr_zero(o.mask));
    d->other = make_place(grid, o.pc, w.block->linear, w.thread(other));
    d->message += " wait at PTX line " + std::to_string(d->other->ptx_line);
    break;
  }
  d->message += aligned ? "; all threads of the warp must execute it together"
                        : "; name only lanes that reach it";
}

/// Whether the lanes that do not come wait for memory that a block may write that has not started:
/// then the launch is at fault, not the branch.
bool waits_for_blocks(const Grid& grid, const Warp& w, const Split& s) {
  if (grid.next_block == grid.blocks) return false;
  return std::any_of(w.splits.begin(), w.splits.end(), [&](const Split& other) {
    return (other.mask & w.live & ~s.mask) != 0 && other.wait == Wait::memory;
  });
}

}  // namespace

bool release_stuck(Grid& grid) {
  bool any = false;
  for (auto& block : grid.live) {
    for (auto& warp : block->warps) {
      for (Split& s : warp->splits) {
        if (s.wait != Wait::lanes || waits_for_blocks(grid, *warp, s)) continue;
        report_stuck(grid, *warp, s);
        s.wait = Wait::none;
        s.resumed = true;
        grid.run->make_ready(*warp);
        any = true;
      }
    }
  }
  return any;
}

}  // namespace tilewright::emu::detail
