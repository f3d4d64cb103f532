// SPDX-License-Identifier: Apache-2.0
// Out-of-line functions: their heads, their recording, and what calls check.
#include "tilewright/function.h"

#include "lang/call.h"
#include "lang/same_code.h"

#include <algorithm>

namespace tilewright {

using lang::Callee;
using lang::Tracer;

namespace {

[[noreturn]] void refuse(const std::string& message, SourceLoc at) {
  throw Error(ErrorKind::user, "function_: " + message, at);
}

void require_name(std::string_view name, SourceLoc at) {
  auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
  };
  auto inner = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  bool ok = !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), inner);
  if (!ok) {
    refuse("'" + std::string(name) + "' is no name; use letters, digits and underscores", at);
  }
}

void require_word(Type type, const std::string& what, SourceLoc at) {
  bool ok = type != pred && (bits(type) == 16 || bits(type) == 32 || bits(type) == 64);
  if (ok) return;
  refuse(what + " has type " + std::string(name(type)) +
             "; it must have 16, 32 or 64 bits: select(p, 1, 0) makes a number of a predicate",
         at);
}

std::string signature_text(const std::vector<ptx::Variable>& results,
                           const std::vector<ptx::Variable>& parameters) {
  auto list = [](const std::vector<ptx::Variable>& variables) {
    std::string text;
    for (const ptx::Variable& v : variables) {
      text += (text.empty() ? "" : ", ") + std::string(v.space == ptx::Space::reg ? "reg " : "") +
              (v.extents.empty() ? std::to_string(bits(v.type)) + " bits"
                                 : std::to_string(ptx::size_bytes(v)) + " bytes");
    }
    return "(" + text + ")";
  };
  return list(parameters) + " -> " + list(results);
}

/// A function that the module has must take what the caller says that it takes.
void require_signature(const ptx::Function& found, const Callee& callee, SourceLoc at) {
  ptx::Function wanted = lang::declaration_of(callee, ptx::Linkage::extern_);
  std::string has = signature_text(found.returns, found.params);
  std::string wants = signature_text(wanted.returns, wanted.params);
  if (has == wants && !found.entry) return;
  throw Error(ErrorKind::user,
              "extern_function: " + callee.name + " is declared as " + wants +
                  " and the PTX text has " + (found.entry ? "an entry " : "") + has +
                  "; declare what the text has, whose arguments must be .param numbers",
              at);
}

void require_known(Tracer& tracer, const std::string& name, SourceLoc at) {
  if (tracer.module().find_function(name) != nullptr) return;
  refuse("'" + name + "' belongs to another trace; define it inside the body that calls it", at);
}

std::vector<Type> types_of(std::span<const Type> types) { return {types.begin(), types.end()}; }

}  // namespace

namespace detail {

FunctionRecorder::FunctionRecorder(const CallText& name, std::span<const Type> parameters)
    : head_{std::string(name.text()), {}, types_of(parameters)}, at_(name.at()) {
  Tracer& tracer = Tracer::current("function_", at_);
  require_name(name.text(), at_);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    require_word(parameters[i], "parameter " + std::to_string(i) + " of '" + head_.name + "'", at_);
  tracer.begin_function(head_.name, at_);
  ptx::Function head =
      lang::declaration_of({head_.name, {}, head_.parameters}, ptx::Linkage::internal);
  tracer.function().params = head.params;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    ptx::RegId reg = tracer.new_reg(parameters[i]);
    ptx::SymbolId place = tracer.module().symbol_id(head.params[i].name);
    tracer.emit("ld.param.b" + std::to_string(bits(parameters[i])),
                {ptx::reg(reg), ptx::address_symbol(place)}, at_);
    values_.push_back(tracer.result(parameters[i], reg, Uniformity::thread));
  }
}

FunctionRecorder::~FunctionRecorder() {
  if (!finished_) Tracer::current("function_", at_).abandon_function();
}

FunctionHead FunctionRecorder::finish(std::span<const Value> results) {
  Tracer& tracer = Tracer::current("function_", at_);
  for (std::size_t i = 0; i < results.size(); ++i) {
    require_word(results[i].type(), "result " + std::to_string(i) + " of '" + head_.name + "'",
                 at_);
    head_.results.push_back(results[i].type());
  }
  ptx::Function head = lang::declaration_of({head_.name, head_.results, {}}, {});
  tracer.function().returns = head.returns;
  std::vector<std::int64_t> offsets = lang::structure_offsets(head_.results);
  for (std::size_t i = 0; i < results.size(); ++i) {
    ptx::SymbolId place = tracer.module().symbol_id(head.returns[0].name);
    tracer.emit("st.param.b" + std::to_string(bits(results[i].type())),
                {ptx::address_symbol(place, offsets[i]), tracer.operand(results[i], at_)}, at_);
  }
  ptx::Function made = tracer.end_function(at_);
  finished_ = true;
  const ptx::Function* known = tracer.module().find_function(head_.name);
  if (known == nullptr) {
    tracer.module().functions.push_back(std::move(made));
  } else if (!lang::same_code(*known, made)) {
    refuse("'" + head_.name +
               "' is defined already, with other code; give each specialisation its own name",
           at_);
  }
  return std::move(head_);
}

FunctionHead extern_head(const CallText& name, std::span<const Type> results,
                         std::span<const Type> parameters) {
  SourceLoc at = name.at();
  Tracer& tracer = Tracer::current("extern_function", at);
  require_name(name.text(), at);
  Callee callee{std::string(name.text()), types_of(results), types_of(parameters)};
  for (std::size_t i = 0; i < parameters.size(); ++i)
    require_word(parameters[i], "parameter " + std::to_string(i) + " of '" + callee.name + "'", at);
  for (Type type : results)
    require_word(type, "the result of '" + callee.name + "'", at);
  const ptx::Function* found = tracer.module().find_function(callee.name);
  if (found != nullptr) require_signature(*found, callee, at);
  lang::declare_extern(tracer, callee);
  return {callee.name, callee.results, callee.parameters};
}

std::vector<Value> call_function(const FunctionHead& head, std::span<const Arg> arguments,
                                 SourceLoc at) {
  Tracer& tracer = Tracer::current(head.name.c_str(), at);
  require_known(tracer, head.name, at);
  std::vector<ptx::Operand> operands;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string what = "argument " + std::to_string(i) + " of '" + head.name + "'";
    operands.push_back(tracer.operand(arguments[i].as(head.parameters[i], what.c_str()), at));
  }
  return lang::call(tracer, {head.name, head.results, head.parameters}, operands, at);
}

}  // namespace detail
}  // namespace tilewright
