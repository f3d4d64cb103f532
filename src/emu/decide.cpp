// SPDX-License-Identifier: Apache-2.0
// Decisions of the scheduler: a seeded generator, or the turns of a schedule.
#include "emu/decide.h"

#include "emu/grid.h"

#include <algorithm>

namespace tilewright::emu::detail {

namespace {

/// Turns behind the end of a replayed schedule; a loop that waits for another warp must end.
constexpr std::uint32_t kLongTurn = 1 << 12;
/// Longer runs are recorded up to here.
constexpr std::size_t kMostTurns = 1 << 20;

}  // namespace

Random::Random(std::uint64_t seed) {
  for (auto& s : state_) {  // splitmix64
    seed += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = seed;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    s = z ^ (z >> 31);
  }
}

Decisions::Decisions(const Options& options)
    : random_(options.seed),
      coarse_(options.seed % 2 == 0),
      replay_(options.replay),
      record_(options.record) {
  if (record_ != nullptr) record_->turns.clear();
}

void Decisions::record(Turn turn) {
  if (record_ != nullptr && record_->turns.size() < kMostTurns) {
    record_->turns.push_back(std::move(turn));
  }
}

/// The next turn of the schedule whose warp is ready.
bool Decisions::turn_of(const std::vector<Warp*>& ready, Next& out) {
  while (position_ < replay_->turns.size()) {
    const Turn& t = replay_->turns[position_++];
    if (t.idle) continue;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      const Block& block = *ready[i]->block;
      if (ready[i]->id != t.warp || block.linear != t.block || block.grid->index != t.grid)
        continue;
      current_ = &t;
      out = {i, t.steps != 0 ? t.steps : ~std::uint32_t{0}};
      return true;
    }
  }
  return false;
}

Decisions::Next Decisions::next(const std::vector<Warp*>& ready) {
  Next out;
  choice_ = 0;
  current_ = nullptr;
  if (replay_ == nullptr) {
    // Short and long turns both: short ones interleave finely, long ones are cheap. They are of
    // many lengths at odd seeds, and seven in eight run until the warp waits at even ones.
    const std::uint64_t bits = random_.next();
    out.index = static_cast<std::size_t>(((bits >> 32) * ready.size()) >> 32);
    const auto doublings = static_cast<unsigned>((bits & 0xffff) * 12 >> 16);
    const bool long_turn = coarse_ && (bits >> 28 & 7) != 0;
    out.budget = long_turn ? kLongTurn
                           : 1 + static_cast<std::uint32_t>(bits >> 16 & ((1U << doublings) - 1));
  } else if (!turn_of(ready, out)) {
    out = {next_in_order_++ % ready.size(), kLongTurn};
  }
  if (record_ == nullptr) return out;
  const Warp& warp = *ready[out.index];
  record({false, warp.block->grid->index, warp.block->linear, warp.id, 0, {}});
  return out;
}

void Decisions::turn_ended(std::uint32_t used, bool waits) {
  if (record_ != nullptr && !record_->turns.empty() && !waits) record_->turns.back().steps = used;
}

void Decisions::idle() {
  choice_ = 0;
  current_ = nullptr;
  record({true, 0, 0, 0, 0, {}});
  if (replay_ == nullptr || position_ >= replay_->turns.size()) return;
  if (replay_->turns[position_].idle) current_ = &replay_->turns[position_++];
}

std::uint32_t Decisions::below(std::uint32_t bound) {
  std::uint32_t value = 0;
  if (replay_ == nullptr) {
    value = random_.below(bound);
  } else if (current_ != nullptr && choice_ < current_->choices.size()) {
    value = current_->choices[choice_++] % bound;
  }
  if (record_ != nullptr && !record_->turns.empty()) record_->turns.back().choices.push_back(value);
  return value;
}

}  // namespace tilewright::emu::detail
