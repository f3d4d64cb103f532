// SPDX-License-Identifier: Apache-2.0
// What plans that cover a matrix by row tiles may choose: each has a space of its own name.
#pragma once

#include "kernels/rows/row_tile.h"
#include "tilewright/tune.h"

#include <span>
#include <string_view>

namespace tilewright::rows {

/// That a thread may have: one or several, or one of fewer elements than fit.
enum class TileAccesses : std::uint8_t { one, several, narrowed };

/// A constant of the operator's folder. Kernels that take one access a thread say so.
tune::Space row_tile_space(std::string_view name, TileAccesses accesses);

/// Of a thread, where the alignment leaves narrow ones: up to 16 bytes and 8 accesses, if there are
/// many elements; 1 where an access has 16 bytes. On an H200 one element a thread took silu_and_mul
/// of 16384 rows of 2 x 4097 bf16 three times as long as a copy.
int narrow_accesses(const DeviceProperties& device, std::int64_t bits, std::int64_t access,
                    std::int64_t columns, std::int64_t rows);

/// The tile of a space for rows of accesses of `vector_elems` elements, at most if narrowed.
RowTile choose_row_tile(const tune::Space& space, const DeviceProperties& device,
                        const View& matrix, int vector_elems);

}  // namespace tilewright::rows
