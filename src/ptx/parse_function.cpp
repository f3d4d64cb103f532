// SPDX-License-Identifier: Apache-2.0
// Function bodies: scopes, registers, labels, local variables, line information.
#include "ptx/parser.h"

#include <algorithm>
#include <charconv>

namespace tilewright::ptx::detail {
namespace {

constexpr std::size_t kMaxScopes = 256;

/// Splits "%r12" into "%r" and 12; nothing unless the digits are canonical.
bool split_number(std::string_view name, std::string_view& prefix, std::uint64_t& number) {
  std::size_t begin = name.size();
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9')
    --begin;
  if (begin == name.size() || (name[begin] == '0' && begin + 1 != name.size())) return false;
  prefix = name.substr(0, begin);
  return std::from_chars(name.data() + begin, name.data() + name.size(), number).ec == std::errc{};
}

}  // namespace

void Parser::body() {
  expect('{', "before a function's body");
  const std::size_t outer = scopes_.size();
  open_scope();
  while (scopes_.size() > outer) {
    if (lexer_.peek().kind == Token::Kind::end) lexer_.fail("function body is not closed by '}'");
    statement();
  }
  resolve_labels();
}

void Parser::statement() {
  const Token& token = lexer_.peek();
  if (token.is('{')) {
    lexer_.next();
    open_scope();
  } else if (token.is('}')) {
    lexer_.next();
    close_scope();
  } else if (token.is(';')) {
    lexer_.next();
  } else if (token.kind == Token::Kind::directive) {
    body_directive();
  } else if (token.kind == Token::Kind::identifier && lexer_.following() == ':') {
    label_definition(lexer_.next());
  } else {
    if (token.kind == Token::Kind::identifier) {
      // A label may stand apart from its colon: no instruction starts "name :".
      const Lexer saved = lexer_;
      const Token name = lexer_.next();
      if (lexer_.peek().is(':')) return label_definition(name);
      lexer_ = saved;
    }
    if (token.is('@') && lexer_.following() == '@') return lexer_.skip_line();  // @@DWARF
    instruction();
  }
}

void Parser::body_directive() {
  const Token& token = lexer_.peek();
  if (token.is(".reg")) return registers();
  if (token.is(".loc")) return loc();
  if (token.is(".file")) return file_directive();
  if (token.is(".section")) return section();
  if (token.is(".pragma")) {
    lexer_.next();
    if (lexer_.peek().kind != Token::Kind::string) unexpected("a string after .pragma");
    std::string text = ".pragma \"" + std::string(lexer_.next().text) + "\"";
    while (accept(',')) {
      if (lexer_.peek().kind != Token::Kind::string) unexpected("a string after .pragma");
      text += ", \"" + std::string(lexer_.next().text) + "\"";
    }
    expect(';', "after .pragma");
    function_->body.emplace_back(Directive{std::move(text)});
    return;
  }
  if (token.is(".branchtargets") || token.is(".calltargets") || token.is(".callprototype"))
    lexer_.fail("'" + std::string(token.text) + "' needs a label before it");
  local_variables();
}

void Parser::registers() {
  lexer_.next();
  if (lexer_.peek().is(".v2") || lexer_.peek().is(".v4"))
    lexer_.fail("vector registers are not supported; declare scalars");
  const std::optional<Type> type = lexer_.peek().kind == Token::Kind::directive
                                       ? type_from_name(lexer_.peek().text.substr(1))
                                       : std::nullopt;
  if (!type) unexpected("a register type");
  lexer_.next();
  do {
    const Token name = expect_identifier("a register name");
    Scope& scope = scopes_.back();
    if (accept('<')) {
      const std::uint64_t number = constant_unary(0).bits;  // not an expression: '>' ends it
      expect('>', "after a register count");
      if (!scope.ranges.try_emplace(name.text, RegisterRange{*type, number}).second)
        lexer_.fail("registers '" + std::string(name.text) + "<>' are declared twice", name.line);
    } else {
      if (scope.names.contains(name.text))
        lexer_.fail("'" + std::string(name.text) + "' is declared twice", name.line);
      scope.names[name.text] = {Entity::Kind::unused_reg, static_cast<std::uint32_t>(*type)};
    }
  } while (accept(','));
  expect(';', "after a register declaration");
}

RegId Parser::add_register(std::string_view name, Type type) {
  function_->registers.push_back(Register{unique_name(name), type});
  return static_cast<RegId>(function_->registers.size() - 1);
}

std::string Parser::unique_name(std::string_view name) {
  std::string out(name);
  while (!taken_.insert(out).second || (out != name && module_names_.contains(out)))
    out = std::string(name) + "_" + std::to_string(++suffixes_[std::string(name)]);
  return out;
}

const Entity* Parser::find(std::string_view name) {
  std::string_view prefix;
  std::uint64_t number = 0;
  const bool numbered = split_number(name, prefix, number);
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    const auto it = scope.names.find(name);
    if (it != scope.names.end()) {
      if (it->second.kind == Entity::Kind::unused_reg)
        it->second = {Entity::Kind::reg, add_register(name, static_cast<Type>(it->second.id))};
      return &it->second;
    }
    if (!numbered) continue;
    const auto range = scope.ranges.find(prefix);
    if (range == scope.ranges.end() || number >= range->second.count) continue;
    const RegId id = add_register(name, range->second.type);
    return &(scope.names[name] = {Entity::Kind::reg, id});
  }
  return nullptr;
}

