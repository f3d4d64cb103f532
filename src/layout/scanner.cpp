// SPDX-License-Identifier: Apache-2.0
// Parses CuTe's notation.
#include "layout/scanner.h"

#include "layout/fail.h"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace tilewright {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

}  // namespace

// Counts how deep brackets nest.
struct Scanner::Nesting {
  explicit Nesting(Scanner& s) : scanner(s) {
    if (++scanner.depth_ > kMaxDepth) {
      scanner.fail_here("nesting of at most " + std::to_string(kMaxDepth) + " brackets");
    }
  }
  ~Nesting() { --scanner.depth_; }
  Nesting(const Nesting&) = delete;
  Nesting& operator=(const Nesting&) = delete;
  Scanner& scanner;
};

void Scanner::skip_spaces() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n' || text_[at_] == '\r')) {
    ++at_;
  }
}

bool Scanner::at_end() {
  skip_spaces();
  return at_ == text_.size();
}

char Scanner::peek() { return at_end() ? '\0' : text_[at_]; }

bool Scanner::accept(std::string_view token) {
  skip_spaces();
  if (text_.substr(at_, token.size()) != token) return false;
  at_ += token.size();
  return true;
}

void Scanner::expect(std::string_view token, const char* what) {
  if (!accept(token)) fail_here(what);
}

void Scanner::expect_end() {
  if (!at_end()) fail_here("the end of the text");
}

std::string_view Scanner::word() {
  skip_spaces();
  std::size_t end = at_;
  while (end < text_.size() &&
         (is_letter(text_[end]) || (end > at_ && (is_digit(text_[end]) || text_[end] == '_')))) {
    ++end;
  }
  const std::string_view result = text_.substr(at_, end - at_);
  at_ = end;
  return result;
}

void Scanner::fail_here(const std::string& expected) {
  skip_spaces();
  std::string shown;
  for (char c : text_.substr(0, 200)) {
    shown += std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
  }
  fail("cannot read '" + shown + (text_.size() > 200 ? "...'" : "'") + ": expected " + expected +
       " at column " + std::to_string(at_ + 1));
}

std::int64_t Scanner::integer() {
  skip_spaces();
  std::int64_t value = 0;
  const char* first = text_.data() + at_;
  const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
  if (error == std::errc::result_out_of_range) fail_here("an integer that fits 64 bits");
  if (error != std::errc()) fail_here("an integer");
  at_ += static_cast<std::size_t>(end - first);
  return value;
}

// What follows a "?".
Int Scanner::dynamic() {
  IntFacts facts;
  if (accept("{")) {
    do {
      const std::string_view fact = word();
      std::int64_t* slot = fact == "div"   ? &facts.divisor
                           : fact == "min" ? &facts.min
                           : fact == "max" ? &facts.max
                                           : nullptr;
      if (slot == nullptr) fail_here("div=, min= or max=");
      expect("=", "'='");
      *slot = integer();
    } while (accept(","));
    expect("}", "',' or '}'");
  }
  return Int::symbol(0, facts);
}

IntTuple Scanner::leaf() {
  Int value;
  if (accept("E<")) return basis_element();
  if (accept("_")) {
    if (at_ == text_.size() || (!is_digit(text_[at_]) && text_[at_] != '-')) return _;
    value = integer();  // CuTe prints a static 4 as _4
  } else if (accept("?")) {
    value = dynamic();
  } else {
    value = integer();
  }
  BasisPath path;
  // Innermost mode first: E<0,1> is 1@1@0. A space before "@" makes it an offset.
  while (at_ < text_.size() && text_[at_] == '@') {
    ++at_;
    append_mode(path);
    std::rotate(path.at.begin(), path.at.begin() + path.depth - 1, path.at.begin() + path.depth);
  }
  return {value, path};
}

// "0,1>" of E<0,1>.
IntTuple Scanner::basis_element() {
  BasisPath path;
  do {
    append_mode(path);
  } while (accept(","));
  expect(">", "',' or '>'");
  return {1, path};
}

void Scanner::append_mode(BasisPath& path) {
  const std::int64_t mode = integer();
  if (mode < 0 || mode > 255 || path.depth == BasisPath::kMaxDepth) {
    fail_here("at most " + std::to_string(BasisPath::kMaxDepth) + " modes of 0 to 255");
  }
  path.at[static_cast<std::size_t>(path.depth)] = static_cast<std::uint8_t>(mode);
  ++path.depth;
}

IntTuple Scanner::int_tuple() {
  if (!accept("(")) return leaf();
  const Nesting nesting(*this);
  std::vector<IntTuple> elems;
  if (accept(")")) return IntTuple();
  do {
    elems.push_back(int_tuple());
  } while (accept(","));
  expect(")", "',' or ')'");
  return IntTuple::tuple(std::move(elems));
}

Layout Scanner::layout() {
  IntTuple shape = int_tuple();
  expect(":", "':' and the stride");
  return {std::move(shape), int_tuple()};
}

Tiler Scanner::tiler() {
  if (accept("<")) {
    const Nesting nesting(*this);
    std::vector<Tiler> modes;
    do {
      modes.push_back(tiler());
    } while (accept(","));
    expect(">", "',' or '>'");
    return Tiler::by_mode(std::move(modes));
  }
  IntTuple shape = int_tuple();
  if (accept(":")) return Layout(std::move(shape), int_tuple());
  return Tiler(shape);
}

Swizzle Scanner::swizzle() {
  expect("Sw<", "'Sw<bits,base,shift>'");
  std::array<int, 3> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) expect(",", "','");
    const std::int64_t number = integer();
    if (number < -64 || number > 64) fail_here("a number of bits");
    numbers[i] = static_cast<int>(number);
  }
  expect(">", "'>'");
  return {numbers[0], numbers[1], numbers[2]};
}

ComposedLayout Scanner::composed() {
  if (peek() != 'S') return layout();
  const Swizzle first = swizzle();
  expect("o", "'o' and the offset");
  const IntTuple offset = int_tuple();
  expect("o", "'o' and the layout");
  return {first, offset.value(), layout()};
}

namespace {

template <class T>
T whole(std::string_view text, T (Scanner::*read)()) {
  Scanner scanner(text);
  T result = (scanner.*read)();
  scanner.expect_end();
  return result;
}

}  // namespace

IntTuple parse_int_tuple(std::string_view text) { return whole(text, &Scanner::int_tuple); }
Layout parse_layout(std::string_view text) { return whole(text, &Scanner::layout); }
Tiler parse_tiler(std::string_view text) { return whole(text, &Scanner::tiler); }
Swizzle parse_swizzle(std::string_view text) { return whole(text, &Scanner::swizzle); }
ComposedLayout parse_composed(std::string_view text) { return whole(text, &Scanner::composed); }

}  // namespace tilewright
