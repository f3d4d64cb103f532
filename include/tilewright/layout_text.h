// SPDX-License-Identifier: Apache-2.0
// Reads CuTe's notation of shapes, layouts, tilers and swizzles.
#pragma once

#include "tilewright/swizzle.h"

#include <string_view>

namespace tilewright {

/// "(4,(2,8))", "(_,(3,_))", "(1@0,2@1)", "(?,?{div=16})". CuTe's "_4" for a static 4 is read too;
/// each
/// "?" is a dynamic integer of its own, with the facts div, min and max. All of these throw
/// Error(user) with the column and what was expected there.
IntTuple parse_int_tuple(std::string_view text);
Layout parse_layout(std::string_view text);            ///< "((2,4),8):((1,2),8)"
Tiler parse_tiler(std::string_view text);              ///< "<4:1,<2,_>>", or a layout, or a shape
Swizzle parse_swizzle(std::string_view text);          ///< "Sw<3,4,3>"
ComposedLayout parse_composed(std::string_view text);  ///< "Sw<3,4,3> o 0 o 8:1", or a layout

}  // namespace tilewright
