// SPDX-License-Identifier: Apache-2.0
// Comparison of functions and variables.
#include "lang/same_code.h"

#include <algorithm>

namespace tilewright::lang {
namespace {

bool same_statement(const ptx::Stmt& a, const ptx::Stmt& b) {
  if (a.index() != b.index()) return false;
  if (const auto* instr = std::get_if<ptx::Instr>(&a)) {
    const auto& other = std::get<ptx::Instr>(b);
    return instr->op == other.op && instr->guard == other.guard &&
           instr->operands == other.operands;
  }
  if (const auto* label = std::get_if<ptx::Label>(&a))
    return label->id == std::get<ptx::Label>(b).id;
  return std::get<ptx::Directive>(a).text == std::get<ptx::Directive>(b).text;
}

bool same_variables(const std::vector<ptx::Variable>& a, const std::vector<ptx::Variable>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), same_variable);
}

}  // namespace

bool same_variable(const ptx::Variable& a, const ptx::Variable& b) {
  bool same_bytes = a.init.has_value() == b.init.has_value() &&
                    (!a.init || (a.init->bytes == b.init->bytes && a.init->addresses.empty() &&
                                 b.init->addresses.empty()));
  return a.space == b.space && a.type == b.type && a.vector == b.vector && a.name == b.name &&
         a.extents == b.extents && same_bytes;
}

bool same_code(const ptx::Function& a, const ptx::Function& b) {
  auto same_register = [](const ptx::Register& x, const ptx::Register& y) {
    return x.name == y.name && x.type == y.type;
  };
  return a.entry == b.entry && same_variables(a.returns, b.returns) &&
         same_variables(a.params, b.params) && same_variables(a.variables, b.variables) &&
         std::equal(a.registers.begin(), a.registers.end(), b.registers.begin(), b.registers.end(),
                    same_register) &&
         a.labels == b.labels &&
         std::equal(a.body.begin(), a.body.end(), b.body.begin(), b.body.end(), same_statement);
}

}  // namespace tilewright::lang
