// SPDX-License-Identifier: Apache-2.0
// Splits PTX text into tokens.
#pragma once

#include "tilewright/type.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::ptx::detail {

/// The name kept for good, as an Error's location needs it; there are few files.
const char* interned_file(std::string_view name);

struct Token {
  enum class Kind : std::uint8_t { end, identifier, directive, integer, floating, string, punct };
  Kind kind = Kind::end;
  Type type = Type::none;  ///< numbers: s64, u64, f32 or f64
  std::uint32_t line = 0;
  std::string_view text;  ///< directive: with its dot; string: without its quotes
  std::uint64_t bits = 0;

  bool is(char c) const { return kind == Kind::punct && text.front() == c; }
  bool is(std::string_view word) const { return kind != Kind::string && text == word; }
};

/// Throws Error(user) with "file:line: error: " for a byte or number that PTX does not have.
class Lexer {
 public:
  Lexer(std::string_view text, std::string_view file);

  const Token& peek() const { return token_; }
  Token next();
  /// The character that follows the current token directly, '\0' at the end.
  char following() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  /// Skips the rest of the current line (of the token last peeked).
  void skip_line();
  [[noreturn]] void fail(std::string message, std::uint32_t line) const;
  [[noreturn]] void fail(std::string message) const { fail(std::move(message), token_.line); }

 private:
  void skip_blank();
  void scan();
  void scan_number();
  void scan_string();
  std::uint64_t scan_hex(std::size_t digits);
  void take(Token::Kind kind, std::size_t begin);

  std::string_view text_;
  std::string_view file_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  bool line_start_ = true;
  Token token_;
};

}  // namespace tilewright::ptx::detail
