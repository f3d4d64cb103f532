// SPDX-License-Identifier: Apache-2.0
// What divisions and products share: going by the modes of a tiler, and regrouping the halves.
#pragma once

#include "tilewright/layout.h"

#include <cstdint>

namespace tilewright {

/// `f` for each mode that the tiler names; the other modes stay.
Layout transform_modes(const char* operation, const Layout& layout, const Tiler& tiler,
                       Layout (*f)(const Layout&, const Tiler&));

/// To which half a mode under `_` goes: the rest of a division, the block of a product.
enum class Whole : std::uint8_t { rest, block };

/// ((a,b),(c,d)) to ((a,c),(b,d)) along the tiler; what it does not name goes to the second half.
Layout unzip(const char* operation, const Layout& layout, const Tiler& tiler, Whole whole);
Layout unpack_rest(const Layout& zipped);  ///< (A,(b,c)) to (A,b,c)
Layout unpack_both(const Layout& zipped);  ///< ((a,b),(c,d)) to (a,b,c,d)

}  // namespace tilewright