void Parser::local_variables() {
  std::vector<Variable> declared = variables(Linkage::internal);
  for (std::size_t i = 0; i < declared.size(); ++i) {
    Variable& variable = declared[i];
    Scope& scope = scopes_.back();
    const std::string_view key = declared_names_[i];
    if (scope.names.contains(key))
      lexer_.fail("'" + variable.name + "' is declared twice", variable.line);
    variable.name = unique_name(variable.name);
    scope.names[key] = {Entity::Kind::symbol, symbol_id(variable.name)};
    function_->variables.push_back(std::move(variable));
  }
}

void Parser::loc() {
  lexer_.next();
  Site site;
  constexpr std::int64_t kMax = 0xffffffff;
  site.file = file_index(static_cast<std::uint64_t>(integer("the file number", 0, kMax)));
  site.line = static_cast<std::uint32_t>(integer("the line", 0, kMax));
  site.column = static_cast<std::uint32_t>(integer("the column", 0, kMax));
  if (accept(',')) {
    if (!accept("function_name")) unexpected("'function_name'");
    expect_identifier("a label of .debug_str");
    if (accept('+')) integer("the offset", 0, kMax);
    expect(',', "before inlined_at");
    if (!accept("inlined_at")) unexpected("'inlined_at'");
    Site parent;
    parent.file = file_index(static_cast<std::uint64_t>(integer("the file number", 0, kMax)));
    parent.line = static_cast<std::uint32_t>(integer("the line", 0, kMax));
    parent.column = static_cast<std::uint32_t>(integer("the column", 0, kMax));
    const auto call = positions_.find({parent.file, parent.line, parent.column});
    site.parent = call != positions_.end() ? call->second : site_id(parent);
  }
  site_ = site_id(site);
  positions_[{site.file, site.line, site.column}] = site_;
}

SiteId Parser::site_id(const Site& site) {
  const std::array<std::uint32_t, 4> key = {site.file, site.line, site.column, site.parent};
  const auto [it, added] = sites_.try_emplace(key, static_cast<SiteId>(module_.sites.size()));
  if (added) module_.sites.push_back(site);
  return it->second;
}

LabelState& Parser::label(const Token& name) {
  const auto [it, added] = scopes_.back().labels.try_emplace(name.text);
  if (added) {
    it->second = {static_cast<LabelId>(function_->labels.size()), false, name.line};
    function_->labels.emplace_back(name.text);
    label_alias_.push_back(it->second.id);
  }
  return it->second;
}

