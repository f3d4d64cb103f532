// SPDX-License-Identifier: Apache-2.0
// Sectors and wavefronts against what the same bytes need at best; totals by memory space.
#include "emu/traffic.h"

#include "emu/barrier.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

namespace {

constexpr std::uint64_t kSectorBytes = 32;
constexpr std::uint64_t kBanks = 32;

std::uint64_t sectors(const Addresses& a, std::int64_t bytes) {
  std::array<std::uint64_t, 64> seen;
  std::size_t count = 0;
  for (std::uint32_t left = a.mask; left != 0; left &= left - 1) {
    const std::uint64_t at = a.at[static_cast<unsigned>(std::countr_zero(left))];
    seen[count++] = at / kSectorBytes;
    const std::uint64_t last = (at + static_cast<std::uint64_t>(bytes) - 1) / kSectorBytes;
    if (last != seen[count - 1]) seen[count++] = last;
  }
  std::sort(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(count));
  return static_cast<std::uint64_t>(
      std::unique(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(count)) - seen.begin());
}

/// Wavefronts of the lanes of one phase: the most distinct words in one bank.
std::uint64_t phase_wavefronts(const Addresses& a, std::uint32_t lanes, std::uint64_t words) {
  std::array<std::array<std::uint64_t, 32>, kBanks> bank;
  std::array<std::size_t, kBanks> count{};
  std::size_t most = 0;
  for (std::uint32_t left = lanes & a.mask; left != 0; left &= left - 1) {
    const std::uint64_t first = a.at[static_cast<unsigned>(std::countr_zero(left))] / 4;
    for (std::uint64_t w = first; w < first + words; ++w) {
      auto& list = bank[w % kBanks];
      auto& n = count[w % kBanks];
      const auto end = list.begin() + static_cast<std::ptrdiff_t>(n);
      if (std::find(list.begin(), end, w) == end && n < list.size()) list[n++] = w;
      most = std::max(most, n);
    }
  }
  return most;
}

}  // namespace

void count_access(Exec& x, Space space, const Addresses& a, std::int64_t lane_bytes,
                  Access access) {
  if (x.grid->counts.empty()) return;
  Counters& total = x.grid->report.counters;
  PcCount& c = x.grid->counts[x.pc];
  const auto lanes = static_cast<std::uint64_t>(std::popcount(a.mask));
  const std::uint64_t bytes = lanes * static_cast<std::uint64_t>(lane_bytes);
  if (space == Space::global || space == Space::const_) {
    c.sectors += sectors(a, lane_bytes);
    c.ideal_sectors += (bytes + kSectorBytes - 1) / kSectorBytes;
    (access == Access::read ? total.global_read_bytes : total.global_written_bytes) += bytes;
    if (access == Access::atomic) total.global_read_bytes += bytes;
    return;
  }
  // 64-bit accesses go in two halves of the warp, 128-bit ones in four quarters.
  const auto words = static_cast<std::uint64_t>(std::max<std::int64_t>(lane_bytes / 4, 1));
  const std::uint32_t phases = words >= 4 ? 4 : words == 2 ? 2 : 1;
  for (std::uint32_t p = 0; p < phases; ++p) {
    const std::uint32_t width = 32 / phases;
    const std::uint32_t set = width == 32 ? ~std::uint32_t{0} : ((1U << width) - 1) << (p * width);
    if ((set & a.mask) == 0) continue;
    c.wavefronts += phase_wavefronts(a, set, words);
    ++c.ideal_wavefronts;
  }
  (access == Access::read ? total.shared_read_bytes : total.shared_written_bytes) += bytes;
}

void fill_counters(Grid& grid) {
  Counters& total = grid.report.counters;
  for (std::size_t pc = 0; pc < grid.counts.size(); ++pc) {
    const PcCount& c = grid.counts[pc];
    if (c.executions == 0) continue;
    const Place place = make_place(grid, static_cast<std::uint32_t>(pc), 0, 0);
    total.warp_instructions += c.executions;
    total.thread_instructions += c.lanes;
    InstrCount out;
    out.ptx_line = place.ptx_line;
    out.source = place.source;
    out.instruction = place.instruction;
    out.executions = c.executions;
    out.divergent = c.divergent;
    out.lanes = c.lanes;
    out.sectors = c.sectors;
    out.ideal_sectors = c.ideal_sectors;
    out.wavefronts = c.wavefronts;
    out.ideal_wavefronts = c.ideal_wavefronts;
    total.instructions.push_back(std::move(out));
  }
}

}  // namespace tilewright::emu::detail
