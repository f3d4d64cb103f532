// SPDX-License-Identifier: Apache-2.0
// The one way to time work on a GPU: graphs of launches on cold, rotating tensors.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/graph.h"
#include "tilewright/stream.h"
#include "tune/session.h"

#include <string>
#include <vector>

namespace tilewright::tune {

double median(std::vector<double> values);  ///< Pre: at least one

/// Microseconds a launch; median over replays of a graph of several launches.
struct Timing {
  double median_us = 0;
  double fastest_us = 0;
  double slowest_us = 0;
};
Timing timing_of(const std::vector<double>& us);

/// Times what a stream does after its cache was flushed.
class ColdClock {
 public:
  explicit ColdClock(const Stream& stream);

  /// Microseconds from the first to the last of what `queue` puts on the stream.
  template <typename Queue>
  double us(Queue&& queue) const {
    begin();
    queue();
    return end();
  }

 private:
  void begin() const;
  double end() const;

  const Stream& stream_;
  Buffer flush_;
  Event start_, end_;
};

/// Copies of an operator's tensors that launches use in turn: what they touch is more than four
/// times the L2 cache in all, where the number of launches and the memory allow. Copies of a large
/// table of which a launch touches little are windows, see Slab.
class Rotation {
 public:
  /// As many launches as make a replay of about `replay_us`, 20 to 1000. Throws Error(unsupported)
  /// on an emulated device.
  Rotation(const Stream& stream, const Inputs& inputs, const std::vector<std::string>& wanted,
           double replay_us);

  int launches() const { return launches_; }  ///< of a graph
  int copies() const { return static_cast<int>(sessions_.size()); }
  const Arguments& arguments() const { return sessions_.front().arguments(); }
  /// A graph of all launches, after one that assembles what a capture must not.
  Graph capture() const;

 private:
  Rotation(const Stream& stream, const Inputs& inputs, const std::vector<std::string>& wanted,
           double replay_us, std::int64_t touched);

  const Stream& stream_;
  Slab slab_;
  std::vector<Session> sessions_;
  int launches_ = 0;
};

}  // namespace tilewright::tune
