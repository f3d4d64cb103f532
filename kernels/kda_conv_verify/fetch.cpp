// SPDX-License-Identifier: Apache-2.0
// What a dependent launch does while it waits: it has its inputs brought into the L2 cache.
#include "kernels/kda_conv_verify/stages.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/cache_policy.h"
#include "tilewright/control.h"
#include "tilewright/ordered.h"
#include "tilewright/thread.h"

namespace tilewright {

KdaStages KdaStages::fetching() const {
  KdaStages stages(*this);
  stages.access_ = kda::Access::fetch;
  return stages;
}

KdaRow KdaStages::row_without_indices() const {
  Value none = constant(s64, 0);
  return {place(), none, none, none};
}

void KdaStages::fetch_indices(const KdaRow& row) const {
  for (const Tensor* indices :
       {&p_.t.conv_state_indices, &p_.t.cache_indices, &p_.t.intermediate_state_indices})
    prefetch((*indices)(row.n));
}

KdaStages::Start KdaStages::guess(const KdaRow& row) const {
  // A strong load leaves nothing in the L1 cache, where the launch's own load would find it.
  auto index_by_now = [&](const Tensor& indices) {
    return load_relaxed(indices(row.n), Scope::gpu).to(s64);
  };
  auto within = [](const Value& index, const Tensor& pool) {
    return index >= 0 && index < to_value(pool.shape()[0].value()).to(s64);
  };
  Value line = index_by_now(p_.t.conv_state_indices), slot = index_by_now(p_.t.cache_indices);
  return {{row, line, slot, line}, within(line, p_.t.conv_state) && within(slot, p_.t.ssm_states)};
}

void KdaStages::fetch_state(const KdaRow& row, const KdaTile& tile) const {
  const int bytes = c_.tiling.tile_rows * c_.k * bits(p_.t.ssm_states.type()) / 8;
  if_(lane_idx() == 0,
      [&] { bulk_prefetch(p_.t.ssm_states(row.slot, tile.v_head, tile.first, 0), bytes); });
}

}  // namespace tilewright
