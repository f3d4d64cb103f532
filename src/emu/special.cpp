// SPDX-License-Identifier: Apache-2.0
// Values of special registers, by name; decoded once into registers of the frame.
#include "emu/special.h"

#include "emu/grid.h"
#include "emu/handlers.h"

namespace tilewright::emu::detail {

namespace {

std::uint32_t pick(Dim3 d, int component) {
  return component == 0 ? d.x : component == 1 ? d.y : component == 2 ? d.z : 0;
}

Dim3 divided(Dim3 a, Dim3 b) { return {a.x / b.x, a.y / b.y, a.z / b.z}; }
Dim3 remainder(Dim3 a, Dim3 b) { return {a.x % b.x, a.y % b.y, a.z % b.z}; }

std::uint64_t cluster_value(std::string_view name, const Grid& grid, const Block& block, int c) {
  const Dim3 cluster = grid.launch.cluster;
  if (name == "%clusterid") return pick(divided(block.index, cluster), c);
  if (name == "%nclusterid") return pick(divided(grid.launch.grid, cluster), c);
  if (name == "%cluster_ctaid") return pick(remainder(block.index, cluster), c);
  if (name == "%cluster_nctaid") return pick(cluster, c);
  if (name == "%cluster_ctarank") return block.rank;
  if (name == "%cluster_nctarank") return cluster.count();
  if (name == "%is_explicit_cluster") return cluster.count() > 1 ? 1 : 0;
  return 0;
}

std::uint64_t lane_mask(std::string_view name, unsigned lane) {
  const std::uint32_t eq = 1U << lane;
  const std::uint32_t lt = eq - 1;
  if (name == "%lanemask_eq") return eq;
  if (name == "%lanemask_lt") return lt;
  if (name == "%lanemask_le") return lt | eq;
  if (name == "%lanemask_gt") return ~(lt | eq);
  return ~lt;
}

std::uint64_t size_value(std::string_view name, const Grid& grid) {
  if (name == "%dynamic_smem_size") {
    return static_cast<std::uint64_t>(grid.launch.dynamic_smem_bytes);
  }
  if (name == "%total_smem_size") return static_cast<std::uint64_t>(grid.declared_shared_bytes);
  if (name == "%aggr_smem_size")
    return static_cast<std::uint64_t>(grid.declared_shared_bytes) + kSharedBase;
  if (name == "%reserved_smem_offset_end") return kSharedBase;
  if (name == "%reserved_smem_offset_cap") return kSharedBase;
  return 0;
}

}  // namespace

std::uint64_t special_value(const Warp& warp, std::uint32_t index, int c, unsigned lane) {
  const std::string_view name = ptx::special_registers()[index].name;
  const Block& block = *warp.block;
  const Grid& grid = *block.grid;
  const Dim3 size = grid.launch.block;
  if (name == "%tid") {
    const std::uint32_t t = warp.thread(lane);
    return pick({t % size.x, t / size.x % size.y, t / size.x / size.y}, c);
  }
  if (name == "%ntid") return pick(size, c);
  if (name == "%ctaid") return pick(block.index, c);
  if (name == "%nctaid") return pick(grid.launch.grid, c);
  if (name == "%laneid") return lane;
  if (name == "%warpid") return warp.id;
  if (name == "%nwarpid") return block.warps.size();
  if (name == "%nsmid") return static_cast<std::uint64_t>(grid.device->options.multiprocessors);
  if (name == "%smid") {
    return block.linear % static_cast<std::uint64_t>(grid.device->options.multiprocessors);
  }
  if (name == "%gridid") return 1;
  if (name == "%envreg1") return grid.workspace >> 32;
  if (name == "%envreg2") return grid.workspace & 0xffffffff;
  if (name.starts_with("%lanemask")) return lane_mask(name, lane);
  if (name.find("cluster") != std::string_view::npos) return cluster_value(name, grid, block, c);
  return size_value(name, grid);
}

/// %clock and %globaltimer: steps of the run, so that a run can be repeated.
Flow exec_clock(Exec& x, const Inst& in) {
  const std::string_view name =
      ptx::special_registers()[static_cast<std::size_t>(in.info->number)].name;
  std::uint64_t value = x.run->steps * 4 + ++x.run->clock_reads;
  if (name.ends_with("_hi")) value >>= 32;
  for (unsigned l = 0; l < 32; ++l) {
    if ((x.split->mask >> l & 1) != 0) x.set(in.slot[0], l, value);
  }
  return Flow::next;
}

}  // namespace tilewright::emu::detail
