// SPDX-License-Identifier: Apache-2.0
// Variables, parameters and initialisers.
#include "ptx/parser.h"

#include <bit>

namespace tilewright::ptx::detail {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 40;
constexpr int kMaxDepth = 16;
constexpr std::int64_t kMaxPadding = std::int64_t{1} << 24;

std::optional<Space> space_of(std::string_view word) {
  if (word == ".const") return Space::const_;
  if (word == ".global") return Space::global;
  if (word == ".local") return Space::local;
  if (word == ".param") return Space::param;
  if (word == ".shared" || word == ".shared::cta") return Space::shared;
  if (word == ".reg") return Space::reg;
  return std::nullopt;
}

}  // namespace

/// `.space [attributes] [.align N] [.v2] .type`: what comes before the names.
Variable Parser::variable_head() {
  Variable out;
  out.line = lexer_.peek().line;
  const std::optional<Space> space = space_of(lexer_.peek().text);
  if (!space || lexer_.peek().kind != Token::Kind::directive) unexpected("a statement");
  lexer_.next();
  out.space = *space;
  for (;;) {
    const Token& token = lexer_.peek();
    if (token.kind != Token::Kind::directive) unexpected("a type");
    if (const std::optional<Type> type = type_from_name(token.text.substr(1))) {
      out.type = *type;
      if (bits(*type) % 8 != 0 && *type != Type::pred) unexpected("a type of whole bytes");
      if (*type == Type::pred && out.space != Space::reg) unexpected("a type other than .pred");
      lexer_.next();
      return out;
    }
    if (accept(".align")) {
      out.alignment = static_cast<int>(integer("an alignment", 1, 1 << 16));
      if (!std::has_single_bit(static_cast<unsigned>(out.alignment)))
        lexer_.fail("an alignment is a power of two");
    } else if (token.is(".v2") || token.is(".v4") || token.is(".v8")) {
      out.vector = lexer_.next().text.back() - '0';
    } else if (token.is(".attribute")) {
      attribute(out);
    } else {
      unexpected("a type, .align or .attribute");
    }
  }
}

/// `.attribute(.managed)`, kept as text.
void Parser::attribute(Variable& variable) {
  if (!variable.attributes.empty()) variable.attributes += ' ';
  variable.attributes += lexer_.next().text;
  expect('(', "after .attribute");
  variable.attributes += '(';
  int depth = 1;
  while (depth > 0) {
    const Token token = lexer_.next();
    if (token.kind == Token::Kind::end || token.is(';')) lexer_.fail(".attribute is not closed");
    depth += token.is('(') ? 1 : token.is(')') ? -1 : 0;
    variable.attributes += token.text;
    if (token.is(',')) variable.attributes += ' ';
  }
}

std::vector<Variable> Parser::variables(Linkage linkage) {
  const Variable head = variable_head();
  if (head.space == Space::reg) unexpected("a variable in memory");
  std::vector<Variable> out;
  declared_names_.clear();
  do {
    const Token name = expect_identifier("a variable name");
    Variable& variable = out.emplace_back(head);
    variable.linkage = linkage;
    variable.name = name.text;
    variable.line = name.line;
    declared_names_.push_back(name.text);
    extents(variable);
    if (accept('=')) variable.init = initializer(variable);
  } while (accept(','));
  expect(';', "after a variable");
  return out;
}

void Parser::extents(Variable& variable) {
  std::int64_t total = std::int64_t{bytes(variable.type)} * variable.vector;
  while (accept('[')) {
    std::int64_t extent = 0;
    if (!lexer_.peek().is(']')) extent = integer("an array extent", 0, kMaxBytes);
    expect(']', "after an array extent");
    if (extent != 0 && total > kMaxBytes / extent)
      lexer_.fail("variable '" + variable.name + "' is larger than 2^40 bytes");
    total *= extent == 0 ? 1 : extent;
    variable.extents.push_back(extent);
    if (variable.extents.size() > kMaxDepth) lexer_.fail("an array has at most 16 dimensions");
  }
}

std::vector<Variable> Parser::parameters() {
  expect('(', "before parameters");
  std::vector<Variable> out;
  declared_names_.clear();
  if (accept(')')) return out;
  do
    out.push_back(parameter());
  while (accept(','));
  expect(')', "after parameters");
  return out;
}

