// SPDX-License-Identifier: Apache-2.0
// A user's PTX text as part of the module that is being traced.
#include "lang/same_code.h"
#include "lang/tracer.h"
#include "tilewright/function.h"

#include <algorithm>

namespace tilewright {

using lang::Tracer;

namespace {

constexpr const char* kTextName = "include_ptx";

/// Gives a parsed module's symbols and lines those of the module being traced.
class Merger {
 public:
  Merger(Tracer& tracer, ptx::Module parsed, SourceLoc at)
      : tracer_(tracer), parsed_(std::move(parsed)), at_(at) {
    for (const std::string& symbol : parsed_.symbols)
      symbols_.push_back(tracer.module().symbol_id(symbol));
  }

  void merge() {
    for (ptx::Variable& variable : parsed_.variables)
      take(std::move(variable));
    for (ptx::Function& function : parsed_.functions)
      take(std::move(function));
  }

 private:
  [[noreturn]] void refuse_other(const std::string& name) const {
    throw Error(ErrorKind::user,
                "'" + name + "' is in the kernel already and means something else; rename it", at_);
  }

  void take(ptx::Variable variable) {
    if (variable.init) {
      for (ptx::InitAddress& address : variable.init->addresses)
        address.symbol = symbols_[address.symbol];
    }
    std::vector<ptx::Variable>& variables = tracer_.module().variables;
    auto known = std::find_if(variables.begin(), variables.end(),
                              [&](const ptx::Variable& v) { return v.name == variable.name; });
    if (known == variables.end()) return variables.push_back(std::move(variable));
    if (!lang::same_variable(*known, variable)) refuse_other(variable.name);
  }

  void take(ptx::Function function) {
    if (function.entry) {
      throw Error(ErrorKind::user,
                  "the text has the entry '" + function.name +
                      "'; a kernel takes functions (.func) only, launch entries with load_ptx",
                  at_);
    }
    relocate(function);
    std::vector<ptx::Function>& functions = tracer_.module().functions;
    const ptx::Function* known = tracer_.module().find_function(function.name);
    bool has_body = known != nullptr && !known->declaration;
    if (known == nullptr || (!has_body && !function.declaration)) {
      functions.push_back(std::move(function));
    } else if (has_body && !function.declaration && !lang::same_code(*known, function)) {
      refuse_other(function.name);
    }
  }

  void relocate(ptx::Function& function) const {
    const ptx::SiteId site = tracer_.site(at_);
    for (ptx::Stmt& stmt : function.body) {
      auto* instr = std::get_if<ptx::Instr>(&stmt);
      if (instr == nullptr) continue;
      instr->site = site;
      for (ptx::Operand& operand : instr->operands)
        relocate(operand);
    }
    for (ptx::CallPrototype& prototype : function.prototypes) {
      for (ptx::SymbolId& target : prototype.targets)
        target = symbols_[target];
    }
  }

  void relocate(ptx::Operand& operand) const {
    bool symbolic = operand.kind == ptx::Operand::Kind::symbol ||
                    operand.kind == ptx::Operand::Kind::address_symbol;
    if (symbolic) operand.id = symbols_[operand.id];
    for (ptx::Operand& elem : operand.elems)
      relocate(elem);
  }

  Tracer& tracer_;
  ptx::Module parsed_;
  SourceLoc at_;
  std::vector<ptx::SymbolId> symbols_;  // by the parsed module's
};

void check(ptx::Module& parsed, ptx::Target target) {
  parsed.target = target;
  parsed.version = {};  // the kernel's will be the lowest that suffices
  ptx::check_capabilities(parsed);
  for (const ptx::Function& function : parsed.functions) {
    for (const ptx::Stmt& stmt : function.body) {
      if (const auto* instr = std::get_if<ptx::Instr>(&stmt)) {
        ptx::check_instruction(parsed, function, *instr);
      }
    }
  }
}

}  // namespace

void include_ptx(std::string_view text, SourceLoc at) {
  Tracer& tracer = Tracer::current("include_ptx", at);
  try {
    ptx::Module parsed = ptx::parse(text, kTextName);
    check(parsed, tracer.target());
    Merger(tracer, std::move(parsed), at).merge();
  } catch (const Error& error) {
    bool in_text = std::string_view(error.where().file) == kTextName;
    std::string line = in_text ? "line " + std::to_string(error.where().line) + ": " : "";
    throw Error(error.kind(), "include_ptx: " + line + error.message(), at);
  }
}

}  // namespace tilewright
