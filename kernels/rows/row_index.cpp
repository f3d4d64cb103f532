// SPDX-License-Identifier: Apache-2.0
// Indices against a number of rows by one comparison, and addresses by one instruction.
#include "kernels/rows/row_index.h"

#include "tilewright/trace.h"

#include <algorithm>
#include <limits>

namespace tilewright::rows {

IndexedRow indexed_row(const Value& index, const Int& count) {
  const bool few = is_short_extent(count);
  const bool narrow = few && bits(index.type()) == 32;
  const Type compared = narrow ? s32 : s64;
  const Type as_unsigned = narrow ? u32 : u64;
  const Value row = index.to(compared).bitcast(as_unsigned);
  const Value exists = row < to_value(count).to(compared).bitcast(as_unsigned);
  return {few ? row.to(u32) : row, exists};
}

/// With a distance of rows that is known, a product of 32 bits each is added to the column's
/// address by one instruction; an offset in elements takes several.
Element late_access(const Tensor& matrix, const IndexedRow& row, const Value& column, int elems) {
  const std::int64_t size = bytes(matrix.type());
  const Value first = matrix(0, column).address();
  const Int step = matrix.layout().stride()[0].value();
  const bool narrow = step.is_static() && step.value() >= 0 && row.row.type() == u32 &&
                      step.value() <= std::numeric_limits<std::uint32_t>::max() / size;
  const Value offset = narrow ? mul_wide(row.row, constant(u32, step.value() * size))
                              : row.row.to(u64) * (to_value(step).to(s64) * size).bitcast(u64);
  return Tensor(matrix.type(), MemorySpace::global, first + offset, make_row_major(Shape{elems}),
                static_cast<int>(std::min<std::int64_t>(16, elems * size)))(0);
}

}  // namespace tilewright::rows
