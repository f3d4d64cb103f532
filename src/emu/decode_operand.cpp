// SPDX-License-Identifier: Apache-2.0
// Decodes operands: registers, constants, special registers and symbols to slots.
#include "emu/decode_function.h"

#include <algorithm>
#include <bit>

namespace tilewright::emu::detail {

namespace sem = ptx::semantics;
using OperandKind = ptx::Operand::Kind;

Slot FunctionDecoder::immediate(const ptx::Operand& o, Class want, Type type) {
  auto value = static_cast<std::uint64_t>(o.value);
  if (o.type == Type::f64 && type == Type::f32) {
    value = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(o.value)));
  } else if (o.type == Type::f32 && type == Type::f64) {
    value = std::bit_cast<std::uint64_t>(
        static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value))));
  }
  return slots_.constant(want, value);
}

Slot FunctionDecoder::special_slot(const ptx::Operand& o) {
  const ptx::SpecialRegister& s = ptx::special_registers()[o.id];
  const Class cls = class_of(s.type);
  const bool varies = s.name.starts_with("%clock") || s.name.starts_with("%globaltimer");
  if (!varies) return slots_.hidden(Hidden::special, cls, o.id, o.component, 0);
  const Slot slot = slots_.scratch(cls);
  OpInfo& info = code_.infos.emplace_back();
  info.number = o.id;
  Inst& in = emit(exec_clock, {slot});
  in.info = &info;
  return slot;
}

Slot FunctionDecoder::symbol_slot(std::string_view name, std::int64_t offset, Class cls,
                                  OpInfo* info) {
  if (auto it = locals_.find(name); it != locals_.end()) {
    if (info != nullptr) info->space = Space::local;
    return slots_.hidden(Hidden::local_symbol, cls, 0, -1, it->second.offset + offset);
  }
  if (source_.entry) {
    for (std::size_t i = 0; i < source_.params.size(); ++i) {
      if (source_.params[i].name == name) {
        return slots_.constant(cls, static_cast<std::uint64_t>(fc_.params[i].offset + offset));
      }
    }
  }
  if (const SharedVariable* v = shared_variable(code_, fc_, name)) {
    const auto number = static_cast<std::uint32_t>(v - code_.shared.data());
    fc_.shared_used.push_back(number);
    if (v->dynamic) return slots_.hidden(Hidden::dynamic_shared, cls, 0, -1, offset);
    return slots_.hidden(Hidden::shared_symbol, cls, number, -1, offset);
  }
  const std::uint32_t builtin = function_number(code_, name);
  if (builtin != kNoFunction && find_global(code_, name) == nullptr) {
    return slots_.constant(cls, kFunctionAddress + builtin);
  }
  return slots_.constant(cls, symbol_value(code_, name) + static_cast<std::uint64_t>(offset));
}

Slot FunctionDecoder::value_slot(const ptx::Operand& o, Class want, Type type) {
  switch (o.kind) {
    case OperandKind::reg: {
      Slot slot = slots_.reg(o.id);
      slot.negated = o.negated;
      return slot;
    }
    case OperandKind::imm:
      return immediate(o, want, type);
    case OperandKind::special:
      return special_slot(o);
    case OperandKind::symbol:
      return symbol_slot(code_.module.symbols.at(o.id), o.value,
                         want == Class::b64 ? Class::b64 : Class::b32, nullptr);
    case OperandKind::sink:
      return {.cls = Class::sink};
    case OperandKind::label: {
      // The address of a label: only brx tables use one, and those are resolved by name.
      return slots_.constant(want, 0);
    }
    case OperandKind::none:
    case OperandKind::vector:
    case OperandKind::address_reg:
    case OperandKind::address_symbol:
    case OperandKind::address_imm:
    case OperandKind::list:
    case OperandKind::pair:
      break;
  }
  fail("'" + std::string(text_) + "' has an operand of an unexpected kind");
}

Slot FunctionDecoder::adapted(Slot slot, Class want) {
  if (slot.cls == want || slot.cls == Class::sink || want == Class::none) return slot;
  const bool narrow = slot.cls == Class::b64 && want == Class::b32;
  const bool widen = slot.cls == Class::b32 && want == Class::b64;
  if (!narrow && !widen) fail("'" + std::string(text_) + "' has an operand of the wrong width");
  const Slot out = slots_.scratch(want);
  emit_lane({out, slot}, sem::resolve(narrow ? "cvt.u32.u64" : "cvt.u64.u32").fn);
  return out;
}

void FunctionDecoder::flatten(const ptx::Operand& o, int index, OpInfo& info,
                              std::vector<Slot>& out) {
  const auto i = static_cast<std::size_t>(index);
  if (i >= info.start.size()) fail("'" + std::string(text_) + "' has too many operands");
  info.start[i] = static_cast<std::uint8_t>(out.size());
  const Class wide = info.type != Type::none && bits(info.type) == 64 ? Class::b64 : Class::b32;
  auto add = [&](const ptx::Operand& e) {
    const bool large =
        e.kind == OperandKind::imm && (e.value > 0xffffffffLL || e.value < -0x80000000LL);
    out.push_back(
        value_slot(e, large || e.kind == OperandKind::symbol ? Class::b64 : wide, info.type));
  };
  switch (o.kind) {
    case OperandKind::address_reg:
      out.push_back(slots_.reg(o.id));
      break;
    case OperandKind::address_symbol:
      out.push_back(symbol_slot(code_.module.symbols.at(o.id), 0, Class::b64, &info));
      break;
    case OperandKind::address_imm:
      out.push_back(slots_.constant(Class::b64, 0));
      break;
    case OperandKind::vector:
    case OperandKind::pair:
      for (const auto& e : o.elems)
        add(e);
      break;
    case OperandKind::none:
      break;
    case OperandKind::reg:
    case OperandKind::imm:
    case OperandKind::special:
    case OperandKind::symbol:
    case OperandKind::label:
    case OperandKind::sink:
    case OperandKind::list:
      add(o);
      break;
  }
  if (o.kind == OperandKind::address_reg || o.kind == OperandKind::address_symbol ||
      o.kind == OperandKind::address_imm) {
    info.offset[i] = o.value;
    for (const auto& e : o.elems) {
      if (e.kind == OperandKind::vector) {
        for (const auto& c : e.elems)
          add(c);
      } else {
        add(e);
      }
    }
  }
  info.count[i] = static_cast<std::uint8_t>(out.size() - info.start[i]);
  info.operands = std::max(info.operands, index + 1);
}

Argument FunctionDecoder::argument(const ptx::Operand& o) {
  Argument out;
  if (o.kind == OperandKind::symbol) {
    auto it = locals_.find(code_.module.symbols.at(o.id));
    if (it != locals_.end()) {
      out.variable = true;
      out.local = it->second.offset;
      out.bytes = it->second.bytes;
      return out;
    }
  }
  out.slot = value_slot(o, Class::b64, Type::none);
  return out;
}

}  // namespace tilewright::emu::detail
