// SPDX-License-Identifier: Apache-2.0
// Blocks come and go: starting clusters, ending lanes, blocks and grids.
#include "emu/async.h"
#include "emu/barrier.h"
#include "emu/gather.h"
#include "emu/grid.h"
#include "emu/launch.h"
#include "emu/schedule.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

Dim3 Grid::block_index(std::uint64_t linear) const {
  const Dim3 g = launch.grid;
  const auto x = static_cast<std::uint32_t>(linear % g.x);
  const auto y = static_cast<std::uint32_t>(linear / g.x % g.y);
  return {x, y, static_cast<std::uint32_t>(linear / g.x / g.y)};
}

namespace {

/// The block of rank `rank` in the n-th cluster.
Dim3 member_index(const Launch& l, std::uint64_t cluster, std::uint64_t rank) {
  const Dim3 c = l.cluster;
  const Dim3 n{l.grid.x / c.x, l.grid.y / c.y, l.grid.z / c.z};
  auto at = [](std::uint64_t a, std::uint32_t size, std::uint64_t r) {
    return static_cast<std::uint32_t>(a * size + r);
  };
  return {at(cluster % n.x, c.x, rank % c.x), at(cluster / n.x % n.y, c.y, rank / c.x % c.y),
          at(cluster / n.x / n.y, c.z, rank / c.x / c.y)};
}

std::uint64_t linear_index(Dim3 grid, Dim3 i) {
  return (std::uint64_t{i.z} * grid.y + i.y) * grid.x + i.x;
}

}  // namespace

std::uint64_t Grid::linear_of(std::uint32_t number) const {
  const std::uint64_t n = number - first_number;
  const std::uint64_t size = launch.cluster.count();
  return linear_index(launch.grid, member_index(launch, n / size, n % size));
}

Block* Grid::block_of(std::uint32_t number) const {
  for (const auto& b : live) {
    if (b->number == number) return b.get();
  }
  return nullptr;
}

void BarrierState::close() {
  open = false;
  arrived = 0;
  generic = nullptr;
  async = nullptr;
  foreign = nullptr;
  votes_true = votes = 0;
}

std::uint32_t Block::take_list() {
  if (free_lists.empty()) {
    reader_lists.emplace_back();
    return static_cast<std::uint32_t>(reader_lists.size() - 1);
  }
  const std::uint32_t list = free_lists.back();
  free_lists.pop_back();
  return list;
}

void Block::free_list(std::uint32_t list) {
  if (reader_lists[list].empty()) return;
  reader_lists[list].clear();
  free_lists.push_back(list);
}

void Block::free_reader_lists() {
  // Records that name a list stay until their word is accessed again: lists are reused only when
  // every reader in them is known to every thread, and then emptied.
  if (free_lists.size() == reader_lists.size()) return;
  for (std::uint32_t i = 0; i < reader_lists.size(); ++i)
    free_list(i);
}

namespace {

void reset_warp(Warp& w, Block& block, std::uint32_t id) {
  const std::uint32_t threads = block.threads;
  w.block = &block;
  w.id = id;
  const std::uint32_t lanes = std::min<std::uint32_t>(32, threads - id * 32);
  w.exist = lanes == 32 ? ~std::uint32_t{0} : (1U << lanes) - 1;
  w.live = w.exist;
  w.frames.clear();
  w.splits.clear();
  w.cp_async.clear();
  w.cp_epoch.fill(1);
  w.cp_used.fill(0);
  w.bulk_group.fill(1);
  w.wgmma.clear();
  w.wgmma_group = 1;
  w.wgmma_results.clear();
  w.wgmma_sources.clear();
  w.written.clear();
  w.clocks.unify({});
  w.clocks.epoch.fill(1);
  w.clocks.together = true;
  w.clocks.copied.fill(0);
  w.queued = false;
  const auto function =
      static_cast<std::uint32_t>(block.grid->entry - block.grid->code->functions.data());
  const std::uint32_t frame = enter_frame(w, kNoFrame, 0, function, nullptr);
  enter_function(w, frame, w.exist);
  Split s;
  s.pc = block.grid->entry->entry_pc;
  s.mask = w.exist;
  s.frame = frame;
  w.splits.push_back(s);
}

void start_block(Grid& grid, Cluster& cluster, std::uint64_t cluster_index, std::uint32_t rank) {
  std::unique_ptr<Block> block;
  if (grid.spare.empty()) {
    block = std::make_unique<Block>();
  } else {
    block = std::move(grid.spare.back());
    grid.spare.pop_back();
  }
  Block& b = *block;
  b.grid = &grid;
  b.cluster = &cluster;
  b.rank = rank;
  b.number = cluster.number + rank;
  b.index = member_index(grid.launch, cluster_index, rank);
  b.linear = linear_index(grid.launch.grid, b.index);
  b.threads = b.live_threads = grid.threads();
  const auto bytes = static_cast<std::size_t>((grid.shared_bytes + 63) / 64 * 64);
  b.shared.assign(bytes, std::byte{0});
  b.shared_init.assign(bytes / 64, 0);
  if (!b.shadow || b.shadow->words() < bytes / 4) b.shadow = std::make_unique<ShadowMap>(bytes / 4);
  b.mbarriers.clear();
  for (auto& barrier : b.barriers)
    barrier = {};
  b.floor = {b.threads, 0, 0};
  b.free_reader_lists();
  b.next_slot = 0;
  b.slot_epoch.clear();
  b.in_flight = 0;
  b.issued.clear();
  b.bulk_groups.clear();
  b.cp_users = 0;
  b.exit_known = nullptr;
  b.done = false;
  const std::uint32_t warps = (b.threads + 31) / 32;
  while (b.warps.size() < warps)
    b.warps.push_back(std::make_unique<Warp>());
  cluster.blocks[rank] = &b;
  for (std::uint32_t i = 0; i < warps; ++i) {
    reset_warp(*b.warps[i], b, i);
    grid.run->make_ready(*b.warps[i]);
  }
  grid.live.push_back(std::move(block));
}

void start_cluster(Grid& grid) {
  const std::uint64_t size = grid.launch.cluster.count();
  const std::uint64_t index = grid.next_block / size;
  auto cluster = std::make_unique<Cluster>();
  cluster->blocks.resize(size);
  cluster->number = grid.first_number + static_cast<std::uint32_t>(grid.next_block);
  cluster->live = static_cast<std::uint32_t>(size) * grid.threads();
  for (std::uint32_t rank = 0; rank < size; ++rank)
    start_block(grid, *cluster, index, rank);
  grid.next_block += size;
  grid.clusters.push_back(std::move(cluster));
}

}  // namespace

