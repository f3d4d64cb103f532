// SPDX-License-Identifier: Apache-2.0
// Work captured from a stream and launched again as one: CUDA graphs, or a list that is replayed.
#pragma once

#include "tilewright/device.h"
#include "tilewright/stream.h"

namespace tilewright {

namespace detail {
struct GraphState;
void retain(GraphState* state) noexcept;
void release(GraphState* state) noexcept;
}  // namespace detail

class Graph {
 public:
  /// Runs `body`, which queues work on `stream` (not a default stream), and keeps the work instead
  /// of doing it. Copies from and to host memory use that memory at each launch.
  template <typename Body>
  static Graph capture(const Stream& stream, Body&& body) {
    Capture capture(stream);
    body();
    return capture.end();
  }

  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;

  void launch(const Stream& stream) const;
  int nodes() const;

 private:
  /// Ends the stream's capture mode even when the body throws.
  class Capture {
   public:
    explicit Capture(const Stream& stream);
    Capture(const Capture&) = delete;
    Capture& operator=(const Capture&) = delete;
    ~Capture();
    Graph end();

   private:
    const Stream& stream_;
    bool active_ = true;
  };
  explicit Graph(detail::Ref<detail::GraphState> state);
  detail::Ref<detail::GraphState> state_;
};

}  // namespace tilewright
