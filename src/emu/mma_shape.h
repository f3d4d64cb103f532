// SPDX-License-Identifier: Apache-2.0
// The shape word of mma and wmma.
#pragma once

#include "emu/code.h"

#include <string_view>

namespace tilewright::emu::detail {

struct MmaShape {
  int m = 0, n = 0, k = 0;
};

/// Of the word mMnNkK; zeros if the opcode has none.
inline MmaShape read_mma_shape(const ptx::Opcode& op) {
  for (const ptx::Mod mod : op.slots) {
    const std::string_view word = mod.id == 0 ? std::string_view{} : ptx::name(mod);
    if (word.size() < 6 || word[0] != 'm' || word[1] < '0' || word[1] > '9') continue;
    MmaShape s;
    int* field = &s.m;
    for (const char ch : word) {
      if (ch == 'm') field = &s.m;
      if (ch == 'n') field = &s.n;
      if (ch == 'k') field = &s.k;
      if (ch >= '0' && ch <= '9') *field = *field * 10 + (ch - '0');
    }
    return s;
  }
  return {};
}

}  // namespace tilewright::emu::detail
