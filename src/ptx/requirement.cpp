// SPDX-License-Identifier: Apache-2.0
// What a module needs of target and ISA version, and whether it has it.
#include "ptx/form_index.h"
#include "ptx/lexer.h"
#include "tilewright/module.h"

#include <algorithm>

namespace tilewright::ptx {
namespace {

/// The lowest version of a row's alternatives that `target` can use; {0, 0} if none.
Version lowest(Target target, std::span<const Requires> alternatives) {
  Version best{};
  for (const Requires& r : alternatives)
    if (!r.targets.empty() && satisfies(target, r.targets) &&
        (best == Version{} || r.version < best))
      best = r.version;
  return best;
}

bool applies(const detail::OperandRequires& o, const Function& function, const Instr& instr) {
  if (o.index >= instr.operands.size() || !instr.op.has(o.word) ||
      (!o.without.empty() && instr.op.has(o.without)))
    return false;
  const Operand& operand = instr.operands[o.index];
  return o.type == Type::none ||
         (operand.kind == Operand::Kind::reg && function.registers[operand.id].type == o.type);
}

/// What a function's directives, variables and registers need.
Version required_version(const Function& function) {
  const Tuning& t = function.tuning;
  Version need{1, 0};
  if (t.explicitcluster || t.maxclusterrank != 0 || t.reqnctapercluster[0] != 0) need = {7, 8};
  for (const Register& r : function.registers)
    if (r.type == Type::b128) need = std::max(need, Version{8, 3});
  for (const Stmt& stmt : function.body)
    if (const auto* directive = std::get_if<Directive>(&stmt))
      if (directive->text.find("used_bytes_mask") != std::string::npos)
        need = std::max(need, Version{8, 3});
  return need;
}

std::string describe(const Requires& r) {
  const bool or_newer = r.targets.ends_with('+');
  const std::string targets(r.targets.substr(0, r.targets.size() - (or_newer ? 1U : 0U)));
  return (or_newer ? targets + " or newer" : "one of " + targets) + " (PTX " +
         to_string(r.version) + ")";
}

/// Throws unless target and version satisfy one of the alternatives.
template <typename What>
void check(const Module& module, const What& describe_what, std::span<const Requires> alternatives,
           SiteId site) {
  const Version need = lowest(module.target, alternatives);
  const bool has_version = module.version == Version{} || module.version >= need;
  if (need != Version{} && has_version) return;
  std::string message = describe_what() + " needs ";
  if (need != Version{}) {
    message += "PTX " + to_string(need) + " on " + to_string(module.target) +
               "; the module's version is " + to_string(module.version);
  } else {
    for (std::size_t i = 0; i < alternatives.size() && !alternatives[i].targets.empty(); ++i)
      message += (i == 0 ? "" : " or ") + describe(alternatives[i]);
    message += "; the module's target is " + to_string(module.target);
  }
  const Site& at = module.sites[site];
  const SourceLoc where{detail::interned_file(module.files[at.file]), static_cast<int>(at.line)};
  throw Error(ErrorKind::unsupported, std::move(message), where);
}

/// Calls `visit(what, alternatives)` for all that an instruction needs.
template <typename Visit>
void for_each_requirement(const Function& function, const Instr& instr, const Visit& visit) {
  const Form& row = instr.op.row();
  visit([&] { return to_string(instr.op); }, std::span<const Requires>(row.requires_));
  const detail::FormIndex& index = detail::FormIndex::get();
  for (const Mod slot : instr.op.slots)
    for (const detail::WordRequires* w : index.requirements(slot))
      if (w->opcode.empty() || w->opcode == row.opcode)
        visit([&] { return "'." + std::string(w->word) + "' of " + to_string(instr.op); },
              std::span(&w->requires_, 1));
  for (const detail::OperandRequires* o : index.operand_requirements(instr.op.form))
    if (applies(*o, function, instr))
      visit(
          [&] { return "operand " + std::to_string(o->index + 1) + " of " + to_string(instr.op); },
          std::span(&o->requires_, 1));
  for (const Operand& o : instr.operands)
    if (o.kind == Operand::Kind::special)
      visit([&] { return std::string(special_registers()[o.id].name); },
            std::span(&special_registers()[o.id].requires_, 1));
}

}  // namespace

Version required_version(const Module& module) {
  Version need = required_version(module.target);
  for (const Function& f : module.functions) {
    need = std::max(need, required_version(f));
    for (const Stmt& stmt : f.body)
      if (const auto* instr = std::get_if<Instr>(&stmt))
        for_each_requirement(f, *instr, [&](const auto&, std::span<const Requires> alternatives) {
          need = std::max(need, lowest(module.target, alternatives));
        });
  }
  return need;
}

void check_capabilities(const Module& module) {
  const std::array known = {Requires{required_version(module.target), "sm_1+"}};
  check(
      module, [&] { return "target " + to_string(module.target); }, known, 0);
  for (const Function& f : module.functions)
    for (const Stmt& stmt : f.body)
      if (const auto* instr = std::get_if<Instr>(&stmt))
        for_each_requirement(f, *instr,
                             [&](const auto& what, std::span<const Requires> alternatives) {
                               check(module, what, alternatives, instr->site);
                             });
}

}  // namespace tilewright::ptx
