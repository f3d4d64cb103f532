// SPDX-License-Identifier: Apache-2.0
// The order of launches: by stream and by what each knows of the others.
#include "emu/past.h"

#include <algorithm>

namespace tilewright::emu::detail {

namespace {

/// Older launches count as known: their records need their code and shape.
constexpr std::size_t kMostPast = 64;

std::uint64_t known_of(const LaunchOrder& order, std::uint32_t stream) {
  return stream < order.known.size() ? order.known[stream] : 0;
}

void find_unordered(const Memory& memory, Grid& grid) {
  if (!grid.launch.order) return;
  const LaunchOrder& order = *grid.launch.order;
  const std::uint64_t last = known_of(order, order.stream);
  for (const PastLaunch& p : memory.past) {
    const bool in_front = order.dependent && p.stream == order.stream && p.number == last;
    if (p.number <= known_of(order, p.stream) && !in_front) continue;
    grid.unordered.push_back(p.grid);
    if (in_front) grid.awaited = p.grid.get();
  }
}

}  // namespace

void find_unordered(Run& run) {
  run.first_unordered = run.grids[0]->first_number;
  for (const auto& grid : run.grids) {
    find_unordered(*run.memory, *grid);
    for (const auto& p : grid->unordered)
      run.first_unordered = std::min(run.first_unordered, p->first_number);
  }
}

void remember(Run& run) {
  auto& past = run.memory->past;
  for (auto& grid : run.grids) {
    if (!grid->launch.order) {  // the host waited for it, and for all before it
      past.clear();
      continue;
    }
    const LaunchOrder& order = *grid->launch.order;
    std::shared_ptr<Grid> kept(std::move(grid));
    kept->live.clear();
    kept->spare.clear();
    kept->clusters.clear();
    kept->unordered.clear();
    past.push_back({kept, order.stream, known_of(order, order.stream) + 1});
  }
  if (past.size() > kMostPast) past.erase(past.begin(), past.end() - kMostPast);
}

const Grid* unordered_launch(const Run& run, const Grid& grid, std::uint32_t block) {
  if (block < run.first_unordered || block >= run.grids[0]->first_number) return nullptr;
  for (const auto& p : grid.unordered) {
    if (block >= p->first_number && block - p->first_number < p->blocks) return p.get();
  }
  return nullptr;
}

}  // namespace tilewright::emu::detail
