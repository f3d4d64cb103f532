// SPDX-License-Identifier: Apache-2.0
// What a module needs of target and ISA version, and whether it has it.
#include "ptx/forms.h"
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

bool applies(const detail::WordRequires& w, const Opcode& opcode) {
  return (w.opcode.empty() || w.opcode == opcode.row().opcode) && opcode.has(w.word);
}

std::string describe(const Requires& r) {
  const bool or_newer = r.targets.ends_with('+');
  const std::string targets(r.targets.substr(0, r.targets.size() - (or_newer ? 1U : 0U)));
  return (or_newer ? targets + " or newer" : "one of " + targets) + " (PTX " +
         to_string(r.version) + ")";
}

/// Throws unless target and version satisfy one of the alternatives.
void check(const Module& module, const std::string& what, std::span<const Requires> alternatives,
           SiteId site) {
  const Version need = lowest(module.target, alternatives);
  const bool has_version = module.version == Version{} || module.version >= need;
  if (need != Version{} && has_version) return;
  std::string message = what + " needs ";
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

}  // namespace

std::vector<Requires> requirements(const Opcode& opcode) {
  std::vector<Requires> out;
  for (const detail::WordRequires& w : detail::word_requirements())
    if (applies(w, opcode)) out.push_back(w.requires_);
  return out;
}

Version required_version(const Module& module) {
  Version need = required_version(module.target);
  for (const Function& f : module.functions)
    for (const Stmt& stmt : f.body)
      if (const auto* instr = std::get_if<Instr>(&stmt)) {
        need = std::max(need, lowest(module.target, instr->op.row().requires_));
        for (const Requires& r : requirements(instr->op))
          need = std::max(need, r.version);
        for (const Operand& o : instr->operands)
          if (o.kind == Operand::Kind::special)
            need = std::max(need, special_registers()[o.id].requires_.version);
      }
  return need;
}

void check_capabilities(const Module& module) {
  check(module, "target " + to_string(module.target),
        std::array{Requires{required_version(module.target), "sm_1+"}}, 0);
  for (const Function& f : module.functions)
    for (const Stmt& stmt : f.body) {
      const auto* instr = std::get_if<Instr>(&stmt);
      if (instr == nullptr) continue;
      check(module, to_string(instr->op), instr->op.row().requires_, instr->site);
      for (const detail::WordRequires& w : detail::word_requirements())
        if (applies(w, instr->op))
          check(module, "'." + std::string(w.word) + "' of " + to_string(instr->op),
                std::span(&w.requires_, 1), instr->site);
      for (const Operand& o : instr->operands)
        if (o.kind == Operand::Kind::special)
          check(module, std::string(special_registers()[o.id].name),
                std::span(&special_registers()[o.id].requires_, 1), instr->site);
    }
}

}  // namespace tilewright::ptx
