// SPDX-License-Identifier: Apache-2.0
// How a kernel says in its PTX and machine code that all its blocks must be resident.
#pragma once

#include <string>
#include <string_view>

namespace tilewright::lang {

/// A variable of this name in the module, whose symbol goes into the machine code, means that the
/// entry takes cooperative launches only.
inline std::string resident_grid_symbol(std::string_view entry) {
  return std::string(entry) + "$resident_grid";
}

}  // namespace tilewright::lang
