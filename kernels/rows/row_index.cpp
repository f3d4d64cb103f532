// SPDX-License-Identifier: Apache-2.0
// Indices against a number of rows by one comparison, and addresses by one instruction.
#include "kernels/rows/row_index.h"

#include "tilewright/trace.h"

#include <algorithm>
#include <bit>
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

namespace {

/// In bytes. With a distance of rows that is known, a product of 32 bits each, which one
/// instruction adds to an address; an offset in elements takes several.
Value row_offset(const Tensor& matrix, const Value& row) {
  const std::int64_t size = bytes(matrix.type());
  const Int step = matrix.layout().stride()[0].value();
  const bool narrow = step.is_static() && step.value() >= 0 && row.type() == u32 &&
                      step.value() <= std::numeric_limits<std::uint32_t>::max() / size;
  return narrow ? mul_wide(row, constant(u32, step.value() * size))
                : row.to(u64) * (to_value(step).to(s64) * size).bitcast(u64);
}

Element at(const Tensor& matrix, const Value& address, int elems) {
  const std::int64_t access_bytes = std::int64_t{elems} * bytes(matrix.type());
  return Tensor(matrix.type(), MemorySpace::global, address, make_row_major(Shape{elems}),
                static_cast<int>(std::min<std::int64_t>(16, access_bytes)))(0);
}

}  // namespace

Element late_access(const Tensor& matrix, const IndexedRow& row, const Value& column, int elems) {
  return at(matrix, matrix(0, column).address() + row_offset(matrix, row.row), elems);
}

Element early_access(const Tensor& matrix, const Value& row, const Value& column, int elems) {
  const Value unsigned_row = row.to(bits(row.type()) == 32 ? u32 : u64);
  const Value of_row = matrix(0, 0).address() + row_offset(matrix, unsigned_row);
  const int log_bytes = std::countr_zero(static_cast<unsigned>(bytes(matrix.type())));
  const Value of_column = column.to(u64) << log_bytes;
  return at(matrix, of_row + of_column, elems);
}

}  // namespace tilewright::rows
