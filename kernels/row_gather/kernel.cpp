// SPDX-License-Identifier: Apache-2.0
// The device side of gather_rows and embedding.
#include "kernels/row_gather/row_gather.h"
#include "tilewright/atomic.h"
#include "tilewright/control.h"
#include "tilewright/fragment.h"

#include <optional>
#include <utility>
#include <vector>

namespace tilewright {
namespace {

/// Which tokens have which rows of the table.
struct Tokens {
  Value first_id;
  std::optional<Value> count, added_id, added_row;
};

class RowGatherKernel {
 public:
  RowGatherKernel(const RowGatherPlan& plan, Tokens tokens, const Value& scale)
      : plan_(plan), tokens_(std::move(tokens)), scale_(scale) {}

  void operator()(const Tensor& ids, const Tensor& table, const Tensor& row_scale,
                  const Tensor& out, const std::optional<Tensor>& bad_ids,
                  const Value& along) const {
    const std::vector<rows::RowShare> shares =
        rows::row_shares(plan_.config.tile, along, out.shape()[0].value(), out.shape()[1].value());
    if_(shares.front().inside, [&] {
      const auto [row, exists] = row_of(Value(ids(shares.front().row)).to(s64), table);
      std::vector<Fragment> loaded;  // all on their way before the first store
      for (const rows::RowShare& share : shares) {
        Value active = &share == &shares.front() ? exists : exists && share.inside;
        loaded.push_back(load_if(active, table(row, share.column), plan_.config.tile.vector_elems));
      }
      std::optional<Value> factor;
      if (plan_.tensors.row_scale) factor.emplace(load_if(exists, row_scale(row), 1)[0].get());
      for (std::size_t j = 0; j < shares.size(); ++j) {
        const rows::RowShare& share = shares[j];
        Fragment stored = loaded[j];
        if (plan_.config.mode == GatherMode::convert) {
          stored = converted(loaded[j], exists, factor).to(out.type());
        }
        Value inside = j == 0 ? constant(pred, true) : share.inside;
        store_if(inside, out(share.row, share.column), stored);
      }
      if (bad_ids) if_(!exists && shares.front().column == 0, [&] { red_add((*bad_ids)(0), 1); });
    });
  }

 private:
  struct Found {
    Value row, exists;
  };
  Found row_of(const Value& id, const Tensor& table) const {
    Value rows = to_value(table.shape()[0].value()).to(s64);
    Value row = id - tokens_.first_id;
    Value exists = row >= 0 && row < tokens_.count.value_or(rows);
    if (!tokens_.added_id) return {row, exists};
    Value added = id - *tokens_.added_id + *tokens_.added_row;
    Value is_added = id >= *tokens_.added_id && added < rows;
    return {select(exists, row, added), exists || is_added};
  }

  Fragment converted(const Fragment& row, const Value& exists,
                     const std::optional<Value>& factor) const {
    Fragment wide = row.to(f32);
    if (factor) wide = wide * *factor;
    if (!plan_.config.has_scale) return wide;
    return map(wide, [&](const Value& x) {
      return select(exists, x * scale_, 0.0f);  // 0 * scale may be -0
    });
  }

  const RowGatherPlan& plan_;
  Tokens tokens_;
  Value scale_;
};

}  // namespace

Traced RowGatherPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{.name = std::string(op) + "_" + std::string(name(table_arg.type)),
                             .target = target,
                             .block = {config.tile.threads, 1, 1}};
  auto body = [this](const Tensor& ids, const Tensor& table, const Tensor& row_scale,
                     const Tensor& out, const std::optional<Tensor>& bad_ids, const Value& first_id,
                     const std::optional<Value>& count, const std::optional<Value>& added_id,
                     const std::optional<Value>& added_row, const Value& scale,
                     const Value& along) {
    RowGatherKernel(*this, {first_id, count, added_id, added_row}, scale)(ids, table, row_scale,
                                                                          out, bad_ids, along);
  };
  const ScalarArg number{s64, {}};
  const std::optional<ScalarArg> of_count = config.has_count ? std::optional(number) : std::nullopt;
  const std::optional<ScalarArg> of_added = config.has_added ? std::optional(number) : std::nullopt;
  return tilewright::trace(trace_options, body, ids_arg, table_arg, scale_arg, out_arg, bad_ids_arg,
                           number, of_count, of_added, of_added, ScalarArg{f32, {}},
                           rows::divisor_arg());
}

}  // namespace tilewright
