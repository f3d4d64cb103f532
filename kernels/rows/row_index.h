// SPDX-License-Identifier: Apache-2.0
// The row of a tensor that an index from memory names. Traced.
#pragma once

#include "tilewright/tensor.h"
#include "tilewright/value.h"

namespace tilewright::rows {

struct IndexedRow {
  Value row;     ///< u32 or u64; any value where it does not exist
  Value exists;  ///< predicate
};
/// Of `count` rows: as unsigned numbers negative indices are beyond them, too.
IndexedRow indexed_row(const Value& index, const Int& count);

/// `elems` elements of a matrix from a row on that comes late: all of their address that does not
/// depend on it is made before. Pre: accesses of `elems` elements, up to 16 bytes,
/// are aligned in all rows.
Element late_access(const Tensor& matrix, const IndexedRow& row, const Value& column, int elems);
/// The same of a row that the block alone decides: its part of the address needs no registers of
/// the thread, and neither do others that are made of it. Pre: `row` is an integer of 32
/// or 64 bits, and not negative.
Element early_access(const Tensor& matrix, const Value& row, const Value& column, int elems);

}  // namespace tilewright::rows
