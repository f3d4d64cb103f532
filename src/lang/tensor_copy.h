// SPDX-License-Identifier: Apache-2.0
// Tensor copies with any number of coordinates, behind tma.h and matrix_tile.h.
#pragma once

#include "tilewright/tma.h"

#include <span>

namespace tilewright::lang {

using Coordinates = std::span<const Arg>;

void tensor_load(const char* what, const Element& destination, const TensorMapParam& map,
                 Coordinates coordinates, const Mbarrier& done, SourceLoc at);
void tensor_load_multicast(const char* what, const Element& destination, const TensorMapParam& map,
                           Coordinates coordinates, const Mbarrier& done, const Arg& blocks);
void tensor_store(const char* what, const TensorMapParam& map, Coordinates coordinates,
                  const Element& source, SourceLoc at);

}  // namespace tilewright::lang
