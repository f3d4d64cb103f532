// SPDX-License-Identifier: Apache-2.0
// Makes sample instructions from the table's own patterns.
#include "ptx/row_samples.h"

#include "ptx/form_index.h"
#include "ptx/operand_pattern.h"

#include <algorithm>

namespace tilewright::ptx::test {
namespace {

using detail::OperandSpec;
constexpr int kRegistersEach = 400;
constexpr std::array kRegisterTypes = {Type::pred, Type::b8,  Type::b16, Type::b32, Type::b64,
                                       Type::b128, Type::f32, Type::f64, Type::u16, Type::u32,
                                       Type::u64,  Type::s16, Type::s32, Type::s64};

/// What one declares for an operand of a type: only the fundamental types have registers.
Type register_type(Type type) {
  if (std::find(kRegisterTypes.begin(), kRegisterTypes.end(), type) != kRegisterTypes.end())
    return type;
  switch (std::max(bits(type), 8)) {
    case 8:
      return type == Type::u8 || type == Type::s8 ? Type::u16 : Type::b8;
    case 16:
      return Type::b16;
    case 32:
      return Type::b32;
    default:
      return Type::b64;
  }
}

Variable variable(Space space, std::string name, std::int64_t size) {
  Variable out;
  out.space = space;
  out.alignment = 128;
  out.name = std::move(name);
  out.extents = {size};
  return out;
}

}  // namespace

SampleModule::SampleModule(Target target, Version version) {
  module.target = target;
  module.version = version;
  module.variables = {variable(Space::shared, "sh", 4096), variable(Space::global, "gl", 4096),
                      variable(Space::const_, "co", 4096)};
  Function f;
  f.name = "samples";
  f.entry = true;
  f.params = {variable(Space::param, "pa", 1024)};
  f.variables = {variable(Space::local, "lo", 1024)};
  by_type_.resize(64);
  used_.resize(64);
  for (const Type type : kRegisterTypes)
    for (int i = 0; i < kRegistersEach; ++i) {
      by_type_[static_cast<std::size_t>(type)].push_back(static_cast<RegId>(f.registers.size()));
      f.registers.push_back({"%" + std::string(name(type)) + "_" + std::to_string(i), type});
    }
  f.labels = {"end"};
  module.functions.push_back(std::move(f));
}

RegId SampleModule::next_register(Type type) {
  const auto t = static_cast<std::size_t>(register_type(type));
  return by_type_[t][used_[t]++ % by_type_[t].size()];
}

Operand SampleModule::address(const Opcode& op) {
  for (const std::string_view word : {"param", "param::entry"})
    if (op.has(word)) return address_symbol(module.symbol_id("pa"));
  if (op.has("const")) return address_symbol(module.symbol_id("co"));
  if (op.has("local")) return address_symbol(module.symbol_id("lo"));
  return ptx::address(next_register(Type::b64));
}

Operand SampleModule::make(const Opcode& op, std::size_t index) {
  const OperandSpec& spec = detail::operand_specs(op.form)[index];
  const Type type = detail::type_of(spec, op, 64);
  switch (spec.kind) {
    case OperandSpec::Kind::value: {
      const int count = detail::count_of(spec, op).value_or(0);
      if (count == 0) return reg(next_register(type));
      std::vector<Operand> elems;
      for (int i = 0; i < count; ++i)
        elems.push_back(reg(next_register(type)));
      return vector(std::move(elems));
    }
    case OperandSpec::Kind::address:
      return address(op);
    case OperandSpec::Kind::tensor_address: {
      Operand out = ptx::address(next_register(Type::b64));
      const int count = detail::count_of(spec, op).value_or(0);
      for (int i = 0; i < count; ++i)
        out.elems.push_back(reg(next_register(Type::b32)));
      return out;
    }
    case OperandSpec::Kind::immediate:
      return imm(spec.low == INT64_MIN ? 1 : spec.low);
    case OperandSpec::Kind::sink:
      return sink();
    case OperandSpec::Kind::label:
      return label(end_);
    case OperandSpec::Kind::descriptor:
      return reg(next_register(Type::b64));
    case OperandSpec::Kind::call:
    case OperandSpec::Kind::unchecked:
      return {};
  }
  return {};
}

void SampleModule::add(const Opcode& op) {
  Instr instr;
  instr.op = op;
  const auto specs = detail::operand_specs(op.form);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].only_with.id != 0 && !op.has(specs[i].only_with)) continue;
    Operand made = make(op, i);
    if (i + 1 < specs.size() && specs[i + 1].second) {
      made = pair(std::move(made), make(op, i + 1));
      ++i;
    }
    instr.operands.push_back(std::move(made));
  }
  module.functions.front().body.emplace_back(std::move(instr));
}

std::vector<Opcode> variants(std::uint16_t form) {
  const auto slots = detail::FormIndex::get().slots(form);
  Opcode base;
  base.form = form;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!slots[i].optional) base.slots[i] = slots[i].words.front();
  std::vector<Opcode> out = {base};
  for (std::size_t i = 0; i < slots.size(); ++i)
    for (const Mod word : slots[i].words) {
      Opcode varied = base;
      varied.slots[i] = word;
      if (varied != base) out.push_back(varied);
    }
  return out;
}

Home home(const Opcode& op) {
  constexpr std::array<std::string_view, 16> kTargets = {
      "sm_75",  "sm_80",   "sm_86",   "sm_89",   "sm_90",   "sm_90a", "sm_100",  "sm_100f",
      "sm_103", "sm_100a", "sm_103a", "sm_110a", "sm_110f", "sm_120", "sm_120f", "sm_120a"};
  for (const std::string_view name : kTargets) {
    Module module;
    module.target = parse_target(name);
    module.functions.emplace_back().body.emplace_back(Instr{op, {}, {}, 0, 0});
    module.version = required_version(module);
    try {
      check_capabilities(module);
      return {module.target, module.version};
    } catch (const Error&) {
    }
  }
  return {};
}

}  // namespace tilewright::ptx::test
