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

std::uint32_t StreamOrder::add_device() {
  return add_stream(static_cast<std::uint32_t>(streams_.size()));
}

std::uint32_t StreamOrder::add_stream(std::uint32_t default_stream) {
  counts_.push_back(0);
  streams_.push_back({{}, default_stream, false});
  return static_cast<std::uint32_t>(streams_.size() - 1);
}

KnownLaunches StreamOrder::recorded(std::uint32_t stream) const {
  KnownLaunches known = streams_[stream].known;
  join(known, host_);
  join(known, streams_[streams_[stream].default_stream].known);
  if (streams_[stream].default_stream != stream) return known;
  known.resize(counts_.size());
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (streams_[i].default_stream != stream) continue;
    join(known, streams_[i].known);
    known[i] = counts_[i];
  }
  return known;
}

emu::LaunchOrder StreamOrder::launch(std::uint32_t stream, bool dependent) {
  Stream& s = streams_[stream];
  s.known = recorded(stream);
  s.known.resize(counts_.size());
  emu::LaunchOrder order{stream, s.known, dependent && !s.copied};
  s.known[stream] = ++counts_[stream];
  s.copied = false;
  return order;
}

emu::LaunchOrder StreamOrder::copy(std::uint32_t stream) {
  emu::LaunchOrder order = launch(stream, false);
  streams_[stream].copied = true;
  return order;
}

void StreamOrder::stream_waits(std::uint32_t stream, const KnownLaunches& event) {
  join(streams_[stream].known, event);
}

void StreamOrder::host_waits(const KnownLaunches& event) { join(host_, event); }

}  // namespace tilewright::detail
