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

/// The tile of a space for rows of accesses of `vector_elems` elements, at most if narrowed. Where
/// alignment leaves accesses narrow and elements are many, a thread has several of either kind.
RowTile choose_row_tile(const tune::Space& space, const DeviceProperties& device,
                        const View& matrix, int vector_elems);

}  // namespace tilewright::rows
