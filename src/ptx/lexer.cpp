// SPDX-License-Identifier: Apache-2.0
// Splits PTX text into tokens: comments, names, directives, numbers in all their spellings.
#include "ptx/lexer.h"

#include "tilewright/error.h"

#include <bit>
#include <charconv>
#include <mutex>
#include <string>
#include <unordered_set>

namespace tilewright::ptx::detail {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_' || c == '$'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

std::string printable(char c) {
  if (c >= ' ' && c <= '~') return std::string("'") + c + "'";
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return std::string("byte 0x") + kDigits[byte >> 4] + kDigits[byte & 15];
}

}  // namespace

const char* interned_file(std::string_view name) {
  static std::mutex mutex;
  static std::unordered_set<std::string> names;
  const std::scoped_lock lock(mutex);
  return names.emplace(name).first->c_str();
}

Lexer::Lexer(std::string_view text, std::string_view file) : text_(text), file_(file) { scan(); }

void Lexer::fail(std::string message, std::uint32_t line) const {
  throw Error(ErrorKind::user, std::move(message),
              SourceLoc{interned_file(file_), static_cast<int>(line)});
}

Token Lexer::next() {
  const Token current = token_;
  scan();
  return current;
}

void Lexer::skip_line() {
  at_ = static_cast<std::size_t>(token_.text.data() - text_.data());
  while (at_ < text_.size() && text_[at_] != '\n')
    ++at_;
  scan();
}

void Lexer::skip_blank() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const char after = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (c == '\n') {
      ++line_;
      ++at_;
      line_start_ = true;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
    } else if ((c == '/' && after == '/') || (c == '#' && line_start_)) {
      while (at_ < text_.size() && text_[at_] != '\n')
        ++at_;
    } else if (c == '/' && after == '*') {
      const std::uint32_t begin = line_;
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) fail("comment is not closed", begin);
      for (; at_ < end + 2; ++at_)
        if (text_[at_] == '\n') ++line_;
    } else {
      return;
    }
  }
}

void Lexer::take(Token::Kind kind, std::size_t begin) {
  token_.kind = kind;
  token_.text = text_.substr(begin, at_ - begin);
}

void Lexer::scan() {
  skip_blank();
  line_start_ = false;
  token_ = Token{};
  token_.line = line_;
  const std::size_t begin = at_;
  if (at_ >= text_.size()) return take(Token::Kind::end, begin);
  const char c = text_[at_];
  if (is_digit(c)) return scan_number();
  if (c == '"') return scan_string();
  ++at_;
  if (is_letter(c) || c == '_' || c == '$' || c == '%') {
    while (at_ < text_.size() && is_word(text_[at_]))
      ++at_;
    // A lone % is the operator of constant expressions.
    return take(c == '%' && at_ == begin + 1 ? Token::Kind::punct : Token::Kind::identifier, begin);
  }
  if (c == '.') {
    while (at_ < text_.size() &&
           (is_word(text_[at_]) ||
            (text_[at_] == ':' && at_ + 2 < text_.size() && text_[at_ + 1] == ':' &&
             is_word(text_[at_ + 2]) && at_ > begin + 1)))
      at_ += text_[at_] == ':' ? 2U : 1U;
    if (at_ == begin + 1) fail("a '.' with no word after it", line_);
    return take(Token::Kind::directive, begin);
  }
  if (std::string_view("{}[]()<>,;:=+-*/!~|&^?@").find(c) == std::string_view::npos)
    fail("unexpected " + printable(c), line_);
  take(Token::Kind::punct, begin);
}

std::uint64_t Lexer::scan_hex(std::size_t digits) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < digits; ++i, ++at_) {
    const int digit = at_ < text_.size() ? hex_digit(text_[at_]) : -1;
    if (digit < 0) fail("a 0f literal has 8 hexadecimal digits, a 0d literal 16", line_);
    value = value << 4 | static_cast<std::uint64_t>(digit);
  }
  return value;
}

void Lexer::scan_number() {
  const std::size_t begin = at_;
  const char second = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  const bool prefixed = text_[at_] == '0';
  if (prefixed && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
    at_ += 2;
    const bool single = second == 'f' || second == 'F';
    token_.bits = scan_hex(single ? 8 : 16);
    token_.type = single ? Type::f32 : Type::f64;
    take(Token::Kind::floating, begin);
  } else {
    int base = 10;
    if (prefixed && (second == 'x' || second == 'X')) base = 16;
    if (prefixed && (second == 'b' || second == 'B')) base = 2;
    if (prefixed && is_digit(second)) base = 8;
    std::size_t end = begin;
    while (base == 10 && end < text_.size() && is_digit(text_[end]))
      ++end;
    if (base == 10 && end + 1 < text_.size() &&
        ((text_[end] == '.' && is_digit(text_[end + 1])) || text_[end] == 'e' ||
         text_[end] == 'E')) {
      double value = 0;
      const auto [stop, error] =
          std::from_chars(text_.data() + begin, text_.data() + text_.size(), value);
      if (error != std::errc{}) fail("floating-point literal out of range", line_);
      at_ = static_cast<std::size_t>(stop - text_.data());
      token_.bits = std::bit_cast<std::uint64_t>(value);
      token_.type = Type::f64;
      take(Token::Kind::floating, begin);
    } else {
      const char* first = text_.data() + begin + (base == 16 || base == 2 ? 2 : 0);
      const auto [stop, error] =
          std::from_chars(first, text_.data() + text_.size(), token_.bits, base);
      if (error != std::errc{}) fail("malformed or too large integer literal", line_);
      at_ = static_cast<std::size_t>(stop - text_.data());
      const bool suffix = at_ < text_.size() && text_[at_] == 'U';
      token_.type = suffix || token_.bits >> 63 != 0 ? Type::u64 : Type::s64;
      if (suffix) ++at_;
      take(Token::Kind::integer, begin);
    }
  }
  if (at_ < text_.size() && is_word(text_[at_])) fail("malformed number", line_);
}

void Lexer::scan_string() {
  const std::size_t begin = ++at_;
  while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n')
    at_ += text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n' ? 2U : 1U;
  if (at_ >= text_.size() || text_[at_] != '"') fail("string is not closed", line_);
  take(Token::Kind::string, begin);
  ++at_;
}

}  // namespace tilewright::ptx::detail
