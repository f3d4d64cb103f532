// SPDX-License-Identifier: Apache-2.0
// Rows through shared memory, moved by the copy engine: read once, written for each choice.
#include "kernels/moe_dispatch/copy.h"
#include "tilewright/bulk_copy.h"
#include "tilewright/cache_policy.h"
#include "tilewright/control.h"
#include "tilewright/pipeline.h"
#include "tilewright/sync.h"

namespace tilewright {

int TokenCopier::row_bytes() const { return c_.columns * bits(t_.x.type()) / 8; }

void TokenCopier::load_row(const Value& unit, const Value& stage) const {
  if_(thread_ == 0 && unit < units_, [&] {
    Mbarrier full = (*full_)[stage];
    full.arrive_expect_tx(row_bytes());
    bulk_load((*stages_)(stage, 0), t_.x(unit, 0), row_bytes(), full);
  });
}

void TokenCopier::begin_rows() const {
  if_(thread_ == 0, [&] { full_->init(1); });
  warp_barrier();
  for (int stage = 0; stage < c_.stages; ++stage)
    load_row(first_ + grid_dim().x * stage, constant(s32, stage));
}

std::vector<Value> TokenCopier::rows_of_lane(const Tensor& slots, const Value& unit) const {
  std::vector<Value> rows;
  for (int first = 0; first < c_.k; first += 32) {
    Value k = thread_ + first;
    Value row = load_if(k < c_.k, slots(unit * c_.k + k), 1)[0].get();
    rows.push_back(select(k < c_.k, row, -1));
  }
  return rows;
}

/// A stage is filled again when the lanes' stores of the row in it have read it: a step later, so
/// that the stores of two rows are under way.
void TokenCopier::copy_rows(const Tensor& slots) const {
  StageCursor cursor(c_.stages, 0);
  Var before(s32, 0);
  for_(first_, units_, grid_dim().x, [&](const Value& unit) {
    std::vector<Value> rows = rows_of_lane(slots, unit);
    Value stage = cursor.stage();
    (*full_)[stage].wait(cursor.parity());
    for (const Value& row : rows) {
      if_(row >= 0, [&] {
        bulk_store(t_.x_perm(row.assume({.lo = 0}), 0), (*stages_)(stage, 0), row_bytes(),
                   bulk_options());
      });
    }
    bulk_commit();
    if (t_.scales) copy_scales(unit, slots);
    bulk_wait_read(1);
    warp_barrier();
    if_(unit != first_, [&] {
      load_row(unit + grid_dim().x * (c_.stages - 1),
               Value(before).assume({.lo = 0, .hi = c_.stages - 1}));
    });
    before = stage;
    cursor.advance();
  });
  bulk_wait_read();
}

BulkOptions TokenCopier::bulk_options() const {
  if (!c_.streaming) return {};
  return {.policy = cache_policy(Eviction::first)};
}

}  // namespace tilewright
