// SPDX-License-Identifier: Apache-2.0
// The modifier words that handlers ask for at every execution: a bit each.
#pragma once

#include "tilewright/form.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tilewright::emu::detail {

constexpr std::array<std::string_view, 54> kModifierWords = {"a",
                                                             "acquire",
                                                             "alias",
                                                             "aligned",
                                                             "all",
                                                             "any",
                                                             "arrive",
                                                             "arrive_drop",
                                                             "b",
                                                             "bfly",
                                                             "commit_group",
                                                             "complete_tx",
                                                             "cp_fenceproxy",
                                                             "down",
                                                             "expect_tx",
                                                             "fence",
                                                             "im2col",
                                                             "im2col_no_offs",
                                                             "init",
                                                             "inval",
                                                             "ld_reduce",
                                                             "load",
                                                             "mbarrier::complete_tx::bytes",
                                                             "mbarrier_init",
                                                             "multicast::cluster",
                                                             "noComplete",
                                                             "noinc",
                                                             "or",
                                                             "parity",
                                                             "pending_count",
                                                             "popc",
                                                             "prefetch",
                                                             "proxy",
                                                             "read",
                                                             "red",
                                                             "relaxed",
                                                             "row",
                                                             "satfinite",
                                                             "sp",
                                                             "sp::ordered_metadata",
                                                             "store",
                                                             "tensormap::generic",
                                                             "test_wait",
                                                             "to",
                                                             "trans",
                                                             "try_wait",
                                                             "uni",
                                                             "up",
                                                             "wait",
                                                             "wait_all",
                                                             "warp",
                                                             "x2",
                                                             "x4",
                                                             "xor"};

template <std::size_t length>
struct Literal {
  char text[length] = {};
  consteval Literal(const char (&from)[length]) { std::copy_n(from, length, text); }  // NOLINT
};

/// `word<"s4">()` is the modifier `.s4`, looked up once.
template <Literal literal>
ptx::Mod word() {
  static const ptx::Mod found = ptx::mod(literal.text);
  return found;
}

/// The bit of a word; 0 for one that no handler asks for.
constexpr std::uint64_t bit_of_word(std::string_view word) {
  for (std::size_t i = 0; i < kModifierWords.size(); ++i) {
    if (kModifierWords[i] == word) return std::uint64_t{1} << i;
  }
  return 0;
}

/// The modifier words of an opcode: `words.has<"aligned">()`.
struct Words {
  std::uint64_t word_bits = 0;

  template <Literal literal>
  bool has() const {
    constexpr std::uint64_t kBit = bit_of_word(literal.text);
    static_assert(kBit != 0, "add the word to kModifierWords");
    return (word_bits & kBit) != 0;
  }
};

}  // namespace tilewright::emu::detail
