// SPDX-License-Identifier: Apache-2.0
// The seeded scheduler: picks a warp, then a split, runs it for a while, and knows when all wait.
#include "emu/schedule.h"

#include "emu/async.h"
#include "emu/decide.h"
#include "emu/gather.h"
#include "emu/grid.h"
#include "emu/wgmma.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

namespace {

bool runnable(const Split& s) { return s.wait == Wait::none; }

/// Lower runs first: fewer backward branches (in steps), then deeper calls, then the lower pc.
std::uint64_t priority(const Warp& w, const Split& s) {
  return std::uint64_t{s.branches >> 8} << 48 |
         std::uint64_t{0xffff - std::min<std::uint32_t>(w.frames[s.frame].depth, 0xffff)} << 32 |
         s.pc;
}

/// The split to run, or none. In `limit_pc`: where it may merge with a waiting one.
std::size_t choose(Run& run, Warp& w, std::uint32_t& limit_pc) {
  limit_pc = 0xffffffff;
  if (w.splits.size() == 1) return runnable(w.splits[0]) ? 0 : 1;
  const Divergence mode = run.options.divergence;
  if (mode == Divergence::converge || (mode == Divergence::random && run.decisions.below(2) == 0)) {
    merge_splits(w);
  }
  std::size_t best = w.splits.size();
  std::uint32_t seen = 0;
  for (std::size_t i = 0; i < w.splits.size(); ++i) {
    if (!runnable(w.splits[i])) continue;
    ++seen;
    if (best == w.splits.size()) {
      best = i;
    } else if (mode == Divergence::converge) {
      if (priority(w, w.splits[i]) < priority(w, w.splits[best])) best = i;
    } else if (run.decisions.below(seen) == 0) {
      best = i;
    }
  }
  if (seen > 1 && mode == Divergence::converge) {
    for (std::size_t i = 0; i < w.splits.size(); ++i) {
      const Split& s = w.splits[i];
      if (i != best && runnable(s) && s.frame == w.splits[best].frame) {
        limit_pc = std::min(limit_pc, s.pc);
      }
    }
  }
  return best;
}

void count(Exec& x) {
  PcCount& c = x.grid->counts[x.pc];
  ++c.executions;
  c.lanes += static_cast<std::uint64_t>(std::popcount(x.mask));
  if (x.split->mask != x.warp->live) ++c.divergent;
}

void report_undefined_guard(Exec& x, const Inst& in) {
  std::uint32_t& defined = *reinterpret_cast<std::uint32_t*>(x.frame + in.guard_defined);
  const std::uint32_t bad = x.split->mask & ~defined;
  if (bad == 0 || !x.checks(Kind::uninitialized_read)) return;
  report(x, {.kind = Kind::uninitialized_read,
             .lane = static_cast<unsigned>(std::countr_zero(bad)),
             .message = "depends on a predicate that has no defined value",
             .range = {},
             .other = {}});
  defined |= bad;
}

/// Runs `length` lane-pure instructions without guards: nothing can happen between them.
void run_straight(Exec& x, const Inst* in, std::uint32_t length) {
  const bool has_wgmma = x.grid->code->has_wgmma;
  const Inst* const end = in + length;
  if (has_wgmma || !x.grid->counts.empty()) {
    for (; in != end; ++in, ++x.pc) {
      if (!x.grid->counts.empty()) count(x);
      if (has_wgmma) check_wgmma_registers(x, *in);
      in->run(x, *in);
    }
    return;
  }
  for (; in != end; ++in)
    in->run(x, *in);
}

/// Runs one split for at most `budget` instructions; returns how many it ran.
std::uint32_t run_split(Exec& x, std::uint32_t budget, std::uint32_t limit_pc) {
  const Inst* const code = x.grid->code->insts.data();
  const bool counting = !x.grid->counts.empty();
  const bool has_wgmma = x.grid->code->has_wgmma;
  std::uint32_t used = 0;
  while (used < budget) {
    x.pc = x.split->pc;
    if (x.pc >= limit_pc && used != 0) break;
    const Inst& in = code[x.pc];
    x.mask = x.split->mask;
    if (in.straight != 0) {  // no other warp sees where it ends: the turn does not end within
      const std::uint32_t room = x.pc < limit_pc ? limit_pc - x.pc : 1;
      const std::uint32_t length = std::min(std::uint32_t{in.straight}, room);
      run_straight(x, &in, length);
      used += length;
      x.split->pc += length;
      continue;
    }
    ++used;
    if (in.guarded) {
      const std::uint32_t p = *reinterpret_cast<const std::uint32_t*>(x.frame + in.guard);
      const std::uint32_t d = *reinterpret_cast<const std::uint32_t*>(x.frame + in.guard_defined);
      if ((x.mask & ~d) != 0) report_undefined_guard(x, in);
      x.mask &= in.guard_negated ? ~p : p;
      if (x.mask == 0) {
        ++x.split->pc;
        continue;
      }
    }
    if (counting) count(x);
    if (has_wgmma) check_wgmma_registers(x, in);
    const Flow flow = in.run(x, in);
    if (flow == Flow::next) {
      ++x.split->pc;
    } else if (flow == Flow::stop) {
      break;
    }
    if (x.run->looked) break;
  }
  return used;
}

}  // namespace

