// SPDX-License-Identifier: Apache-2.0
// A cursor over text in CuTe's notation.
#pragma once

#include "tilewright/layout_text.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace tilewright {

/// Reads one construct after the other; every failure names the column.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  bool at_end();
  /// The next character that is no space, or '\0'.
  char peek();
  bool accept(std::string_view token);
  void expect(std::string_view token, const char* what);
  void expect_end();
  /// A run of letters, digits and underscores that starts with a letter; empty if none is next.
  std::string_view word();

  std::int64_t integer();
  IntTuple int_tuple();
  Layout layout();
  Tiler tiler();
  Swizzle swizzle();
  ComposedLayout composed();

  [[noreturn]] void fail_here(const std::string& expected);
  std::size_t position() const { return at_; }
  void rewind(std::size_t position) { at_ = position; }

 private:
  // Text may nest this deep: parsing recurses.
  static constexpr int kMaxDepth = 64;
  struct Nesting;

  void skip_spaces();
  IntTuple leaf();
  Int dynamic();
  IntTuple basis_element();
  void append_mode(BasisPath& path);

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace tilewright
