// SPDX-License-Identifier: Apache-2.0
// What the kernels of gather_rows and embedding know of a token's row. Traced.
#pragma once

#include "kernels/row_gather/row_gather.h"
#include "kernels/rows/row_index.h"
#include "tilewright/fragment.h"

#include <optional>
#include <span>
#include <vector>

namespace tilewright {

/// Which tokens have which rows of the table.
struct Tokens {
  std::optional<Value> first_id, count, added_id, added_row, added_end;
};

struct GatherParameters {
  Tensor ids, table, out;
  std::optional<Tensor> row_scale, bad_ids;
  Tokens tokens;
  std::optional<Value> scale;
  std::vector<AddedRows<Tensor>> added;
};

/// The table's row of a token.
rows::IndexedRow row_of_token(const GatherParameters& parameters, const Value& id);

/// Elements of a row times `factor` and the scale, plus `added`, in f32. Where `exists` does not
/// hold, and with it what was loaded is 0, they are +0.
Fragment embedded(const GatherParameters& parameters, const Fragment& row, const Value& exists,
                  const std::optional<Value>& factor, std::span<const Fragment> added);

/// What embedding's norm has besides.
struct GatherNormParameters {
  std::optional<Tensor> w, residual_out;
  std::optional<Value> eps, weight_bias;
};
/// The body of the kernel that normalises what it gathers. Pre: plan.config.norm.
void trace_gather_norm(const RowGatherPlan& plan, const GatherParameters& parameters,
                       const GatherNormParameters& norm);

}  // namespace tilewright