namespace {

bool start(Run& run, bool beyond) {
  bool any = false;
  for (auto& grid : run.grids) {
    if (grid->stopped) continue;
    const std::uint64_t size = grid->launch.cluster.count();
    std::uint64_t alive = grid->next_block - grid->done_blocks;
    const bool more = beyond && alive >= grid->window;
    std::uint64_t goal = more ? alive + size : grid->window;
    goal = std::min<std::uint64_t>(goal, grid->capacity);
    while (grid->next_block < grid->blocks && alive + size <= std::max(goal, size)) {
      start_cluster(*grid);
      alive += size;
      any = true;
    }
  }
  return any;
}

}  // namespace

/// With every live block waiting, one cluster more than the window is tried.
bool start_blocks(Run& run) { return start(run, run.ready.empty()); }
bool start_more_blocks(Run& run) { return start(run, true); }

void drop_dead(Run& run) {
  if (!run.some_done) return;
  run.some_done = false;
  auto is_done = [](const Block* b) {
    return std::all_of(b->cluster->blocks.begin(), b->cluster->blocks.end(),
                       [](const Block* member) { return member->done; });
  };
  for (auto& grid : run.grids) {
    std::vector<std::unique_ptr<Block>> keep;
    for (auto& b : grid->live) {
      (is_done(b.get()) && b->in_flight == 0 ? grid->spare : keep).push_back(std::move(b));
    }
    grid->live = std::move(keep);
    std::erase_if(grid->clusters, [&](const auto& c) {
      return std::none_of(grid->live.begin(), grid->live.end(),
                          [&](const auto& b) { return b->cluster == c.get(); });
    });
  }
  start_blocks(run);
}

void finish_block(Block& block) {
  if (block.done) return;
  check_in_flight(block);
  block.done = true;
  ++block.grid->done_blocks;
  block.grid->run->some_done = true;
  block.grid->run->changed();
}

Flow exit_lanes(Exec& x, std::uint32_t mask) {
  Warp& w = *x.warp;
  check_exit(x, mask);
  w.live &= ~mask;
  x.split->mask &= ~mask;
  if (x.split->mask == 0) {
    w.splits.erase(w.splits.begin() + static_cast<std::ptrdiff_t>(w.current));
  } else {
    ++x.split->pc;
  }
  const auto count = static_cast<std::uint32_t>(std::popcount(mask));
  x.block->live_threads -= count;
  x.block->cluster->live -= count;
  wake_gathering(w);
  threads_exited(*x.block);
  if (x.block->live_threads == 0) finish_block(*x.block);
  return Flow::stop;
}

LaunchReport finish(Grid& grid) {
  LaunchReport& r = grid.report;
  r.completed = !grid.stopped && grid.done_blocks == grid.blocks;
  r.findings = grid.reporter.take();
  fill_counters(grid);
  if (grid.workspace != 0) {
    grid.device->memory->release(*grid.device->memory->at_or_below(grid.workspace));
  }
  return std::move(r);
}

}  // namespace tilewright::emu::detail
