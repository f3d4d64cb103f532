// SPDX-License-Identifier: Apache-2.0
// The module level: directives, functions and their performance directives.
#include "ptx/parser.h"

#include <algorithm>

namespace tilewright::ptx {

Module parse(std::string_view text, std::string_view file) {
  return detail::Parser(text, file).run();
}

namespace detail {

Parser::Parser(std::string_view text, std::string_view file) : lexer_(text, file) {}

Module Parser::run() {
  open_scope();
  version();
  target();
  while (lexer_.peek().kind != Token::Kind::end)
    module_statement();
  return std::move(module_);
}

bool Parser::accept(char c) {
  if (!lexer_.peek().is(c)) return false;
  lexer_.next();
  return true;
}

bool Parser::accept(std::string_view word) {
  if (!lexer_.peek().is(word)) return false;
  lexer_.next();
  return true;
}

void Parser::expect(char c, std::string_view where) {
  if (!accept(c)) unexpected("'" + std::string(1, c) + "' " + std::string(where));
}

Token Parser::expect_identifier(std::string_view what) {
  if (lexer_.peek().kind != Token::Kind::identifier) unexpected(what);
  return lexer_.next();
}

void Parser::unexpected(std::string_view wanted) {
  const Token& token = lexer_.peek();
  const std::string found = token.kind == Token::Kind::end
                                ? "the end of the text"
                                : "'" + std::string(token.text.substr(0, 64)) + "'";
  lexer_.fail("expected " + std::string(wanted) + ", found " + found);
}

void Parser::version() {
  if (!accept(".version")) unexpected("'.version' first");
  const std::string_view text = lexer_.peek().text;
  const std::size_t dot = text.find('.');
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (lexer_.peek().kind != Token::Kind::floating || dot == std::string_view::npos || dot > 2 ||
      text.size() > dot + 3 ||
      !std::all_of(text.begin(), text.begin() + static_cast<long>(dot), digit) ||
      !std::all_of(text.begin() + static_cast<long>(dot) + 1, text.end(), digit))
    unexpected("a version such as 8.0");
  const auto number = [](std::string_view digits) {
    int value = 0;
    for (const char c : digits)
      value = value * 10 + (c - '0');
    return value;
  };
  module_.version = {number(text.substr(0, dot)), number(text.substr(dot + 1))};
  lexer_.next();
}

void Parser::target() {
  if (!accept(".target")) unexpected("'.target' after .version");
  const Token name = expect_identifier("a target such as sm_80");
  try {
    module_.target = parse_target(name.text);
  } catch (const Error& error) {
    lexer_.fail(error.message(), name.line);
  }
  while (accept(',')) {
    const Token option = expect_identifier("a target option");
    // `debug` promises the sections that the parser skips.
    if (option.text != "debug") module_.target_options += ", " + std::string(option.text);
  }
}

void Parser::module_statement() {
  const Token& token = lexer_.peek();
  if (token.is('@') && lexer_.following() == '@') return lexer_.skip_line();  // @@DWARF
  if (accept(';')) return;
  if (token.is(".file")) return file_directive();
  if (token.is(".section")) return section();
  if (token.is(".alias")) return alias();
  if (accept(".address_size")) {
    module_.address_size = static_cast<int>(integer("the address size", 32, 64));
    return;
  }
  const Linkage link = linkage();
  if (lexer_.peek().is(".entry") || lexer_.peek().is(".func")) return function(link);
  std::vector<Variable> declared = variables(link);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    declare_symbol(declared_names_[i]);
    module_.variables.push_back(std::move(declared[i]));
  }
}

void Parser::declare_symbol(std::string_view name) {
  module_names_.insert(std::string(name));
  scopes_.front().names[name] = {Entity::Kind::symbol, symbol_id(name)};
}

SymbolId Parser::symbol_id(std::string_view name) {
  const auto [it, added] =
      symbol_ids_.try_emplace(std::string(name), static_cast<SymbolId>(module_.symbols.size()));
  if (added) module_.symbols.emplace_back(name);
  return it->second;
}

Linkage Parser::linkage() {
  if (accept(".visible")) return Linkage::visible;
  if (accept(".extern")) return Linkage::extern_;
  if (accept(".weak")) return Linkage::weak;
  if (accept(".common")) return Linkage::common;
  return Linkage::internal;
}

void Parser::file_directive() {
  lexer_.next();
  const std::uint64_t number = constant_unary(0).bits;
  if (lexer_.peek().kind != Token::Kind::string) unexpected("a file name");
  const std::string name(lexer_.next().text);
  while (accept(','))
    constant_unary(0);  // time stamp and size
  module_.files[file_index(number)] = name;
}

/// nvcc writes .file after the .loc that refer to it: the name may come later.
std::uint32_t Parser::file_index(std::uint64_t number) {
  const auto [it, added] =
      files_.try_emplace(number, static_cast<std::uint32_t>(module_.files.size()));
  if (added) module_.files.emplace_back();
  return it->second;
}

/// Debugging sections hold no code: they are skipped.
void Parser::section() {
  lexer_.next();
  if (lexer_.peek().kind == Token::Kind::directive) lexer_.next();
  expect('{', "after a section's name");
  int depth = 1;
  while (depth > 0) {
    const Token token = lexer_.next();
    if (token.kind == Token::Kind::end) lexer_.fail("section is not closed by '}'");
    depth += token.is('{') ? 1 : token.is('}') ? -1 : 0;
  }
}

/// `.alias name, function;` declares a second name of a function.
void Parser::alias() {
  lexer_.next();
  const Token name = expect_identifier("a function");
  expect(',', "in .alias");
  const Token target = expect_identifier("a function");
  expect(';', "after .alias");
  module_.directives.push_back(".alias " + std::string(name.text) + ", " +
                               std::string(target.text));
}

void Parser::function(Linkage linkage) {
  Function& out = module_.functions.emplace_back();
  function_ = &out;
  out.linkage = linkage;
  out.line = lexer_.peek().line;
  out.entry = lexer_.next().is(".entry");
  scopes_.emplace_back();
  taken_.clear();
  suffixes_.clear();
  label_alias_.clear();
  site_ = 0;
  const auto declare = [&](const std::vector<Variable>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string_view key = declared_names_[i];
      if (scopes_.back().names.contains(key))
        lexer_.fail("parameter '" + list[i].name + "' is declared twice", list[i].line);
      if (list[i].space == Space::reg)
        scopes_.back().names[key] = {Entity::Kind::reg, add_register(key, list[i].type)};
      else
        scopes_.back().names[key] = {Entity::Kind::symbol, symbol_id(unique_name(key))};
    }
  };
  if (lexer_.peek().is('(')) declare(out.returns = parameters());
  const Token name = expect_identifier("a function name");
  out.name = name.text;
  declare_symbol(name.text);
  if (lexer_.peek().is('(')) declare(out.params = parameters());
  tuning(out);
  out.declaration = accept(';');
  if (!out.declaration) body();
  scopes_.resize(1);
  function_ = nullptr;
}