void bind_split(Exec& x, Warp& warp, std::size_t index) {
  x.warp = &warp;
  x.block = warp.block;
  x.grid = warp.block->grid;
  x.run = x.grid->run;
  warp.current = index;
  x.split = &warp.splits[index];
  x.frame = warp.stack.data() + warp.frames[x.split->frame].base;
  x.pc = x.split->pc;
}

void stop_grid(Grid& grid) { grid.stopped = true; }

namespace {

/// Runs some split of a warp for at most `budget` instructions. False: none can run.
bool run_some_split(Exec& x, Run& run, Warp& warp, std::uint32_t& budget) {
  std::uint32_t limit_pc = 0;
  const std::size_t index = choose(run, warp, limit_pc);
  if (index == warp.splits.size()) return false;
  bind_split(x, warp, index);
  const std::uint32_t used = run_split(x, budget, limit_pc);
  run.steps += used;
  x.grid->report.steps += used;
  budget -= std::min(used, budget);
  return true;
}

/// Splits that wait for memory look at it again.
void look_again(Run& run, Warp& warp) {
  bool woken = false, waits = false;
  for (Split& s : warp.splits) {
    if (s.wait != Wait::memory) continue;
    (s.asleep ? waits : woken) = true;
    if (!s.asleep) s.wait = Wait::none;
  }
  if (woken && !waits) std::erase(run.spinning, &warp);
  run.make_ready(warp);
}

/// Warps that watch a word which is about to be written run until they have read it.
void run_called(Exec& x, Run& run) {
  constexpr std::uint32_t kLook = 64;
  run.calling = true;
  for (Warp* w : run.called) {
    const Grid& grid = *w->block->grid;
    if (run.calls_left == 0 || w->block->done || grid.stopped || w->splits.empty()) continue;
    --run.calls_left;
    look_again(run, *w);
    std::uint32_t budget = kLook;
    while (budget > 0 && !run.looked && !grid.stopped && !w->block->done) {
      if (!run_some_split(x, run, *w, budget)) break;
    }
    run.looked = false;
  }
  run.called.clear();
  run.calling = false;
}

/// Runs a warp for at most `budget` instructions; returns how many are left when it waits or ends.
std::uint32_t run_warp(Exec& x, Run& run, Warp& warp, std::uint32_t budget) {
  Grid& grid = *warp.block->grid;
  while (budget > 0 && !grid.stopped) {
    if (!run_some_split(x, run, warp, budget)) return budget;
    if (!run.called.empty()) run_called(x, run);
    if (warp.block->done) return std::max(budget, 1U);
  }
  return budget;
}

void limit_finding(Grid& grid, const std::string& message, const Warp* warp) {
  std::uint32_t pc = 0xffffffff;
  if (warp != nullptr && !warp->splits.empty()) pc = warp->splits[0].pc;
  Diagnostic* d =
      grid.reporter.add(Kind::limit, Severity::error, pc, grid.options.limits.findings + 1);
  if (d != nullptr) {
    d->entry = grid.entry->name;
    d->message = message;
    if (pc != 0xffffffff) {
      const auto lane = static_cast<unsigned>(std::countr_zero(warp->splits[0].mask));
      d->place = make_place(grid, pc, warp->block->linear, warp->thread(lane));
    }
  }
  stop_grid(grid);
}

/// Loops that read a clock or count their tries never stand still; what they may wait for happens
/// after so many steps without any change.
constexpr std::uint64_t kPatience = 1 << 12;

void check_limits(Run& run, Warp& warp) {
  Grid& grid = *warp.block->grid;
  if (run.version != run.seen_version) {
    run.seen_version = run.version;
    run.version_steps = run.steps;
    run.patience = kPatience;
  } else if (run.steps - run.version_steps > run.patience) {
    run.patience += kPatience;
    const std::size_t share = 1 + run.async.size() / 4;
    for (std::size_t i = 0; i < share; ++i) {
      if (!deliver_something(run)) break;
    }
    start_more_blocks(run);
  }
  if (grid.report.steps > run.options.limits.steps) {
    limit_finding(grid,
                  "reached the limit of " + std::to_string(run.options.limits.steps) +
                      " warp instructions; raise Limits::steps if the kernel is that long",
                  &warp);
  } else if (run.steps - run.version_steps > run.options.limits.idle_steps) {
    limit_finding(grid,
                  "ran " + std::to_string(run.options.limits.idle_steps) +
                      " warp instructions without any change of memory: a loop that cannot end",
                  &warp);
  }
}

bool cancelled(Run& run) {
  if (run.options.keep_going == nullptr) return false;
  std::uint64_t done = 0;
  for (const auto& grid : run.grids)
    done += grid->done_blocks;
  return !run.options.keep_going(run.options.keep_going_context, done);
}

enum class Wake : std::uint8_t {
  changed,    ///< splits that wait for memory, if it changed
  sleepers,   ///< those in mbarrier.try_wait, if something changed
  timed_out,  ///< those in mbarrier.try_wait, since nothing else can happen
};

/// Wakes splits that wait for memory; their warps become ready.
bool wake_spinning(Run& run, Wake wake) {
  bool any = false;
  std::vector<Warp*> still;
  for (Warp* w : run.spinning) {
    bool waits = false;
    for (Split& s : w->splits) {
      if (s.wait != Wait::memory) continue;
      const bool due = s.seen_version != run.version || wake == Wake::timed_out;
      if (due && (s.asleep || wake == Wake::changed)) {
        s.wait = Wait::none;
        s.timed_out = wake == Wake::timed_out;
        s.asleep = false;
        run.make_ready(*w);
        any = true;
      } else {
        waits = true;
      }
    }
    if (waits && (still.empty() || still.back() != w)) still.push_back(w);
  }
  run.spinning = std::move(still);
  return any;
}

bool unfinished(const Run& run) {
  for (const auto& grid : run.grids) {
    if (!grid->stopped && grid->done_blocks < grid->blocks) return true;
  }
  return false;
}

void drop_stopped(Run& run) {
  std::erase_if(run.ready, [](Warp* w) { return w->block->grid->stopped; });
  std::erase_if(run.spinning, [](Warp* w) { return w->block->grid->stopped; });
}

/// Nothing else can happen: mbarrier.try_wait gives up, later by the clocks. False: it has done so
/// in vain for so long that whoever gives up for good would have.
bool time_out(Run& run) {
  constexpr int kMost = 256;
  constexpr std::uint64_t kNanoseconds = 1 << 18;
  if (run.timeout_version != run.version) run.timeouts = 0;
  run.timeout_version = run.version;
  if (++run.timeouts > kMost) return false;
  run.clock_reads += kNanoseconds;
  return wake_spinning(run, Wake::timed_out);
}

/// Nothing is ready: finds something that can happen. False: nothing can, ever.
bool resolve_idle(Run& run) {
  if (start_blocks(run)) return true;
  if (wake_spinning(run, Wake::changed)) return true;
  if (deliver_something(run)) return true;
  bool any = false;
  for (auto& grid : run.grids) {
    if (!grid->stopped) any |= release_stuck(*grid);
  }
  return any || time_out(run);
}

}  // namespace

