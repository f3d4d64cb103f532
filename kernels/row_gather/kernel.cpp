// SPDX-License-Identifier: Apache-2.0
// The device side of gather_rows and embedding.
#include "kernels/row_gather/gathered_row.h"
#include "tilewright/atomic.h"
#include "tilewright/control.h"

#include <utility>
#include <vector>

namespace tilewright {
namespace {

class RowGatherKernel {
 public:
  RowGatherKernel(const RowGatherPlan& plan, GatherParameters parameters)
      : plan_(plan), p_(std::move(parameters)) {}

  /// What does not depend on the index comes before it arrives, and no branch before it is read.
  void operator()() const {
    const Int row_count = p_.out.shape()[0].value();
    const std::vector<rows::RowShare> shares =
        rows::row_shares(plan_.config.tile, row_count, plan_.tensors.out.shape[1]);
    const Value in_rows = shares.front().in_rows;
    const std::vector<Fragment> added_indices = load_added_indices(shares.front());
    const rows::IndexedRow from =
        row_of_token(p_, load_if(in_rows, p_.ids(shares.front().row), 1)[0]);
    const Value exists = in_rows && from.exists;
    std::vector<Fragment> loaded;  // all on their way before the first store
    loaded.reserve(shares.size());
    for (const rows::RowShare& share : shares)
      loaded.push_back(load_part(p_.table, from, share));
    const std::vector<std::vector<Fragment>> added = load_added(added_indices, from, shares);
    std::optional<Value> factor;
    if (p_.row_scale) factor.emplace(load_if(exists, (*p_.row_scale)(from.row), 1)[0].get());
    for (std::size_t j = 0; j < shares.size(); ++j) {
      const bool converts = plan_.config.mode == GatherMode::convert;
      const Fragment stored =
          converts ? embedded(p_, loaded[j], exists, factor, added[j]).to(p_.out.type())
                   : loaded[j];
      const Element place =
          rows::early_access(p_.out, shares[j].row, shares[j].column, vector_elems());
      const bool skips = plan_.config.missing == MissingRow::skip;
      store_if(skips ? shares[j].inside && from.exists : shares[j].inside, place, stored);
    }
    if (p_.bad_ids) {
      if_(in_rows && !from.exists && shares.front().column == 0,
          [&] { red_add((*p_.bad_ids)(0), 1); });
    }
  }

 private:
  int vector_elems() const { return plan_.config.tile.vector_elems; }

  Fragment load_part(const Tensor& table, const rows::IndexedRow& row,
                     const rows::RowShare& share) const {
    const Element first = rows::late_access(table, row, share.column, vector_elems());
    return load_if(share.inside && row.exists, first, vector_elems());
  }

  std::vector<Fragment> load_added_indices(const rows::RowShare& share) const {
    std::vector<Fragment> indices;
    for (const AddedRows<Tensor>& each : p_.added)
      indices.push_back(load_if(share.in_rows, each.indices(share.row), 1));
    return indices;
  }

  /// What is added to each share; nothing to a token without a row.
  std::vector<std::vector<Fragment>> load_added(const std::vector<Fragment>& indices,
                                                const rows::IndexedRow& from,
                                                const std::vector<rows::RowShare>& shares) const {
    std::vector<std::vector<Fragment>> added(shares.size());
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const Tensor& table = p_.added[i].table;
      const rows::IndexedRow named = rows::indexed_row(indices[i][0], table.shape()[0].value());
      const rows::IndexedRow row{named.row, named.exists && from.exists};
      for (std::size_t j = 0; j < shares.size(); ++j)
        added[j].push_back(load_part(table, row, shares[j]));
    }
    return added;
  }

  const RowGatherPlan& plan_;
  GatherParameters p_;
};

}  // namespace

Traced RowGatherPlan::trace(ptx::Target target) const {
  TraceOptions trace_options{
      .name = std::string(op) + "_" + std::string(name(table_arg.type)) +
              (config.norm ? "_" + std::to_string(config.norm->row.h) + "_norm" : ""),
      .target = target,
      .block = {launch.block.x, 1, 1},
      .min_blocks_per_sm = config.norm ? config.norm->resident : 0};
  using Maybe = std::optional<Tensor>;
  auto body = [this](const Tensor& ids, const Tensor& table, const Tensor& out,
                     const Maybe& row_scale, const Maybe& bad_ids,
                     const std::optional<Value>& first_id, const std::optional<Value>& count,
                     const std::optional<Value>& added_id, const std::optional<Value>& added_row,
                     const std::optional<Value>& added_end, const std::optional<Value>& scale,
                     const Maybe& type_table, const Maybe& token_types, const Maybe& position_table,
                     const Maybe& positions, const Maybe& w, const Maybe& residual_out,
                     const std::optional<Value>& eps, const std::optional<Value>& weight_bias) {
    const Tokens tokens{first_id, count, added_id, added_row, added_end};
    std::vector<AddedRows<Tensor>> added;
    if (type_table) added.push_back({*type_table, *token_types});
    if (position_table) added.push_back({*position_table, *positions});
    const GatherParameters parameters{ids, table, out, row_scale, bad_ids, tokens, scale, added};
    if (config.norm) {
      trace_gather_norm(*this, parameters, {w, residual_out, eps, weight_bias});
    } else {
      RowGatherKernel(*this, parameters)();
    }
  };
  auto number = [](bool present, Type type) {
    return present ? std::optional(ScalarArg{type, {}}) : std::nullopt;
  };
  auto table_of = [](const std::optional<AddedRows<TensorArg>>& added) {
    return added ? std::optional(added->table) : std::nullopt;
  };
  auto indices_of = [](const std::optional<AddedRows<TensorArg>>& added) {
    return added ? std::optional(added->indices) : std::nullopt;
  };
  return tilewright::trace(trace_options, body, ids_arg, table_arg, out_arg, scale_arg, bad_ids_arg,
                           number(config.has_first_id, s64), number(config.has_count, s64),
                           number(config.has_added, s64), number(config.has_added, s64),
                           number(config.has_added, s64), number(config.has_scale, f32),
                           table_of(types_arg), indices_of(types_arg), table_of(positions_arg),
                           indices_of(positions_arg), w_arg, residual_out_arg,
                           number(config.norm.has_value(), f32),
                           number(config.norm && config.norm->has_weight_bias, f32));
}

}  // namespace tilewright
