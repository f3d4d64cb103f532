// SPDX-License-Identifier: Apache-2.0
// The scheduler's decisions: drawn by a seed, or replayed; recorded if asked for.
#pragma once

#include "emu/warp.h"
#include "tilewright/emulator.h"
#include "tilewright/replay.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tilewright::emu::detail {

/// A small fast generator (xoshiro256**), seeded by Options::seed.
class Random {
 public:
  explicit Random(std::uint64_t seed);
  std::uint64_t next() {
    const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = std::rotl(state_[3], 45);
    return result;
  }
  /// Uniform in [0, bound). Pre: bound > 0.
  std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

 private:
  std::array<std::uint64_t, 4> state_;
};

class Decisions {
 public:
  explicit Decisions(const Options& options);

  /// Which of the ready warps runs next, and for how many instructions at most.
  struct Next {
    std::size_t index = 0;
    std::uint32_t budget = 0;
  };
  Next next(const std::vector<Warp*>& ready);
  /// The turn is over after `used` instructions, or (`waits`) because nothing of the warp can run.
  void turn_ended(std::uint32_t used, bool waits);
  /// All wait: what follows belongs to no warp.
  void idle();
  /// A choice within the turn, in [0, bound).
  std::uint32_t below(std::uint32_t bound);

 private:
  Random random_;
  bool coarse_;
  const Schedule* replay_;
  Schedule* record_;
  std::size_t position_ = 0;       ///< in the replayed schedule
  const Turn* current_ = nullptr;  ///< the replayed turn; null: none
  std::size_t choice_ = 0;         ///< of the current turn
  std::size_t next_in_order_ = 0;

  bool turn_of(const std::vector<Warp*>& ready, Next& out);
  void record(Turn turn);
};

}  // namespace tilewright::emu::detail
