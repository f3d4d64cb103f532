// SPDX-License-Identifier: Apache-2.0
// Events around graph replays, and how many launches and copies these need.
#include "tune/timing.h"

#include <algorithm>
#include <limits>

namespace tilewright::tune {
namespace {

constexpr int kFewestLaunches = 20;
constexpr int kMostLaunches = 1000;
constexpr std::int64_t kCopiedBytes = std::int64_t{4} << 30;

std::int64_t flush_bytes(const Device& device) {
  return std::max<std::int64_t>(4 * device.properties().l2_bytes, 1);
}

/// Bytes that a run reads and writes; of an operator that does not say, more than there are.
std::int64_t touched_bytes(const Inputs& inputs, const std::vector<std::string>& wanted) {
  if (inputs.op->bytes == nullptr) return std::numeric_limits<std::int64_t>::max();
  return std::max<std::int64_t>(inputs.op->bytes(unplaced_arguments(inputs, wanted)), 1);
}

/// How many runs, each of which touches so much, pass the cache.
std::int64_t beyond_cache(const Device& device, std::int64_t bytes) {
  return 4 * device.properties().l2_bytes / bytes + 2;
}

/// Tables that are larger are not copied for every launch: memory and time would not do.
std::int64_t most_bytes(const Device& device, std::int64_t touched) {
  const std::int64_t all = std::min(kCopiedBytes, device.memory().free_bytes / 4);
  const std::int64_t copies = std::min<std::int64_t>(beyond_cache(device, touched), kMostLaunches);
  return std::max(touched, all / copies);
}

/// How many launches make a replay long enough to be timed.
int launches_for(const Session& session, const Stream& stream, double replay_us) {
  const Event start(stream.device());
  const Event end(stream.device());
  session.launch(stream);  // assembles, which a capture must not
  stream.synchronize();
  const Graph graph = Graph::capture(stream, [&] {
    for (int i = 0; i < kFewestLaunches; ++i)
      session.launch(stream);
  });
  graph.launch(stream);  // warms up
  start.record(stream);
  graph.launch(stream);
  end.record(stream);
  const double us = std::max(elapsed_ms(start, end) * 1000 / kFewestLaunches, 0.1);
  return std::clamp(static_cast<int>(replay_us / us), kFewestLaunches, kMostLaunches);
}

}  // namespace

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Timing timing_of(const std::vector<double>& us) {
  const auto [least, most] = std::minmax_element(us.begin(), us.end());
  return {median(us), *least, *most};
}

ColdClock::ColdClock(const Stream& stream)
    : stream_(stream),
      flush_(stream.device(), flush_bytes(stream.device())),
      start_(stream.device()),
      end_(stream.device()) {}

void ColdClock::begin() const {
  fill(flush_.address(), std::byte{0}, flush_.size_bytes(), stream_);
  start_.record(stream_);
}

double ColdClock::end() const {
  end_.record(stream_);
  return elapsed_ms(start_, end_) * 1000;
}

Rotation::Rotation(const Stream& stream, const Inputs& inputs,
                   const std::vector<std::string>& wanted, double replay_us)
    : Rotation(stream, inputs, wanted, replay_us, touched_bytes(inputs, wanted)) {}

Rotation::Rotation(const Stream& stream, const Inputs& inputs,
                   const std::vector<std::string>& wanted, double replay_us, std::int64_t touched)
    : stream_(stream), slab_(stream.device(), most_bytes(stream.device(), touched)) {
  const Device& device = stream.device();
  if (device.kind() != DeviceKind::cuda) {
    throw Error(ErrorKind::unsupported, "measure: " + device.id() +
                                            " has no clock worth reading; use a cuda device, or "
                                            "'tilewright run' for checks and counters");
  }
  sessions_.emplace_back(device, inputs, wanted, &slab_);
  launches_ = launches_for(sessions_.front(), stream, replay_us);
  const std::int64_t each = std::max<std::int64_t>(sessions_.front().size_bytes(), 1);
  const std::int64_t fitting = device.memory().free_bytes / 2 / each;
  const std::int64_t count =
      std::min({beyond_cache(device, std::min(each, touched)), std::int64_t{launches_}, fitting});
  while (static_cast<std::int64_t>(sessions_.size()) < count)
    sessions_.emplace_back(device, inputs, wanted, &slab_);
}

Graph Rotation::capture() const {
  sessions_.front().launch(stream_);
  stream_.synchronize();
  return Graph::capture(stream_, [&] {
    for (int i = 0; i < launches_; ++i)
      sessions_[static_cast<std::size_t>(i) % sessions_.size()].launch(stream_);
  });
}

}  // namespace tilewright::tune