void Parser::label_definition(const Token& name) {
  expect(':', "after a label");
  LabelState& state = label(name);
  if (state.defined)
    lexer_.fail("label '" + std::string(name.text) + "' is defined twice", name.line);
  state.defined = true;
  function_->labels[state.id] = unique_name(name.text);
  const LabelId id = state.id;
  if (accept(".branchtargets")) return branch_targets(id);
  if (accept(".calltargets")) return call_targets(id);
  if (accept(".callprototype")) return call_prototype(id);
  function_->body.emplace_back(Label{id});
}

void Parser::branch_targets(LabelId name) {
  BranchTargets out{name, {}};
  do
    out.targets.push_back(label(expect_identifier("a label")).id);
  while (accept(','));
  expect(';', "after .branchtargets");
  function_->branch_targets.push_back(std::move(out));
}

void Parser::call_targets(LabelId name) {
  CallPrototype out;
  out.name = name;
  do {
    const Token target = expect_identifier("a function");
    const Entity* entity = find(target.text);
    if (entity == nullptr || entity->kind != Entity::Kind::symbol)
      lexer_.fail("unknown function '" + std::string(target.text) + "'", target.line);
    out.targets.push_back(entity->id);
  } while (accept(','));
  expect(';', "after .calltargets");
  function_->prototypes.push_back(std::move(out));
}

void Parser::call_prototype(LabelId name) {
  CallPrototype out;
  out.name = name;
  if (lexer_.peek().is('(')) out.returns = parameters();
  expect_identifier("a name or '_'");
  if (lexer_.peek().is('(')) out.params = parameters();
  out.noreturn = accept(".noreturn");
  expect(';', "after .callprototype");
  function_->prototypes.push_back(std::move(out));
}

void Parser::open_scope() {
  if (scopes_.size() > kMaxScopes) lexer_.fail("blocks nest deeper than 256 levels");
  scopes_.emplace_back();
}

/// Labels that the block uses but does not define belong to the block around it.
void Parser::close_scope() {
  Scope inner = std::move(scopes_.back());
  scopes_.pop_back();
  std::vector<std::pair<std::string_view, LabelState>> open;
  for (const auto& [name, state] : inner.labels)
    if (!state.defined) open.emplace_back(name, state);
  std::sort(open.begin(), open.end(),
            [](const auto& a, const auto& b) { return a.second.id < b.second.id; });
  if (!open.empty() && scopes_.size() == 2)  // the module and the parameters are left
    lexer_.fail("label '" + std::string(open.front().first) + "' is not defined",
                open.front().second.line);
  for (const auto& [name, state] : open) {
    const auto [it, added] = scopes_.back().labels.try_emplace(name, state);
    if (!added) label_alias_[state.id] = it->second.id;
  }
}

/// Replaces placeholders by the labels that they turned out to be, and drops the unused names.
void Parser::resolve_labels() {
  std::vector<LabelId> final_id(label_alias_.size());
  std::vector<std::string> names;
  for (std::size_t i = 0; i < label_alias_.size(); ++i)
    if (label_alias_[i] == i) {
      final_id[i] = static_cast<LabelId>(names.size());
      names.push_back(std::move(function_->labels[i]));
    }
  if (names.size() == label_alias_.size()) {
    function_->labels = std::move(names);
    return;
  }
  const auto resolve = [&](LabelId& id) {
    while (label_alias_[id] != id)
      id = label_alias_[id];
    id = final_id[id];
  };
  for (Stmt& stmt : function_->body) {
    if (auto* defined = std::get_if<Label>(&stmt)) resolve(defined->id);
    if (auto* instr = std::get_if<Instr>(&stmt))
      for (Operand& o : instr->operands)
        if (o.kind == Operand::Kind::label) resolve(o.id);
  }
  for (BranchTargets& table : function_->branch_targets) {
    resolve(table.name);
    for (LabelId& target : table.targets)
      resolve(target);
  }
  for (CallPrototype& prototype : function_->prototypes)
    resolve(prototype.name);
  function_->labels = std::move(names);
}

}  // namespace tilewright::ptx::detail
