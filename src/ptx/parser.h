// SPDX-License-Identifier: Apache-2.0
// The parser's state: names by scope, and the grammar as one function a construct.
#pragma once

#include "ptx/lexer.h"
#include "tilewright/module.h"

#include <array>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tilewright::ptx::detail {

/// What a name stands for.
struct Entity {
  enum class Kind : std::uint8_t { reg, symbol, unused_reg };
  Kind kind = Kind::symbol;
  std::uint32_t id = 0;  ///< RegId, SymbolId, or the Type of a register that was not yet used
};
/// `.reg .b32 %r<10>;`: registers are made when first used, so that a huge count costs nothing.
struct RegisterRange {
  Type type = Type::b32;
  std::uint64_t count = 0;
};
struct LabelState {
  LabelId id = 0;
  bool defined = false;
  std::uint32_t line = 0;
};
struct Scope {
  std::unordered_map<std::string_view, Entity> names;
  std::unordered_map<std::string_view, RegisterRange> ranges;
  std::unordered_map<std::string_view, LabelState> labels;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view file);
  Module run();

 private:
  // parse_module.cpp
  void module_statement();
  void version();
  void target();
  void file_directive();
  std::uint32_t file_index(std::uint64_t number);
  void section();
  void alias();
  Linkage linkage();
  void function(Linkage linkage);
  void tuning(Function& function);
  void one_tuning(Function& function, const Token& directive);
  std::vector<Variable> parameters();
  Variable parameter();
  SymbolId symbol_id(std::string_view name);
  void declare_symbol(std::string_view name);

  // parse_variable.cpp
  std::vector<Variable> variables(Linkage linkage);
  Variable variable_head();
  void attribute(Variable& variable);
  void extents(Variable& variable);
  Initializer initializer(const Variable& variable);
  void initializer_list(const Variable& variable, Initializer& out, int depth);
  void initializer_value(const Variable& variable, Initializer& out);
  void initializer_address(const Variable& variable, Initializer& out);

  // parse_function.cpp
  void body();
  void statement();
  void body_directive();
  void registers();
  void local_variables();
  void loc();
  SiteId site_id(const Site& site);
  void label_definition(const Token& name);
  void branch_targets(LabelId name);
  void call_targets(LabelId name);
  void call_prototype(LabelId name);
  void open_scope();
  void close_scope();
  void resolve_labels();
  LabelState& label(const Token& name);
  const Entity* find(std::string_view name);
  RegId add_register(std::string_view name, Type type);
  std::string unique_name(std::string_view name);

  // parse_instruction.cpp
  void instruction();
  std::string_view opcode_text();
  void operands(Instr& instr);
  Operand operand(bool as_label);
  Operand simple_operand(bool as_label);
  Operand name_operand(const Token& name);
  Operand address_operand();
  std::vector<Operand> sequence(char close);
  Operand number_operand();

  // constant_expression.cpp: the value's bits and its type (s64, u64 or f64)
  struct Constant {
    std::uint64_t bits = 0;
    Type type = Type::s64;
  };
  Constant constant(int depth = 0);
  Constant constant_binary(int level, int depth);
  Constant constant_unary(int depth);
  std::int64_t offset();
  std::int64_t integer(std::string_view what, std::int64_t low, std::int64_t high);

  bool accept(char c);
  bool accept(std::string_view word);
  void expect(char c, std::string_view where);
  Token expect_identifier(std::string_view what);
  [[noreturn]] void unexpected(std::string_view wanted);

  Lexer lexer_;
  Module module_;
  std::unordered_map<std::string, SymbolId> symbol_ids_;
  std::unordered_set<std::string> module_names_;
  std::unordered_map<std::uint64_t, std::uint32_t> files_;
  std::map<std::array<std::uint32_t, 4>, SiteId> sites_;
  std::map<std::array<std::uint32_t, 3>, SiteId> positions_;  ///< the last site there
  std::vector<std::string_view> declared_names_;  ///< of the last variables() or parameters()
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  std::unordered_set<std::string> taken_;          ///< names in use in the function
  std::unordered_map<std::string, int> suffixes_;  ///< the last number given to a renamed name
  std::vector<LabelId> label_alias_;
  SiteId site_ = 0;
  std::string opcode_;
};

}  // namespace tilewright::ptx::detail
