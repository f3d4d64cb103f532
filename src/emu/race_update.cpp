// SPDX-License-Identifier: Apache-2.0
// The race check for the atomics of a warp: strong accesses, which mostly meet only such.
#include "emu/grid.h"
#include "emu/race.h"

#include <algorithm>
#include <array>

namespace tilewright::emu::detail {

namespace {

constexpr std::uint64_t kBlock = std::uint64_t{Record::kBlockLimit} << Record::kBlockShift;
constexpr std::uint64_t kScope = std::uint64_t{7} << Record::kScopeShift;

template <unsigned words>
class Updates {
 public:
  Updates(Exec& x, const ShadowTarget& target, const WarpUpdates& u)
      : x_(x), target_(target), u_(u) {
    std::uint32_t last = 0;
    for_lanes(x.mask, [&](unsigned lane) { last = std::max(last, u.at[lane] / 4); });
    view_ = target.map->view(target.word, last + words);
  }
  bool harmless();
  void record() const;

 private:
  Exec& x_;
  const ShadowTarget& target_;
  const WarpUpdates& u_;
  ShadowView view_;
  std::uint32_t pc_ = sized_pc(x_.pc, 4 * words);
  bool was_read_ = false;

  bool each_harmless() const;
};

/// Strong accesses of this block are no conflict: one test for the words of all lanes.
template <unsigned words>
bool Updates<words>::harmless() {
  const std::uint64_t mine = std::uint64_t{x_.block->number} << Record::kBlockShift;
  std::uint64_t readers = 0;
  bool good = true;
  for_lanes(x_.mask, [&](unsigned lane) {
    for (unsigned i = 0; i < words; ++i) {
      const std::uint32_t word = u_.at[lane] / 4 + i;
      const std::uint64_t w = view_.writer[word];
      readers |= view_.reader[word];
      good &= (((w ^ mine) & kBlock) == 0) & ((w & kScope) != 0) &
              (((view_.writer_pc[word] ^ pc_) & ~kPcMask) == 0);
    }
  });
  was_read_ = readers != 0;
  return (good && !was_read_) || each_harmless();
}

template <unsigned words>
bool Updates<words>::each_harmless() const {
  const Settled settled(x_, target_);
  bool good = true;
  for_lanes(x_.mask, [&](unsigned lane) {
    for (unsigned i = 0; i < words; ++i) {
      const std::uint32_t word = u_.at[lane] / 4 + i;
      const auto harmless = [&](Record r, std::uint32_t pc) {
        return settled(r.bits) ||
               (r.agent() < kAgents && strong_together(x_, r, pc, u_.strength, pc_));
      };
      good = good && harmless({view_.writer[word]}, view_.writer_pc[word]) &&
             harmless({view_.reader[word]}, view_.reader_pc[word]);
    }
  });
  return good;
}

template <unsigned words>
void Updates<words>::record() const {
  const auto scope = static_cast<std::uint32_t>(u_.strength);
  const std::uint64_t first = Record::make(0, x_.block->number, x_.warp->thread(0), scope, 15).bits;
  std::array<std::uint64_t, 32> own;
  for (unsigned l = 0; l < 32; ++l) {
    own[l] = first + (std::uint64_t{x_.warp->clocks.epoch[l]} << Record::kEpochShift) +
             (std::uint64_t{l} << Record::kAgentShift);
  }
  for_lanes(x_.mask, [&](unsigned lane) {
    for (unsigned i = 0; i < words; ++i) {
      const std::uint32_t word = u_.at[lane] / 4 + i;
      view_.writer[word] = own[lane];
      view_.writer_pc[word] = pc_;
    }
  });
  if (!was_read_) return;
  for_lanes(x_.mask, [&](unsigned lane) {
    for (unsigned i = 0; i < words; ++i)
      view_.reader[u_.at[lane] / 4 + i] = 0;
  });
}

template <unsigned words>
bool note(Exec& x, const ShadowTarget& target, const WarpUpdates& u) {
  Updates<words> updates(x, target, u);
  if (!updates.harmless()) return false;
  updates.record();
  return true;
}

}  // namespace

bool note_updates(Exec& x, const ShadowTarget& target, const WarpUpdates& u) {
  return u.words == 1 ? note<1>(x, target, u) : note<2>(x, target, u);
}

}  // namespace tilewright::emu::detail
