// SPDX-License-Identifier: Apache-2.0
// Buffers and mbarriers between two warps.
#include "kernels/kda_prefill/handover.h"

#include "tilewright/control.h"
#include "tilewright/sync.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

constexpr int kLaneElems = 8;  // of an operand A of m16n8k16
constexpr int kStepElems = 32 * kLaneElems;
constexpr int kStep = 16;

int steps(const ChunkShape& shape) { return (shape.k + shape.tokens) / kStep; }

void arrive_by_one(const Mbarrier& mbarrier) {
  if_(lane_idx() == 0, [&] { mbarrier.arrive(); });
}

}  // namespace

std::int64_t Handover::bytes(const ChunkShape& shape, int pairs) {
  return std::int64_t{2} * pairs * (steps(shape) * kStepElems * 2 + 16);
}

Handover::Handover(const ChunkShape& shape, int pairs, std::int64_t offset_bytes)
    : s_(shape), pairs_(pairs), offset_bytes_(offset_bytes), full_(2 * pairs), empty_(2 * pairs) {
  if_(thread_idx().x == 0, [&] {
    full_.init(1);
    empty_.init(1);
  });
}

Handover::Buffer Handover::buffer(const Value& pair, const Value& chunk) const {
  Value which = (pair * 2 + chunk % 2).assume({1, 0, 2 * pairs_ - 1});
  int elems = steps(s_) * kStepElems;
  Tensor all =
      dynamic_shared(s_.operand(), make_row_major(Shape{2 * pairs_, elems}), offset_bytes_);
  Tensor scales = dynamic_shared(f32, make_row_major(Shape{2 * pairs_, 4}),
                                 offset_bytes_ + std::int64_t{4} * pairs_ * elems);
  return {s_, all(which, _), scales(which, 0), full_[which], empty_[which], chunk / 2 % 2};
}

Element Handover::Buffer::place(int step) const {
  return operands_(step * kStepElems + lane_idx() * kLaneElems);
}

/// The phase before the first is complete.
void Handover::Buffer::wait_empty() const { empty_.wait(1 - parity_); }

void Handover::Buffer::put_state(const ChunkRecord&, int step, const Fragment& a) const {
  store(place(step), a);
}

void Handover::Buffer::put_added(const ChunkRecord&, const Fragment& added,
                                 const Value& scale) const {
  for (int step = 0; step < s_.blocks(); ++step)
    store(place(s_.k / kStep + step), added.part(kLaneElems * step, kLaneElems));
  if_(lane_idx() == 0, [&] { scale_ = scale; });
  warp_barrier();
  arrive_by_one(full_);
}

void Handover::Buffer::wait_full() const { full_.wait(parity_); }

Fragment Handover::Buffer::state(int step) const { return load(place(step), kLaneElems); }

Fragment Handover::Buffer::added() const {
  Fragment all(s_.operand(), kLaneElems * s_.blocks());
  for (int step = 0; step < s_.blocks(); ++step)
    all.part(kLaneElems * step, kLaneElems).assign(load(place(s_.k / kStep + step), kLaneElems));
  return all;
}

Value Handover::Buffer::scale() const { return scale_.load(); }

void Handover::Buffer::release() const { arrive_by_one(empty_); }

}  // namespace tilewright
