// SPDX-License-Identifier: Apache-2.0
// Calls of PTX functions.
#include "lang/call.h"

#include <algorithm>

namespace tilewright::lang {
namespace {

Type param_type(Type type) {
  int width = bits(type);
  return width == 16 ? b16 : width == 32 ? b32 : b64;
}

ptx::Variable param(std::string name, Type type) {
  ptx::Variable variable;
  variable.space = ptx::Space::param;
  variable.type = param_type(type);
  variable.name = std::move(name);
  return variable;
}

/// The variable of all results; none of no results.
std::vector<ptx::Variable> results_param(const std::string& name, const std::vector<Type>& types) {
  if (types.empty()) return {};
  ptx::Variable variable = param(name, types[0]);
  if (types.size() > 1) {
    variable.type = b8;
    variable.alignment = 8;
    variable.extents = {structure_offsets(types).back() + bytes(types.back())};
  }
  return {variable};
}

/// The calling function's variable for an argument or the results of the callee.
ptx::SymbolId place_of(Tracer& tracer, ptx::Variable variable) {
  std::vector<ptx::Variable>& variables = tracer.function().variables;
  ptx::SymbolId id = tracer.module().symbol_id(variable.name);
  bool known = std::any_of(variables.begin(), variables.end(),
                           [&](const ptx::Variable& v) { return v.name == variable.name; });
  if (!known) variables.push_back(std::move(variable));
  return id;
}

std::string access(const char* op, Type type) { return op + std::string(name(param_type(type))); }

}  // namespace

std::vector<std::int64_t> structure_offsets(const std::vector<Type>& members) {
  std::vector<std::int64_t> offsets;
  std::int64_t end = 0;
  for (Type type : members) {
    std::int64_t size = bytes(type);
    offsets.push_back((end + size - 1) / size * size);
    end = offsets.back() + size;
  }
  return offsets;
}

ptx::Function declaration_of(const Callee& callee, ptx::Linkage linkage) {
  ptx::Function function;
  function.name = callee.name;
  function.linkage = linkage;
  function.declaration = true;
  function.returns = results_param(callee.name + "_result", callee.results);
  for (std::size_t i = 0; i < callee.parameters.size(); ++i) {
    function.params.push_back(
        param(callee.name + "_param_" + std::to_string(i), callee.parameters[i]));
  }
  return function;
}

void declare_extern(Tracer& tracer, const Callee& callee) {
  if (tracer.module().find_function(callee.name) != nullptr) return;
  tracer.module().functions.push_back(declaration_of(callee, ptx::Linkage::extern_));
}

std::vector<Value> call(Tracer& tracer, const Callee& callee,
                        const std::vector<ptx::Operand>& arguments, SourceLoc at) {
  std::vector<ptx::Operand> given;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    Type type = callee.parameters[i];
    ptx::SymbolId place = place_of(tracer, param(callee.name + "$arg" + std::to_string(i), type));
    tracer.emit(access("st.param.", type), {ptx::address_symbol(place), arguments[i]}, at);
    given.push_back(ptx::symbol(place));
  }
  std::vector<ptx::Operand> operands;
  std::vector<ptx::Variable> returned = results_param(callee.name + "$result", callee.results);
  ptx::SymbolId result = returned.empty() ? 0 : place_of(tracer, returned.front());
  if (!returned.empty()) operands.push_back(ptx::list({ptx::symbol(result)}));
  operands.push_back(ptx::symbol(tracer.module().symbol_id(callee.name)));
  if (!given.empty()) operands.push_back(ptx::list(std::move(given)));
  tracer.emit("call.uni", std::move(operands), at);
  std::vector<Value> results;
  std::vector<std::int64_t> offsets = structure_offsets(callee.results);
  for (std::size_t i = 0; i < callee.results.size(); ++i) {
    Type type = callee.results[i];
    ptx::RegId reg = tracer.new_reg(type);
    tracer.emit(access("ld.param.", type), {ptx::reg(reg), ptx::address_symbol(result, offsets[i])},
                at);
    results.push_back(tracer.result(type, reg, Uniformity::thread));
  }
  return results;
}

ptx::Operand text_address(Tracer& tracer, std::string_view text, SourceLoc at) {
  std::vector<std::uint8_t> bytes(text.begin(), text.end());
  bytes.push_back(0);
  std::vector<ptx::Variable>& variables = tracer.module().variables;
  auto found = std::find_if(variables.begin(), variables.end(), [&](const ptx::Variable& v) {
    return v.space == ptx::Space::global && v.init && v.init->bytes == bytes;
  });
  std::string symbol;
  if (found != variables.end()) {
    symbol = found->name;
  } else {
    ptx::Variable variable;
    variable.space = ptx::Space::global;
    variable.alignment = 1;
    variable.name = "tilewright$text" + std::to_string(variables.size());
    variable.extents = {static_cast<std::int64_t>(bytes.size())};
    variable.init = ptx::Initializer{std::move(bytes), {}};
    symbol = variable.name;
    variables.push_back(std::move(variable));
  }
  ptx::RegId place = tracer.new_reg(u64);
  ptx::RegId generic = tracer.new_reg(u64);
  tracer.emit("mov.u64", {ptx::reg(place), ptx::symbol(tracer.module().symbol_id(symbol))}, at);
  tracer.emit("cvta.global.u64", {ptx::reg(generic), ptx::reg(place)}, at);
  return ptx::reg(generic);
}

}  // namespace tilewright::lang
