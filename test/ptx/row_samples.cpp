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
      return Type::b8;
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
  f.variables = {variable(Space::local, "lo", 1024), variable(Space::param, "pl", 1024)};
  by_type_.resize(64);
  used_.resize(64);
  for (const Type type : kRegisterTypes)
    for (int i = 0; i < kRegistersEach && (type != Type::b128 || version >= Version{8, 3}); ++i) {
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

Operand SampleModule::registers_of(Type type, int count) {
  std::vector<Operand> elems;
  for (int i = 0; i < count; ++i)
    elems.push_back(reg(next_register(type)));
  return vector(std::move(elems));
}

Operand SampleModule::address(const Opcode& op, const OperandSpec& spec) {
  if (spec.type_from == OperandSpec::TypeFrom::literal)
    return ptx::address(next_register(spec.type));
  const bool is_store = op.row().opcode == "st";
  if (op.has("param::func") || (op.has("param") && is_store))
    return address_symbol(module.symbol_id("pl"));
  if (op.has("param") || op.has("param::entry")) return address_symbol(module.symbol_id("pa"));
  if (op.has("const")) return address_symbol(module.symbol_id("co"));
  if (op.has("local")) return address_symbol(module.symbol_id("lo"));
  return ptx::address(next_register(Type::b64));
}

Operand SampleModule::make_operand(const Opcode& op, std::size_t index) {
  const OperandSpec& spec = detail::operand_specs(op.form)[index];
  const Type type = detail::type_of(spec, op, 64);
  switch (spec.kind) {
    case OperandSpec::Kind::value: {
      const int count = detail::count_of(spec, op).value_or(0);
      if (count == 0) return reg(next_register(type));
      return registers_of(type, count);
    }
    case OperandSpec::Kind::address:
      return address(op, spec);
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

Instr SampleModule::make(const Opcode& op, Optional optional) {
  Instr instr;
  instr.op = op;
  const auto specs = detail::operand_specs(op.form);
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const OperandSpec& spec = specs[i];
    if (spec.only_with.id != 0 && !op.has(spec.only_with)) continue;
    if (spec.optional && optional == Optional::left_out) continue;
    Operand made = make_operand(op, i);
    if (spec.kind == OperandSpec::Kind::descriptor && optional == Optional::left_out)
      made = registers_of(Type::b32, 4);
    const bool has_second = i + 1 < specs.size() && specs[i + 1].second;
    if (has_second && (!specs[i + 1].optional || optional == Optional::given))
      made = pair(std::move(made), make_operand(op, i + 1));
    if (has_second) ++i;
    instr.operands.push_back(std::move(made));
  }
  return instr;
}

namespace {

/// Makes the slots that go together with a varied one agree with it.
void complete(std::span<const detail::Slot> slots, Opcode& op) {
  for (std::size_t i = 1; i < slots.size(); ++i) {
    if (!slots[i].with_previous) continue;
    Mod& before = op.slots[i - 1];
    if (op.slots[i].id != 0 && before.id == 0) before = slots[i - 1].words.front();
    if (before.id != 0 && op.slots[i].id == 0) op.slots[i] = slots[i].words.front();
  }
}

}  // namespace

std::vector<Opcode> variants(std::uint16_t form, int slots_varied) {
  const auto slots = detail::FormIndex::get().slots(form);
  Opcode base;
  base.form = form;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!slots[i].optional && !slots[i].with_previous) base.slots[i] = slots[i].words.front();
  complete(slots, base);
  std::vector<Opcode> out = {base};
  const auto add = [&](Opcode varied) {
    complete(slots, varied);
    // Words that do not go together: no such instruction.
    std::vector<Mod> words;
    std::copy_if(varied.slots.begin(), varied.slots.end(), std::back_inserter(words),
                 [](Mod m) { return m.id != 0; });
    if (!detail::FormIndex::get().match(varied.row().opcode, words)) return;
    if (std::find(out.begin(), out.end(), varied) == out.end()) out.push_back(varied);
  };
  for (std::size_t i = 0; i < slots.size(); ++i)
    for (const Mod word : slots[i].words) {
      Opcode varied = base;
      varied.slots[i] = word;
      add(varied);
      for (std::size_t j = i + 1; j < slots.size() && slots_varied > 1; ++j)
        for (const Mod other : slots[j].words) {
          varied.slots[j] = other;
          add(varied);
          varied.slots[j] = base.slots[j];
        }
    }
  return out;
}

std::optional<Home> home(const Function& function, const Instr& instr) {
  constexpr std::array<std::string_view, 16> kTargets = {
      "sm_75",  "sm_80",   "sm_86",   "sm_89",   "sm_90",   "sm_90a", "sm_100",  "sm_100f",
      "sm_103", "sm_100a", "sm_103a", "sm_110a", "sm_110f", "sm_120", "sm_120f", "sm_120a"};
  Module module;
  Function& f = module.functions.emplace_back();
  f.registers = function.registers;
  for (Register& r : f.registers)  // declared, not used: it must not count
    if (r.type == Type::b128) r.type = Type::b64;
  f.body.emplace_back(instr);
  for (const std::string_view name : kTargets) {
    module.target = parse_target(name);
    module.version = required_version(module);
    try {
      check_capabilities(module);
      return Home{module.target, module.version};
    } catch (const Error&) {  // the next target, then
    }
  }
  return std::nullopt;
}

std::map<Home, std::vector<std::pair<Opcode, SampleModule::Optional>>> samples(int slots_varied) {
  using Optional = SampleModule::Optional;
  std::map<Home, std::vector<std::pair<Opcode, Optional>>> out;
  SampleModule scratch(parse_target("sm_120a"), {9, 0});
  for (std::uint16_t form = 0; form < forms().size(); ++form) {
    if (forms()[form].effect == Effect::call || forms()[form].effect == Effect::branch_indexed ||
        forms()[form].operands == "...")
      continue;
    for (const Opcode& op : variants(form, slots_varied)) {
      // 32-bit generic addresses went with 32-bit programs.
      if (op.row().opcode == "cvta" && op.type() == Type::u32) continue;
      const Instr plain = scratch.make(op, Optional::left_out);
      const Instr full = scratch.make(op, Optional::given);
      if (const auto at = home(scratch.function(), plain))
        out[*at].emplace_back(op, Optional::left_out);
      const bool same = std::equal(
          full.operands.begin(), full.operands.end(), plain.operands.begin(), plain.operands.end(),
          [](const Operand& a, const Operand& b) { return a.kind == b.kind; });
      if (same) continue;
      if (const auto at = home(scratch.function(), full))
        out[*at].emplace_back(op, Optional::given);
    }
  }
  return out;
}

}  // namespace tilewright::ptx::test
