// SPDX-License-Identifier: Apache-2.0
// The same launch over and over: does it always give the same bits?
#pragma once

#include "tilewright/kernel.h"
#include "tilewright/stream.h"
#include "tune/session.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace tilewright::tune {

/// A launch that adds to the u64 at `count` in how many words two pieces of memory differ: words of
/// four bytes, or bytes where `size_bytes` is no multiple of four. Pre: at least one byte.
PreparedLaunch prepare_comparison(const Device& device, DeviceAddress a, DeviceAddress b,
                                  std::int64_t size_bytes, DeviceAddress count);

struct Repeats {
  std::int64_t launches = 0;  ///< that were compared with the first one
  /// An output that was not always the same.
  struct Difference {
    std::string output;
    /// Over all launches: words that differed, by prepare_comparison(); where another compares
    /// whole outputs, launches.
    std::uint64_t count = 0;
  };
  std::vector<Difference> differences;
};

/// Calls `launch`, which queues work on `stream`, and then `times` times more, most of it from
/// graphs, and compares what it wrote with what the first one wrote, on the device. Before each,
/// what is `written` is as before the first.
Repeats repeat(const Stream& stream, std::span<const Session::Place> written,
               const std::function<void()>& launch, std::int64_t times);

/// The same of an operator on a GPU; the workspace is left as it is. Throws Error(unsupported) on
/// an emulated device, whose schedules repeat by their seed.
Repeats repeat(const Stream& stream, const Inputs& inputs, const std::vector<std::string>& wanted,
               std::int64_t times);

}  // namespace tilewright::tune
