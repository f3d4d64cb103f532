// SPDX-License-Identifier: Apache-2.0
// Batches of matrices of rows, as of experts: [E, T, N], which a grid's third dimension counts.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/tensor.h"
#include "tilewright/value.h"

#include <optional>
#include <string_view>

namespace tilewright::rows {

/// Refuses a view that is not [E, T, N] with a last stride of 1.
void check_batch(const View& view, std::string_view which, const Caller& caller);

/// The first tensor of a batch: without the outermost mode. Pre: there is one.
View first_of(const View& batch);
/// As many of `one` as `batch` has, as far apart.
View batch_of(const View& one, const View& batch);
/// All rows of a batch, or of a matrix, as those of one matrix: nothing but the shape counts.
View as_matrix(const View& rows);
/// What stays a parameter of a batch: besides that of `one`, how many there are and how far apart.
DynamicModes modes_of_batch(DynamicModes one);
/// The grid for one, for `count` of them. Refuses more than a grid has.
LaunchConfig launch_of_batch(LaunchConfig one, std::int64_t count, const Caller& caller);

/// Tensor `index` of a batch. Traced.
Tensor one_of(const Tensor& batch, const Value& index);
std::optional<Tensor> one_of(const std::optional<Tensor>& batch, const Value& index);

}  // namespace tilewright::rows
