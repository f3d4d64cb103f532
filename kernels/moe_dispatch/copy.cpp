// SPDX-License-Identifier: Apache-2.0
// Rows and scales to their experts, and zeros to padding.
#include "kernels/moe_dispatch/copy.h"

#include "tilewright/bulk_copy.h"
#include "tilewright/control.h"
#include "tilewright/thread.h"

#include <algorithm>

namespace tilewright {
namespace {

constexpr int kSlotsAtOnce = 8;

/// Calls store_to(row) for each choice of the token that has one.
template <class StoreTo>
void for_slots(const Tensor& slots, const Value& token, int k, const StoreTo& store_to) {
  for (int first = 0; first < k; first += kSlotsAtOnce) {
    int count = std::min(kSlotsAtOnce, k - first);
    Fragment some = load(slots(token * k + first), count);
    for (int i = 0; i < count; ++i) {
      Value row = some[i].get();
      if_(row >= 0, [&] { store_to(row.assume({.lo = 0})); });
    }
  }
}

}  // namespace

std::string to_string(const CopyConfig& c) {
  return "h=" + std::to_string(c.columns) + " v=" + std::to_string(c.vector_elems) +
         " t=" + std::to_string(c.threads) + " n=" + std::to_string(c.accesses) +
         (c.zero_pad ? " zero_pad" : "") +
         (c.stages > 0 ? " stages=" + std::to_string(c.stages) : "") +
         (c.streaming ? " streaming" : "") +
         (c.ahead > 0 ? " ahead=" + std::to_string(c.ahead) + "x" + std::to_string(c.wave) : "");
}

TokenCopier::TokenCopier(const CopyConfig& config, const CopyTensors& tensors)
    : c_(config),
      t_(tensors),
      thread_(linear_thread_idx()),
      first_(block_idx().x),
      units_(to_value(tensors.x.shape()[0].value()) * config.units_per_token()) {
  if (c_.stages == 0) return;
  stages_.emplace(dynamic_shared(t_.x.type(), make_row_major(Shape{c_.stages, c_.columns})));
  full_.emplace(c_.stages);
}

Value TokenCopier::token(const Value& unit) const { return unit / c_.units_per_token(); }

Value TokenCopier::column(const Value& unit, int access) const {
  Value in_unit = (thread_ + access * c_.threads) * c_.vector_elems;
  return unit % c_.units_per_token() * c_.unit_columns() + in_unit;
}

std::vector<Fragment> TokenCopier::load_unit(const Value& unit) const {
  std::vector<Fragment> row;
  for (int access = 0; access < c_.accesses; ++access) {
    Value at = column(unit, access);
    row.push_back(
        load_if(unit < units_ && at < c_.columns, t_.x(token(unit), at), c_.vector_elems));
  }
  return row;
}

void TokenCopier::store_unit(const Value& unit, const std::vector<Fragment>& row,
                             const Tensor& slots) const {
  for_slots(slots, token(unit), c_.k, [&](const Value& to) {
    for (int access = 0; access < c_.accesses; ++access) {
      Value at = column(unit, access);
      store_if(at < c_.columns, t_.x_perm(to, at), row[static_cast<std::size_t>(access)],
               store_options());
    }
  });
  if (t_.scales) if_(unit % c_.units_per_token() == 0, [&] { copy_scales(token(unit), slots); });
}

void TokenCopier::copy_scales(const Value& token, const Tensor& slots) const {
  Value groups = to_value(t_.scales->shape()[1].value());
  for_(thread_, groups, c_.threads, [&](const Value& group) {
    Fragment scale = load((*t_.scales)(token, group), 1);
    for_slots(slots, token, c_.k,
              [&](const Value& to) { store((*t_.scales_perm)(to, group), scale); });
  });
}

void TokenCopier::zero_row(const Value& row) const {
  if (c_.zero_pad) {
    Fragment zeros(t_.x_perm.type(), c_.vector_elems);
    zeros.fill(0);
    Value first = thread_ * c_.vector_elems;
    for_(first, c_.columns, c_.threads * c_.vector_elems, [&](const Value& at) {
      store(t_.x_perm(row, at.assume({.divisor = c_.vector_elems})), zeros);
    });
  }
  if (t_.scales_perm) {
    Value groups = to_value(t_.scales_perm->shape()[1].value());
    for_(thread_, groups, c_.threads,
         [&](const Value& group) { (*t_.scales_perm)(row, group) = 0; });
  }
}

/// Several blocks share an expert's padding.
void TokenCopier::zero_padding(const ExpertRows& rows) const {
  int sharers = std::min(c_.block - 1, 8);
  for_(first_, c_.experts * sharers, grid_dim().x, [&](const Value& part) {
    Value expert = part / sharers;
    Value begin = rows.offsets(expert).load() + rows.counts(expert).load();
    for_(begin + part % sharers, rows.offsets(expert + 1).load(), sharers,
         [&](const Value& row) { zero_row(row); });
  });
}

/// Other blocks copy these units; they find them in the cache.
void TokenCopier::fetch_ahead() const {
  if_(thread_ == 0 && first_ < c_.wave, [&] {
    for (int i = 1; i <= c_.ahead; ++i) {
      Value unit = first_ + (std::max(c_.stages, 1) + i - 1) * c_.wave;
      Value first = unit % c_.units_per_token() * c_.unit_columns();
      Value bytes = min(c_.columns - first, c_.unit_columns()) * (bits(t_.x.type()) / 8);
      if_(unit < units_,
          [&] { bulk_prefetch(t_.x(token(unit), first), bytes.assume({.divisor = 16})); });
    }
  });
}

StoreOptions TokenCopier::store_options() const {
  return {.cache = c_.streaming ? Cache::streaming : Cache::all};
}

void TokenCopier::begin() {
  if (c_.stages > 0) {
    begin_rows();
  } else {
    row_ = load_unit(first_);
  }
  if (c_.ahead > 0) fetch_ahead();
}

void TokenCopier::copy_tokens_to_experts(const Tensor& slots, const ExpertRows& rows) {
  if (c_.stages > 0) {
    copy_rows(slots);
  } else {
    if_(first_ < units_, [&] { store_unit(first_, row_, slots); });
    for_(first_ + grid_dim().x, units_, grid_dim().x,
         [&](const Value& unit) { store_unit(unit, load_unit(unit), slots); });
  }
  if (c_.block > 1 && (c_.zero_pad || t_.scales)) zero_padding(rows);
}

}  // namespace tilewright
