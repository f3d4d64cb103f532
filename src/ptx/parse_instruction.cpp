// SPDX-License-Identifier: Apache-2.0
// Instructions and their operands.
#include "ptx/parser.h"

namespace tilewright::ptx::detail {
namespace {

constexpr std::size_t kMaxOperands =
    512;  // a wgmma of 256 columns has 128 registers and a few more

}  // namespace

std::string_view Parser::opcode_text() {
  const Token first = lexer_.next();
  opcode_.assign(first.text);
  while (lexer_.peek().kind == Token::Kind::directive) {
    const Token word = lexer_.next();
    opcode_.append(word.text);
    if (opcode_.size() > 512) lexer_.fail("instruction name is longer than 512 characters");
  }
  return opcode_;
}

void Parser::instruction() {
  Instr instr;
  instr.line = lexer_.peek().line;
  instr.site = site_;
  if (accept('@')) {
    const bool negated = accept('!');
    const Token name = expect_identifier("a predicate after '@'");
    const Entity* entity = find(name.text);
    if (entity == nullptr || entity->kind != Entity::Kind::reg ||
        function_->registers[entity->id].type != Type::pred)
      lexer_.fail("guard '" + std::string(name.text) + "' is no predicate register", name.line);
    instr.guard = Guard{entity->id, negated};
  }
  if (lexer_.peek().kind != Token::Kind::identifier) unexpected("an instruction");
  const std::string_view text = opcode_text();
  try {
    instr.op = opcode(text);
  } catch (const Error& error) {
    lexer_.fail(error.message(), instr.line);
  }
  operands(instr);
  expect(';', "after an instruction");
  function_->body.emplace_back(std::move(instr));
}

void Parser::operands(Instr& instr) {
  const Effect effect = instr.op.row().effect;
  bool callee_seen = false;
  if (lexer_.peek().is(';')) return;
  do {
    bool as_label =
        effect == Effect::branch || (effect == Effect::branch_indexed && !instr.operands.empty());
    if (effect == Effect::call && !lexer_.peek().is('(')) {
      as_label = callee_seen;
      callee_seen = true;
    }
    if (effect == Effect::call && accept('(')) {
      Operand arguments = list(sequence(')'));
      instr.operands.push_back(std::move(arguments));
    } else {
      instr.operands.push_back(operand(as_label));
    }
    if (instr.operands.size() > kMaxOperands) lexer_.fail("more than 512 operands");
  } while (accept(','));
}

Operand Parser::operand(bool as_label) {
  Operand first = simple_operand(as_label);
  if (!accept('|')) return first;
  return pair(std::move(first), simple_operand(as_label));
}

Operand Parser::simple_operand(bool as_label) {
  const Token& token = lexer_.peek();
  if (token.is('[')) return address_operand();
  if (accept('{')) return vector(sequence('}'));
  if (token.kind == Token::Kind::identifier && !token.is("WARP_SZ")) {
    const Token name = lexer_.next();
    if (name.text == "_") return sink();
    if (as_label) return ptx::label(label(name).id);
    return name_operand(name);
  }
  if (token.is('!')) {
    lexer_.next();
    if (lexer_.peek().kind != Token::Kind::identifier)
      return imm(constant_unary(0).bits == 0 ? 1 : 0);
    Operand out = name_operand(lexer_.next());
    if (out.kind != Operand::Kind::reg) lexer_.fail("'!' needs a predicate register");
    out.negated = true;
    return out;
  }
  return number_operand();
}

Operand Parser::number_operand() {
  const Constant value = constant();
  Operand out = imm(static_cast<std::int64_t>(value.bits));
  out.type = value.type;
  if (value.type == Type::f32) out.value = static_cast<std::int32_t>(value.bits);
  return out;
}

Operand Parser::name_operand(const Token& name) {
  if (const Entity* entity = find(name.text)) {
    if (entity->kind == Entity::Kind::reg) return reg(entity->id);
    return symbol(entity->id, offset());
  }
  if (name.text.front() == '%') {
    std::string full(name.text);
    if (lexer_.peek().kind == Token::Kind::directive) full += lexer_.next().text;
    if (const std::optional<Operand> found = find_special(full)) return *found;
    lexer_.fail("unknown register '" + full.substr(0, 64) + "'", name.line);
  }
  lexer_.fail("unknown name '" + std::string(name.text.substr(0, 64)) + "'; declare it before use",
              name.line);
}

Operand Parser::address_operand() {
  expect('[', "before an address");
  Operand out;
  if (lexer_.peek().kind == Token::Kind::identifier) {
    const Token name = lexer_.next();
    const Operand base = name_operand(name);
    if (base.kind == Operand::Kind::reg)
      out = address(base.id);
    else if (base.kind == Operand::Kind::symbol)
      out = address_symbol(base.id, base.value);
    else
      lexer_.fail("an address starts with a register, a variable or a number", name.line);
    out.value += offset();
  } else {
    out = address_imm(static_cast<std::int64_t>(constant().bits));
  }
  if (accept(',')) {
    expect('{', "before the coordinates of a tensor address");
    out.elems = sequence('}');
  }
  expect(']', "after an address");
  return out;
}

std::vector<Operand> Parser::sequence(char close) {
  std::vector<Operand> out;
  if (accept(close)) return out;
  do {
    const Token& token = lexer_.peek();
    if (token.is('[') || token.is('{')) unexpected("a register, number or name");
    out.push_back(simple_operand(false));
    if (out.size() > kMaxOperands) lexer_.fail("more than 512 operands");
  } while (accept(','));
  expect(close, "after a list of operands");
  return out;
}

}  // namespace tilewright::ptx::detail