void Parser::tuning(Function& function) {
  while (lexer_.peek().kind == Token::Kind::directive)
    one_tuning(function, lexer_.next());
}

void Parser::one_tuning(Function& function, const Token& directive) {
  Tuning& t = function.tuning;
  constexpr std::int64_t kMax = 1 << 30;
  const auto number = [&] { return static_cast<int>(integer("a directive's value", 0, kMax)); };
  const auto extents = [&](std::array<int, 3>& out) {
    out = {number(), 1, 1};
    for (std::size_t i = 1; i < 3 && accept(','); ++i)
      out[i] = number();
  };
  if (directive.is(".reqntid")) return extents(t.reqntid);
  if (directive.is(".maxntid")) return extents(t.maxntid);
  if (directive.is(".reqnctapercluster")) return extents(t.reqnctapercluster);
  if (directive.is(".maxnreg"))
    t.maxnreg = number();
  else if (directive.is(".minnctapersm"))
    t.minnctapersm = number();
  else if (directive.is(".maxclusterrank"))
    t.maxclusterrank = number();
  else if (directive.is(".explicitcluster"))
    t.explicitcluster = true;
  else if (directive.is(".noreturn"))
    t.noreturn = true;
  else if (directive.is(".pragma")) {
    if (lexer_.peek().kind != Token::Kind::string) unexpected("a string after .pragma");
    function.directives.push_back(".pragma \"" + std::string(lexer_.next().text) + "\";");
    expect(';', "after .pragma");
  } else {
    lexer_.fail("unknown directive '" + std::string(directive.text.substr(0, 64)) +
                    "' of a function; known: .reqntid .maxntid .maxnreg .minnctapersm "
                    ".reqnctapercluster .maxclusterrank .explicitcluster .noreturn .pragma",
                directive.line);
  }
}

}  // namespace detail
}  // namespace tilewright::ptx
