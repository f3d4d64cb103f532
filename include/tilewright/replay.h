// SPDX-License-Identifier: Apache-2.0
// Schedules of the emulator: recorded, written as text, replayed, and shortened to what matters.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tilewright::emu {

/// A warp runs for a while, or (`idle`) all wait and something asynchronous happens.
struct Turn {
  bool idle = false;
  std::uint32_t grid = 0;  ///< among those that run together
  std::uint64_t block = 0;
  std::uint32_t warp = 0;
  std::uint32_t steps = 0;             ///< warp instructions; 0: until the warp waits or ends
  std::vector<std::uint32_t> choices;  ///< made meanwhile: splits, copies that are delivered
  bool operator==(const Turn&) const = default;
};

/// What a scheduler decided. A turn whose warp cannot run is passed over; behind the last one the
/// warps take turns in order, each until it waits.
struct Schedule {
  std::vector<Turn> turns;
  bool operator==(const Schedule&) const = default;
};

/// "b0w1x12,b0w0": warp 1 of block 0 runs 12 instructions, then warp 0 until it waits. A `:1.0`
/// behind a turn are its choices, `idle:2` is a turn of its own, `g1` names another grid. "plain"
/// has no turns.
std::string to_string(const Schedule& schedule);
/// Throws Error(user) that names the turn it cannot read.
Schedule parse_schedule(std::string_view text);

/// A reference to a callable `bool(const Schedule&)`; valid while the callable lives.
class ScheduleTest {
 public:
  template <typename F>
  requires(!std::same_as<std::remove_cvref_t<F>, ScheduleTest>)
      // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      ScheduleTest(F&& function)  // converts at the call; constrained above
      : object_(const_cast<void*>(static_cast<const void*>(&function))),
        call_([](void* object, const Schedule& schedule) -> bool {
          return (*static_cast<std::remove_reference_t<F>*>(object))(schedule);
        }) {}
  bool operator()(const Schedule& schedule) const { return call_(object_, schedule); }

 private:
  void* object_;
  bool (*call_)(void*, const Schedule&);
};

/// The shortest schedule found that `shows` still accepts, by leaving out turns and choices
/// (delta debugging); at most `trials` are tried. `schedule` itself if nothing can be left out.
Schedule shorten(const Schedule& schedule, ScheduleTest shows, int trials = 200);

}  // namespace tilewright::emu
