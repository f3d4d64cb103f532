// SPDX-License-Identifier: Apache-2.0
// Which threads used an mbarrier last: mbarrier.inval must come behind them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewright::emu::detail {

/// The lanes of one warp that used the mbarrier at one instruction, and when. Lanes of a warp that
/// met since count as one party: libcu++'s pipelines rely on a match before they end.
struct MbarrierUser {
  std::uint32_t lanes = 0;
  std::uint32_t pc = 0;
  std::array<std::uint32_t, 32> epoch{};

  /// `when` has the epoch of each lane.
  void add(std::uint32_t mask, std::uint32_t at, const std::array<std::uint32_t, 32>& when) {
    if (at != pc) lanes = 0;
    pc = at;
    lanes |= mask;
    for (std::size_t l = 0; l < epoch.size(); ++l)
      epoch[l] = (mask >> l & 1) != 0 ? when[l] : epoch[l];
  }
};

/// By warp of the cluster.
class MbarrierUsers {
 public:
  MbarrierUser& of_warp(std::size_t warp) {
    if (warp >= users_.size()) users_.resize(warp + 1);
    return users_[warp];
  }
  const std::vector<MbarrierUser>& all() const { return users_; }

 private:
  std::vector<MbarrierUser> users_;
};

}  // namespace tilewright::emu::detail
