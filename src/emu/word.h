// SPDX-License-Identifier: Apache-2.0
// Modifier words that handlers ask for: looked up once, not at every execution.
#pragma once

#include "tilewright/form.h"

#include <algorithm>
#include <cstddef>

namespace tilewright::emu::detail {

template <std::size_t length>
struct Literal {
  char text[length] = {};
  consteval Literal(const char (&from)[length]) { std::copy_n(from, length, text); }  // NOLINT
};

/// `word<"aligned">()` is the modifier `.aligned`.
template <Literal literal>
ptx::Mod word() {
  static const ptx::Mod found = ptx::mod(literal.text);
  return found;
}

}  // namespace tilewright::emu::detail
