// SPDX-License-Identifier: Apache-2.0
// Which launches of an emulated device streams, events and the host know to have ended.
#pragma once

#include "tilewright/emulator.h"

#include <cstdint>
#include <vector>

namespace tilewright::detail {

/// By stream, how many of its launches have ended. Stream 0 is the default stream: it waits for
/// all others, and they for it.
using KnownLaunches = std::vector<std::uint64_t>;

class StreamOrder {
 public:
  /// The number of a new stream.
  std::uint32_t add_stream();
  /// The next launch on a stream.
  emu::LaunchOrder launch(std::uint32_t stream, bool dependent);
  /// What an event that is recorded on a stream stands for.
  KnownLaunches recorded(std::uint32_t stream) const;
  void stream_waits(std::uint32_t stream, const KnownLaunches& event);
  void host_waits(const KnownLaunches& event);
  /// For the launches on the default stream themselves.
  void host_waits_for_default() { host_waits({counts_[0]}); }

 private:
  KnownLaunches counts_{0}, host_;
  std::vector<KnownLaunches> streams_{{}};
};

}  // namespace tilewright::detail
