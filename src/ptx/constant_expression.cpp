// SPDX-License-Identifier: Apache-2.0
// Constant expressions, evaluated in 64 bits as the PTX manual has them.
#include "ptx/parser.h"

#include <array>
#include <bit>

namespace tilewright::ptx::detail {
namespace {

constexpr int kMaxDepth = 64;

struct Binary {
  std::string_view text;
  int level;  ///< 0 binds weakest
};
constexpr std::array kBinary = {
    Binary{"||", 0}, Binary{"&&", 1}, Binary{"|", 2},  Binary{"^", 3},  Binary{"&", 4},
    Binary{"==", 5}, Binary{"!=", 5}, Binary{"<=", 6}, Binary{">=", 6}, Binary{"<<", 7},
    Binary{">>", 7}, Binary{"<", 6},  Binary{">", 6},  Binary{"+", 8},  Binary{"-", 8},
    Binary{"*", 9},  Binary{"/", 9},  Binary{"%", 9},
};
constexpr int kLevels = 10;

std::uint64_t divide(std::uint64_t a, std::uint64_t b, bool is_signed, bool remainder) {
  if (!is_signed) return remainder ? a % b : a / b;
  const auto x = static_cast<std::int64_t>(a);
  const auto y = static_cast<std::int64_t>(b);
  if (y == -1) return remainder ? 0 : 0 - a;
  return static_cast<std::uint64_t>(remainder ? x % y : x / y);
}

std::uint64_t apply(std::string_view op, std::uint64_t a, std::uint64_t b, bool is_signed) {
  const auto x = static_cast<std::int64_t>(a);
  const auto y = static_cast<std::int64_t>(b);
  if (op == "||") return a != 0 || b != 0;
  if (op == "&&") return a != 0 && b != 0;
  if (op == "|") return a | b;
  if (op == "^") return a ^ b;
  if (op == "&") return a & b;
  if (op == "==") return a == b;
  if (op == "!=") return a != b;
  if (op == "<") return is_signed ? x < y : a < b;
  if (op == ">") return is_signed ? x > y : a > b;
  if (op == "<=") return is_signed ? x <= y : a <= b;
  if (op == ">=") return is_signed ? x >= y : a >= b;
  if (op == "<<") return b > 63 ? 0 : a << b;
  if (op == ">>" && is_signed) return static_cast<std::uint64_t>(x >> (b > 63 ? 63 : b));
  if (op == ">>") return b > 63 ? 0 : a >> b;
  if (op == "+") return a + b;
  if (op == "-") return a - b;
  if (op == "*") return a * b;
  return divide(a, b, is_signed, op == "%");
}

}  // namespace

Parser::Constant Parser::constant(int depth) {
  if (depth > kMaxDepth) lexer_.fail("constant expression nests deeper than 64 levels");
  const Constant condition = constant_binary(0, depth);
  if (!accept('?')) return condition;
  const Constant yes = constant(depth + 1);
  expect(':', "in a conditional expression");
  const Constant no = constant(depth + 1);
  return condition.bits != 0 ? yes : no;
}

Parser::Constant Parser::constant_binary(int level, int depth) {
  if (level == kLevels) return constant_unary(depth);
  Constant left = constant_binary(level + 1, depth);
  for (;;) {
    const Token& token = lexer_.peek();
    if (token.kind != Token::Kind::punct) return left;
    // Two-character operators are two tokens without a gap.
    const std::string_view two{token.text.data(), lexer_.following() == '\0' ? 1U : 2U};
    const Binary* found = nullptr;
    for (const Binary& op : kBinary)
      if (found == nullptr && (op.text == two || op.text == token.text)) found = &op;
    if (found == nullptr || found->level != level) return left;
    for (std::size_t i = 0; i < found->text.size(); ++i)
      lexer_.next();
    const Constant right = constant_binary(level + 1, depth);
    if (left.type == Type::f64 || right.type == Type::f64)
      lexer_.fail("constant expressions of floating-point numbers are not supported");
    const bool is_signed = left.type == Type::s64 && right.type == Type::s64;
    if ((found->text == "/" || found->text == "%") && right.bits == 0)
      lexer_.fail("division by zero in a constant expression");
    left.bits = apply(found->text, left.bits, right.bits, is_signed);
    const bool is_boolean = level <= 1 || level == 5 || level == 6;
    left.type = is_boolean || is_signed ? Type::s64 : Type::u64;
  }
}

Parser::Constant Parser::constant_unary(int depth) {
  if (depth > kMaxDepth) lexer_.fail("constant expression nests deeper than 64 levels");
  if (accept('+')) return constant_unary(depth + 1);
  if (accept('-')) {
    Constant value = constant_unary(depth + 1);
    if (value.type == Type::f32)
      value.bits ^= std::uint64_t{1} << 31;
    else if (value.type == Type::f64)
      value.bits ^= std::uint64_t{1} << 63;
    else
      value = {0 - value.bits, value.type};
    return value;
  }
  if (accept('~')) return {~constant_unary(depth + 1).bits, Type::s64};
  if (accept('!')) return {constant_unary(depth + 1).bits == 0 ? 1U : 0U, Type::s64};
  if (accept('(')) {
    if (lexer_.peek().is(".s64") || lexer_.peek().is(".u64")) {
      const Type type = lexer_.next().text == ".s64" ? Type::s64 : Type::u64;
      expect(')', "after a cast");
      return {constant_unary(depth + 1).bits, type};
    }
    const Constant value = constant(depth + 1);
    expect(')', "in a constant expression");
    return value;
  }
  const Token& token = lexer_.peek();
  if (token.is("WARP_SZ")) {
    lexer_.next();
    return {32, Type::s64};
  }
  if (token.kind != Token::Kind::integer && token.kind != Token::Kind::floating)
    unexpected("a number");
  const Token number = lexer_.next();
  return {number.bits, number.type};
}

/// What follows '+' or '-' after the name of a register or variable, with that sign; 0 if nothing.
std::int64_t Parser::offset() {
  std::uint64_t total = 0;
  while (lexer_.peek().is('+') || lexer_.peek().is('-')) {
    const bool minus = lexer_.next().is('-');
    const Constant value = constant_unary(0);
    if (value.type == Type::f32 || value.type == Type::f64)
      lexer_.fail("an offset must be an integer");
    total += minus ? 0 - value.bits : value.bits;
  }
  return static_cast<std::int64_t>(total);
}

std::int64_t Parser::integer(std::string_view what, std::int64_t low, std::int64_t high) {
  const std::uint32_t line = lexer_.peek().line;
  const Constant value = constant();
  const auto number = static_cast<std::int64_t>(value.bits);
  if (value.type == Type::f32 || value.type == Type::f64 || number < low || number > high)
    lexer_.fail(std::string(what) + " must be an integer from " + std::to_string(low) + " to " +
                    std::to_string(high),
                line);
  return number;
}

}  // namespace tilewright::ptx::detail