void run_all(Run& run) {
  std::uint64_t turns = 0;
  Exec x;  // one for all turns: it is bound to each
  start_blocks(run);
  while (unfinished(run)) {
    drop_dead(run);
    if (run.ready.empty()) {
      run.decisions.idle();
      if (!resolve_idle(run)) {
        report_deadlock(run);
        return;
      }
    }
    if (run.ready.empty()) continue;
    const Decisions::Next next = run.decisions.next(run.ready);
    const std::size_t i = next.index;
    Warp* warp = run.ready[i];
    try {
      const std::uint32_t left = run_warp(x, run, *warp, next.budget);
      run.decisions.turn_ended(next.budget - left, left != 0);
    } catch (const MemoryLimit&) {
      limit_finding(*warp->block->grid,
                    "touched more than " + std::to_string(run.options.limits.memory_bytes) +
                        " bytes of host memory; raise Limits::memory_bytes",
                    warp);
    }
    const bool done = warp->block->done;
    bool ready = false;
    for (const Split& s : warp->splits)
      ready |= runnable(s);
    if (!ready || done) {
      warp->queued = false;
      // The list may have grown while the warp ran, but its place is the same.
      run.ready[i] = run.ready.back();
      run.ready.pop_back();
    }
    check_limits(run, *warp);
    if (run.phase_completed) {
      run.phase_completed = false;
      wake_spinning(run, Wake::sleepers);
    }
    if (warp->block->grid->stopped) drop_stopped(run);
    if ((++turns & 1023) == 0 && cancelled(run)) {
      for (auto& grid : run.grids)
        stop_grid(*grid);
      return;
    }
  }
}

}  // namespace tilewright::emu::detail
