// SPDX-License-Identifier: Apache-2.0
// The references of gather_rows, scatter_rows and embedding.
#pragma once

#include "kernels/row_gather/row_gather.h"

namespace tilewright {

/// Sets dst: the bits of src's rows at ids; for indices outside zeros, or dst's rows.
void gather_rows_reference(MissingRow missing, HostTensors& tensors);
/// Sets dst: the bits of src's rows at the rows that ids name, the last one of several.
void scatter_rows_reference(HostTensors& tensors);
/// Sets out in f64, and bad_ids if it is there. Where rows are added or normalised, products and
/// sums are rounded to f32, and the last one to out_type; with a norm it is rounded to
/// residual_type alone, if there is one, and residual_out is set.
void embedding_reference(const RowGatherOptions& options, Type out_type,
                         std::optional<Type> residual_type, HostTensors& tensors);

}  // namespace tilewright
