// SPDX-License-Identifier: Apache-2.0
// Nothing can run any more: who waits for what.
#include "emu/schedule.h"

#include <bit>

namespace tilewright::emu::detail {

namespace {

constexpr int kMostLines = 32;

std::string lanes_text(const Warp& w, std::uint32_t mask) {
  const auto first = static_cast<unsigned>(std::countr_zero(mask));
  const Place p = make_place(*w.block->grid, 0, w.block->linear, w.thread(first));
  const int count = std::popcount(mask);
  std::string text = "thread " + to_string(p.thread);
  if (count > 1) text += " and " + std::to_string(count - 1) + " more of its warp";
  return text + " of block " + to_string(w.block->index);
}

std::string barrier_text(const Block& block, std::uint32_t id) {
  const BarrierState& b = block.barriers[id];
  std::uint32_t arrived = 0;
  for (const std::uint32_t lanes : b.lanes) {
    arrived += static_cast<std::uint32_t>(std::popcount(lanes));
  }
  return "barrier " + std::to_string(id) + ", where " + std::to_string(arrived) + " of " +
         std::to_string(b.counted ? b.expected : block.live_threads) + " threads have arrived";
}

std::string memory_text(const Block& block) {
  std::string text = "memory to change";
  for (const auto& [address, m] : block.mbarriers) {
    if (m.pending == m.expected && m.tx == 0) continue;
    text += "; mbarrier at shared address " + hex(address) + " is in phase " +
            std::to_string(m.phase) + " with " + std::to_string(m.pending) + " of " +
            std::to_string(m.expected) + " arrivals and " + std::to_string(m.tx) +
            " bytes outstanding";
  }
  return text;
}

std::string wait_text(const Block& block, const Split& s) {
  switch (s.wait) {
    case Wait::none:
      return "nothing";
    case Wait::lanes:
      return "lanes of its warp";
    case Wait::barrier:
      return barrier_text(block, s.barrier);
    case Wait::cluster:
      return "the cluster's barrier";
    case Wait::memory:
      return memory_text(block);
    case Wait::async:
      return "asynchronous operations";
    case Wait::grid:
      return "another grid";
  }
  return "";
}

void report_grid(Grid& grid) {
  const Split* first = nullptr;
  const Warp* first_warp = nullptr;
  std::string graph;
  int lines = 0, waiting = 0;
  for (const auto& block : grid.live) {
    for (const auto& w : block->warps) {
      for (const Split& s : w->splits) {
        // A spinning or mbarrier wait says more than those at a barrier behind it.
        if (first == nullptr || (s.wait == Wait::memory && first->wait != Wait::memory)) {
          first = &s;
          first_warp = w.get();
        }
        ++waiting;
        if (++lines > kMostLines) continue;
        const Place p = make_place(grid, s.pc, block->linear, 0);
        graph += "\n  " + lanes_text(*w, s.mask) + " at PTX line " + std::to_string(p.ptx_line) +
                 " waits for " + wait_text(*block, s);
      }
    }
  }
  if (lines > kMostLines) graph += "\n  and " + std::to_string(lines - kMostLines) + " more";
  const std::uint64_t missing = grid.blocks - grid.next_block;
  if (missing != 0) {
    graph += "\n  " + std::to_string(missing) +
             " blocks have not started: the device has room for " + std::to_string(grid.capacity) +
             " at a time";
  }
  stop_grid(grid);
  if (!grid.checks(Kind::deadlock)) return;
  const std::uint32_t pc = first != nullptr ? first->pc : 0xffffffff;
  Diagnostic* d =
      grid.reporter.add(Kind::deadlock, Severity::error, pc, grid.options.limits.findings + 1);
  if (d == nullptr) return;
  d->entry = grid.entry->name;
  if (first != nullptr) {
    const auto lane = static_cast<unsigned>(std::countr_zero(first->mask));
    d->place = make_place(grid, pc, first_warp->block->linear, first_warp->thread(lane));
  }
  d->message = "waits for ever: nothing can run" + graph;
}

}  // namespace

void report_deadlock(Run& run) {
  for (auto& grid : run.grids) {
    if (!grid->stopped && grid->done_blocks < grid->blocks) report_grid(*grid);
  }
}

}  // namespace tilewright::emu::detail
