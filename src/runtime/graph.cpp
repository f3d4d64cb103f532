// SPDX-License-Identifier: Apache-2.0
// Capturing a stream and launching what was captured.
#include "tilewright/graph.h"

#include "runtime/backend.h"

namespace tilewright {
namespace detail {

void retain(GraphState* state) noexcept { state->owners.fetch_add(1, std::memory_order_relaxed); }
void release(GraphState* state) noexcept {
  if (state->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete state;
}

}  // namespace detail

Graph::Graph(detail::Ref<detail::GraphState> state) : state_(std::move(state)) {}

Graph::Capture::Capture(const Stream& stream) : stream_(stream) {
  if (stream.handle() == nullptr) {
    throw Error(ErrorKind::user,
                "graph capture: a default stream cannot be captured; make a Stream of its own");
  }
  stream.device().backend().begin_capture(stream.handle());
}

Graph::Capture::~Capture() {
  if (active_) stream_.device().backend().abandon_capture(stream_.handle());
}

Graph Graph::Capture::end() {
  active_ = false;
  return Graph(stream_.device().backend().end_capture(stream_.device(), stream_.handle()));
}

void Graph::launch(const Stream& stream) const {
  state_->device.backend().launch_graph(*state_, stream.handle());
}

int Graph::nodes() const { return state_->nodes; }

}  // namespace tilewright
