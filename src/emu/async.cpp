// SPDX-License-Identifier: Apache-2.0
// The queue of asynchronous operations, agents for them, and what is in flight when a block ends.
#include "emu/async.h"

#include "emu/barrier.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

namespace {

void deliver(AsyncOp& op) {
  op.deliver();
  --op.block->in_flight;
  if (op.target != nullptr && op.target != op.block) --op.target->in_flight;
  op.grid->run->changed();
  if (op.block->in_flight == 0 && op.block->done) op.grid->run->some_done = true;
}

}  // namespace

void enqueue(Exec& x, AsyncOp op) {
  Run& run = *x.run;
  ++op.block->in_flight;
  if (op.target != nullptr && op.target != op.block) ++op.target->in_flight;
  const bool now = run.options.delivery == Delivery::eager ||
                   (run.options.delivery == Delivery::random && run.decisions.below(2) == 0);
  if (now) {
    deliver(op);
  } else {
    run.async.push_back(std::make_unique<AsyncOp>(std::move(op)));
  }
}

bool deliver_something(Run& run) {
  std::erase_if(run.async, [](const auto& op) { return op->grid->stopped; });
  if (run.async.empty()) return false;
  const std::uint32_t i = run.decisions.below(static_cast<std::uint32_t>(run.async.size()));
  const std::unique_ptr<AsyncOp> op = std::move(run.async[i]);
  run.async.erase(run.async.begin() + i);
  deliver(*op);
  return true;
}

void deliver_groups(Run& run, const Block& block, std::uint32_t thread, std::uint64_t last) {
  for (std::size_t i = 0; i < run.async.size();) {
    AsyncOp& op = *run.async[i];
    if (op.block != &block || op.thread != thread || op.group == 0 || op.group > last) {
      ++i;
      continue;
    }
    const std::unique_ptr<AsyncOp> due = std::move(run.async[i]);
    run.async.erase(run.async.begin() + static_cast<std::ptrdiff_t>(i));
    deliver(*due);
  }
}

BulkAgent take_agent(Block& block) {
  const std::uint32_t slots = std::min(1024U, kAgents - block.first_bulk_agent());
  if (block.slot_epoch.size() < slots) block.slot_epoch.resize(slots);
  const std::uint32_t slot = block.next_slot++ % slots;
  return {block.first_bulk_agent() + slot, ++block.slot_epoch[slot]};
}

SnapshotRef completion(const Block& block, BulkAgent agent) {
  auto out = std::make_shared<Snapshot>();
  const ClockRef clock = raised(nullptr, agent.agent, agent.epoch);
  out->push_back({block.number, clock, clock});
  return out;
}

Actor bulk_actor(Exec& x, unsigned lane, BulkAgent agent, std::string_view name) {
  Actor a = thread_actor(x, lane);
  a.agent = agent.agent;
  a.epoch = agent.epoch;
  a.async_proxy = true;
  a.name = name;
  return a;
}

namespace {

bool knows(const SnapshotRef& known, const Issued& op) {
  if (!known) return false;
  for (const Known& k : *known) {
    if (k.block == op.block) return k.generic && (*k.generic)[op.agent] >= op.epoch;
  }
  return false;
}

void report_exit(Grid& grid, const Block& block, const Issued& op) {
  Diagnostic* d =
      grid.reporter.add(Kind::exit_in_flight, Severity::error, op.pc, grid.options.limits.findings);
  if (d == nullptr) return;
  d->entry = grid.entry->name;
  d->place = make_place(grid, op.pc, grid.linear_of(op.block), op.thread);
  d->message = std::string("is still ") + (op.reads ? "reading" : "writing") +
               " the shared memory of block " + to_string(block.index) +
               " when the block ends: no thread waits for it";
}

}  // namespace

/// What threads know when they end decides whether the block may end.
void check_exit(Exec& x, std::uint32_t mask) {
  Block& b = *x.block;
  if (b.issued.empty() && b.cp_users == 0) return;
  auto own = std::make_shared<Snapshot>();
  own->push_back({b.number, own_clock(*x.warp, mask), nullptr});
  b.exit_known = join(b.exit_known, own);
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(left));
    b.exit_known = join(b.exit_known, x.warp->clocks.lane(lane).foreign);
  }
}

void check_in_flight(Block& block) {
  Grid& grid = *block.grid;
  if (!grid.checks(Kind::exit_in_flight)) return;
  for (const Issued& op : block.issued) {
    if (!knows(block.exit_known, op)) report_exit(grid, block, op);
  }
  if (block.cp_users == 0) return;
  for (const auto& w : block.warps) {
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (w->cp_used[lane] == 0) continue;
      Issued op{block.cp_agent(w->thread(lane)),
                w->cp_used[lane],
                block.number,
                w->thread(lane),
                w->cp_pc,
                false};
      if (!knows(block.exit_known, op)) report_exit(grid, block, op);
    }
  }
}

}  // namespace tilewright::emu::detail