/// A parameter may also be a register; `.ptr .global .align 16` is kept as text.
Variable Parser::parameter() {
  Variable out = variable_head();
  if (out.space != Space::param && out.space != Space::reg)
    lexer_.fail("a parameter is .param or .reg");
  while (lexer_.peek().kind == Token::Kind::directive) {
    const Token word = lexer_.next();
    const bool first = out.attributes.empty();
    const bool known = first ? word.is(".ptr")
                             : out.attributes.starts_with(".ptr") &&
                                   (word.is(".align") || space_of(word.text).has_value());
    if (!known) lexer_.fail("a parameter's type is followed by its name or .ptr [space] [.align N]");
    if (!first) out.attributes += ' ';
    out.attributes += word.text;
    if (word.is(".align"))
      out.attributes += " " + std::to_string(integer("an alignment", 1, 1 << 16));
  }
  const Token name = expect_identifier("a parameter name");
  out.name = name.text;
  out.line = name.line;
  declared_names_.push_back(name.text);
  extents(out);
  return out;
}

Initializer Parser::initializer(const Variable& variable) {
  Initializer out;
  if (lexer_.peek().is('{'))
    initializer_list(variable, out, 0);
  else
    initializer_value(variable, out);
  if (!variable.extents.empty() && variable.extents.front() == 0) return out;
  if (static_cast<std::int64_t>(out.bytes.size()) > size_bytes(variable))
    lexer_.fail("initializer of '" + variable.name + "' has " + std::to_string(out.bytes.size()) +
                " bytes; the variable has " + std::to_string(size_bytes(variable)));
  return out;
}

void Parser::initializer_list(const Variable& variable, Initializer& out, int depth) {
  if (depth > kMaxDepth) lexer_.fail("initializer nests deeper than 16 levels");
  expect('{', "before an initializer");
  if (accept('}')) return;
  // A nested list fills its row: what it leaves out is zero.
  std::int64_t row = std::int64_t{bytes(variable.type)};
  const auto nesting = static_cast<std::size_t>(depth) + 1;
  for (std::size_t i = nesting; i < variable.extents.size(); ++i)
    row *= variable.extents[i];
  do {
    if (lexer_.peek().is('{')) {
      const std::size_t begin = out.bytes.size();
      initializer_list(variable, out, depth + 1);
      const auto used = static_cast<std::int64_t>(out.bytes.size() - begin);
      if (used < row && lexer_.peek().is(',')) {
        if (row - used > kMaxPadding)
          lexer_.fail("initializer leaves out more than 2^24 bytes of a row");
        out.bytes.resize(begin + static_cast<std::size_t>(row));
      }
    } else {
      initializer_value(variable, out);
    }
  } while (accept(',') && !lexer_.peek().is('}'));
  expect('}', "after an initializer");
}

void Parser::initializer_value(const Variable& variable, Initializer& out) {
  const Token& token = lexer_.peek();
  const auto width = static_cast<std::size_t>(bytes(variable.type));
  if (token.kind == Token::Kind::identifier && !token.is("WARP_SZ"))
    return initializer_address(variable, out);
  const std::uint32_t line = token.line;
  Constant value = constant();
  const bool is_double = value.type == Type::f64;
  if (is_double && variable.type == Type::f32) {
    const auto narrow = static_cast<float>(std::bit_cast<double>(value.bits));
    value.bits = std::bit_cast<std::uint32_t>(narrow);
  } else if (value.type == Type::f32 && variable.type == Type::f64) {
    const double wide = std::bit_cast<float>(static_cast<std::uint32_t>(value.bits));
    value.bits = std::bit_cast<std::uint64_t>(wide);
  } else if (!is_double && value.type != Type::f32 && is_float(variable.type)) {
    lexer_.fail("a floating-point variable needs a floating-point initializer", line);
  }
  for (std::size_t i = 0; i < width; ++i)
    out.bytes.push_back(i < 8 ? static_cast<std::uint8_t>(value.bits >> (8 * i)) : std::uint8_t{0});
}

void Parser::initializer_address(const Variable& variable, Initializer& out) {
  const bool is_generic = accept("generic");
  if (is_generic) expect('(', "after generic");
  const Token name = expect_identifier("a variable or function");
  const Entity* entity = find(name.text);
  if (entity == nullptr || entity->kind != Entity::Kind::symbol)
    lexer_.fail("unknown name '" + std::string(name.text.substr(0, 64)) + "' in an initializer",
                name.line);
  InitAddress address;
  address.at = static_cast<std::int64_t>(out.bytes.size());
  address.symbol = entity->id;
  address.width = bytes(variable.type);
  address.generic = is_generic;
  if (is_generic) expect(')', "after generic(name");
  address.offset = offset();
  out.addresses.push_back(address);
  out.bytes.resize(out.bytes.size() + static_cast<std::size_t>(address.width));
}

}  // namespace tilewright::ptx::detail
