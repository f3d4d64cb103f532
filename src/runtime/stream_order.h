// SPDX-License-Identifier: Apache-2.0
// Which launches of emulated devices streams, events and hosts know to have ended.
#pragma once

#include "tilewright/emulator.h"

#include <cstdint>
#include <vector>

namespace tilewright::detail {

/// By stream, how many of its launches have ended.
using KnownLaunches = std::vector<std::uint64_t>;

/// The order of the launches in one address space, on one device or on several.
class StreamOrder {
 public:
  /// The number of the default stream of a new device: it waits for all other streams of that
  /// device, and they for it.
  std::uint32_t add_device();
  /// The number of a new stream of the device with that default stream.
  std::uint32_t add_stream(std::uint32_t default_stream);
  /// There are streams that nothing orders of itself.
  bool has_several() const { return streams_.size() > 1; }
  /// The next launch on a stream. A dependent one waits for a copy in front of it all the same.
  emu::LaunchOrder launch(std::uint32_t stream, bool dependent);
  /// A copy or fill, as the next launch on a stream.
  emu::LaunchOrder copy(std::uint32_t stream);
  /// What an event that is recorded on a stream stands for.
  KnownLaunches recorded(std::uint32_t stream) const;
  void stream_waits(std::uint32_t stream, const KnownLaunches& event);
  void host_waits(const KnownLaunches& event);

 private:
  struct Stream {
    KnownLaunches known;
    std::uint32_t default_stream = 0;
    bool copied = false;  ///< the last of it was a copy
  };
  KnownLaunches counts_, host_;
  std::vector<Stream> streams_;
};

}  // namespace tilewright::detail
