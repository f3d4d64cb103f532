// SPDX-License-Identifier: Apache-2.0
// What a dependent launch does while it waits: it has its inputs brought into the L2 cache.
#include "kernels/kda_conv_verify/stages.h"
#include "tilewright/cache_policy.h"
#include "tilewright/control.h"
#include "tilewright/thread.h"

namespace tilewright {
namespace {

constexpr int kLine = 128;  // bytes

/// Runs of elements, each fetched by one warp of the block.
class Fetcher {
 public:
  explicit Fetcher(int warps) : warps_(warps) {}

  /// Lines of `rows` runs of `count` elements: `element(row, column)`.
  template <class ElementAt>
  void fetch(int rows, int count, Type type, const ElementAt& element) {
    int elems = kLine * 8 / bits(type);
    int lines = (count + elems - 1) / elems;
    if_(warp_idx() == next_++ % warps_, [&] {
      for_(lane_idx(), rows * lines, 32,
           [&](const Value& i) { prefetch(element(i / lines, i % lines * elems)); });
    });
  }

 private:
  int warps_, next_ = 0;
};

}  // namespace

void KdaStages::fetch() const {
  const KdaConvVerifyArguments<Tensor>& t = p_.t;
  KdaPlace at = place();
  KdaTile part = tile(at, constant(s32, 0));
  Fetcher fetcher(c_.tiling.warps);
  for (const Tensor* indices :
       {&t.conv_state_indices, &t.cache_indices, &t.intermediate_state_indices}) {
    fetcher.fetch(1, 1, indices->type(),
                  [&](const Value&, const Value&) { return (*indices)(at.n); });
  }
  Value q = at.head * c_.k, v = part.v_head * c_.v + part.first + c_.v_channel();
  struct Channels {
    Value first;
    int count;
  };
  for (const Channels& channels :
       {Channels{q, c_.k}, Channels{q + c_.k_channel(), c_.k}, Channels{v, c_.tiling.tile_rows}}) {
    fetcher.fetch(c_.tokens, channels.count, t.mixed_qkv.type(),
                  [&](const Value& token, const Value& column) {
                    return t.mixed_qkv(at.n * c_.tokens + token.to(s64), channels.first + column);
                  });
    fetcher.fetch(1, channels.count * kda::kTaps, t.conv_weight.type(),
                  [&](const Value&, const Value& column) {
                    return t.conv_weight(channels.first + column / kda::kTaps, 0);
                  });
    if (!t.conv_bias) continue;
    fetcher.fetch(1, channels.count, t.conv_bias->type(), [&](const Value&, const Value& column) {
      return (*t.conv_bias)(channels.first + column);
    });
  }
  fetcher.fetch(c_.tokens, c_.k, t.a.type(), [&](const Value& token, const Value& column) {
    return t.a(at.n, token, part.v_head, column);
  });
  fetcher.fetch(c_.tokens, 1, t.b.type(),
                [&](const Value& token, const Value&) { return t.b(at.n, token, part.v_head); });
  fetcher.fetch(1, c_.k, t.dt_bias.type(),
                [&](const Value&, const Value& column) { return t.dt_bias(part.v_head, column); });
  fetcher.fetch(1, 1, t.A_log.type(),
                [&](const Value&, const Value&) { return t.A_log(part.v_head); });
}

}  // namespace tilewright
