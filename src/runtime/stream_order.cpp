// SPDX-License-Identifier: Apache-2.0
// Vector clocks of streams.
#include "runtime/stream_order.h"

#include <algorithm>

namespace tilewright::detail {

namespace {
void join(KnownLaunches& to, const KnownLaunches& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i)
    to[i] = std::max(to[i], from[i]);
}
}  // namespace

std::uint32_t StreamOrder::add_stream() {
  counts_.push_back(0);
  streams_.emplace_back();
  return static_cast<std::uint32_t>(streams_.size() - 1);
}

KnownLaunches StreamOrder::recorded(std::uint32_t stream) const {
  if (stream == 0) return counts_;
  KnownLaunches known = streams_[stream];
  join(known, host_);
  join(known, streams_[0]);
  return known;
}

emu::LaunchOrder StreamOrder::launch(std::uint32_t stream, bool dependent) {
  KnownLaunches& known = streams_[stream];
  known = recorded(stream);
  known.resize(counts_.size());
  emu::LaunchOrder order{stream, known, dependent};
  known[stream] = ++counts_[stream];
  return order;
}

void StreamOrder::stream_waits(std::uint32_t stream, const KnownLaunches& event) {
  join(streams_[stream], event);
}

void StreamOrder::host_waits(const KnownLaunches& event) { join(host_, event); }

}  // namespace tilewright::detail
