// SPDX-License-Identifier: Apache-2.0
// Whether an instruction's operands fit its row: kinds, types, vector lengths, immediates.
#include "ptx/operand_pattern.h"
#include "tilewright/module.h"

#include <algorithm>

namespace tilewright::ptx {
namespace {

using detail::OperandSpec;

/// PTX ISA, "Operand Type Checking": a register of a bit type fits any type of its size, any
/// register fits a bit type of its size, integers fit integers; `relaxed` lets the register be
/// wider.
bool fits(Type reg, Type type, bool relaxed) {
  if (reg == Type::pred || type == Type::pred) return reg == type;
  const int width = std::max(bits(type), type == Type::e2m1x2 ? 8 : 1);
  if (relaxed ? bits(reg) < width : bits(reg) != width) return false;
  if (reg == type || is_bits(reg) || is_bits(type)) return true;
  return is_integer(reg) && is_integer(type);
}

bool immediate_fits(const Operand& o, Type type) {
  const bool is_literal_float = o.type == Type::f32 || o.type == Type::f64;
  if (is_literal_float)
    return type == Type::f32 || type == Type::f64 || (is_bits(type) && bits(type) >= bits(o.type));
  if (type == Type::pred) return true;
  if (is_float(type) || is_packed(type)) return false;
  const int width = bits(type);
  if (width >= 64) return true;
  return o.value >= -(std::int64_t{1} << (width - 1)) && o.value < std::int64_t{1} << width;
}

class Checker {
 public:
  Checker(const Module& module, const Function& function, const Instr& instr, SourceLoc at)
      : module_(module), function_(function), instr_(instr), at_(at) {}

  void run() {
    const std::span<const OperandSpec> specs = detail::operand_specs(instr_.op.form);
    std::size_t next = 0;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const OperandSpec& spec = specs[i];
      if (spec.kind == OperandSpec::Kind::unchecked || spec.kind == OperandSpec::Kind::call) return;
      const bool has_second = i + 1 < specs.size() && specs[i + 1].second;
      if (spec.only_with.id != 0 && !instr_.op.has(spec.only_with)) continue;
      if (spec.with_descriptor && !has_descriptor()) continue;
      if (spec.with_descriptor && next == instr_.operands.size()) fail_count(specs);
      if (next == instr_.operands.size() && spec.optional) continue;
      if (next == instr_.operands.size()) fail_count(specs);
      const Operand& o = instr_.operands[next];
      // bar.red a{, b}, c: an optional operand is left out if the ones after it would be missing.
      if (spec.optional && !spec.second &&
          instr_.operands.size() - next <= required_after(specs, i))
        continue;
      number_ = ++next;
      if (has_second) {
        pair(o, spec, specs[++i]);
      } else {
        check(o, spec);
      }
    }
    if (next < instr_.operands.size()) fail_count(specs);
  }

 private:
  std::size_t required_after(std::span<const OperandSpec> specs, std::size_t i) const {
    return static_cast<std::size_t>(std::count_if(
        specs.begin() + static_cast<std::ptrdiff_t>(i) + 1, specs.end(), [&](const OperandSpec& s) {
          return !s.optional && !s.second && (s.only_with.id == 0 || instr_.op.has(s.only_with));
        }));
  }

  /// wgmma: operand 2 is a descriptor unless it is a vector of registers.
  bool has_descriptor() const { return instr_.operands[1].kind != Operand::Kind::vector; }

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(ErrorKind::user, to_string(instr_.op) + ": " + why, at_);
  }
  [[noreturn]] void fail_operand(const Operand& o, const std::string& wanted) const {
    fail("operand " + std::to_string(number_) + " is " + describe(o) + "; it must be " + wanted);
  }
  [[noreturn]] void fail_count(std::span<const OperandSpec> specs) const {
    std::size_t low = 0, high = 0;
    for (const OperandSpec& s : specs) {
      if (s.second || (s.only_with.id != 0 && !instr_.op.has(s.only_with))) continue;
      ++high;
      low += s.optional ? 0U : 1U;
    }
    const std::string wanted =
        low == high ? std::to_string(low) : std::to_string(low) + " to " + std::to_string(high);
    fail("takes " + wanted + " operands (" + std::string(instr_.op.row().operands) + "), not " +
         std::to_string(instr_.operands.size()));
  }

  std::string describe(const Operand& o) const {
    switch (o.kind) {
      case Operand::Kind::none:
        return "missing";
      case Operand::Kind::reg: {
        const Register& r = function_.registers[o.id];
        return "register " + r.name + " of type " + std::string(name(r.type));
      }
      case Operand::Kind::imm:
        if (o.type == Type::f32 || o.type == Type::f64) return "a floating-point immediate";
        return "the immediate " + std::to_string(o.value);
      case Operand::Kind::special:
        return std::string(special_registers()[o.id].name) +
               (o.component < 0 ? std::string() : std::string(".") + "xyzw"[o.component]);
      case Operand::Kind::symbol:
        return "the symbol " + module_.symbols[o.id];
      case Operand::Kind::label:
        return "the label " + function_.labels[o.id];
      case Operand::Kind::sink:
        return "'_'";
      case Operand::Kind::vector:
        return "a vector of " + std::to_string(o.elems.size());
      case Operand::Kind::address_reg:
      case Operand::Kind::address_symbol:
      case Operand::Kind::address_imm:
        return "an address";
      case Operand::Kind::list:
        return "a list";
      case Operand::Kind::pair:
        return "a pair";
    }
    return "";
  }

  void pair(const Operand& o, const OperandSpec& first, const OperandSpec& second) {
    if (o.kind == Operand::Kind::pair) {
      check(o.elems[0], first);
      return check(o.elems[1], second);
    }
    if (!second.optional) fail_operand(o, "a pair such as %r1|%p1");
    check(o, first);
  }

  void check(const Operand& o, const OperandSpec& spec) {
    switch (spec.kind) {
      case OperandSpec::Kind::value:
        return values(o, spec);
      case OperandSpec::Kind::address:
        return address(o, spec);
      case OperandSpec::Kind::tensor_address: {
        address(o, spec);
        const int count = detail::count_of(spec, instr_.op).value_or(0);
        if (static_cast<int>(o.elems.size()) != count)
          fail_operand(o, "a tensor address with " + std::to_string(count) + " coordinates");
        for (const Operand& e : o.elems)
          value(e, spec, Type::s32);
        return;
      }
      case OperandSpec::Kind::immediate:
        return immediate(o, spec);
      case OperandSpec::Kind::sink:
        if (o.kind != Operand::Kind::sink) fail_operand(o, "'_'");
        return;
      case OperandSpec::Kind::label:
        if (o.kind != Operand::Kind::label) fail_operand(o, "a label");
        return;
      case OperandSpec::Kind::descriptor:
        if (o.kind == Operand::Kind::vector) return values(o, spec);
        return value(o, spec, Type::b64);
      case OperandSpec::Kind::call:
      case OperandSpec::Kind::unchecked:
        return;
    }
  }

  void address(const Operand& o, const OperandSpec& spec) {
    if (o.kind == Operand::Kind::address_symbol || o.kind == Operand::Kind::address_imm) return;
    if (o.kind != Operand::Kind::address_reg) fail_operand(o, "an address in brackets");
    const Register& r = function_.registers[o.id];
    if ((!is_integer(r.type) && !is_bits(r.type)) || (bits(r.type) != 32 && bits(r.type) != 64))
      fail("address register " + r.name + " has type " + std::string(name(r.type)) +
           "; it must be a 32- or 64-bit integer");
    if (spec.type_from == OperandSpec::TypeFrom::literal && !fits(r.type, spec.type, false))
      fail("address register " + r.name + " has type " + std::string(name(r.type)) +
           "; it must be of type " + std::string(name(spec.type)));
  }

  void immediate(const Operand& o, const OperandSpec& spec) {
    if (o.kind != Operand::Kind::imm || o.type == Type::f32 || o.type == Type::f64)
      fail_operand(o, "an integer immediate");
    if (!spec.choices.empty()) {
      if (std::find(spec.choices.begin(), spec.choices.end(), o.value) != spec.choices.end())
        return;
      std::string list;
      for (const std::int64_t c : spec.choices)
        list += (list.empty() ? "" : ", ") + std::to_string(c);
      fail_operand(o, "one of " + list);
    }
    range(o, spec);
  }

  void range(const Operand& o, const OperandSpec& spec) {
    if (o.value >= spec.low && o.value <= spec.high && o.value % spec.step == 0) return;
    std::string wanted = spec.low == spec.high ? std::to_string(spec.low)
                                               : "from " + std::to_string(spec.low) + " to " +
                                                     std::to_string(spec.high);
    if (spec.step != 1) wanted += " in steps of " + std::to_string(spec.step);
    fail_operand(o, wanted);
  }

  /// A scalar, or a vector of the length that the opcode's words give.
  void values(const Operand& o, const OperandSpec& spec) {
    const Type type = detail::type_of(spec, instr_.op, module_.address_size);
    const std::optional<int> count = detail::count_of(spec, instr_.op);
    if (!count && o.kind == Operand::Kind::vector) return pack(o, spec, type);
    if (count.value_or(0) == 0) {
      // ld and st take {%r1} for %r1, as LLVM writes it.
      const bool one = spec.count == OperandSpec::Count::v && o.elems.size() == 1;
      return value(one && o.kind == Operand::Kind::vector ? o.elems[0] : o, spec, type);
    }
    if (o.kind != Operand::Kind::vector || static_cast<int>(o.elems.size()) != *count)
      fail_operand(o, "a vector of " + std::to_string(*count));
    for (const Operand& e : o.elems)
      value(e, spec, type);
  }

  int width(const Operand& o) const {
    return o.kind == Operand::Kind::reg ? bits(function_.registers[o.id].type) : 0;
  }

  /// mov.b64 %rd1, {%r1, %r2}: equal parts that fill the type.
  void pack(const Operand& o, const OperandSpec& spec, Type type) {
    const int count = static_cast<int>(o.elems.size());
    const int width = count == 0 ? 0 : bits(type) / count;
    if ((count != 2 && count != 4) || width < 8 || !is_bits(type))
      fail_operand(o, "a vector of 2 or 4 that fills a bit type");
    const Type part = width == 8    ? Type::b8
                      : width == 16 ? Type::b16
                      : width == 32 ? Type::b32
                                    : Type::b64;
    for (const Operand& e : o.elems) {
      if (e.kind == Operand::Kind::sink && spec.is_destination()) continue;
      value(e, spec, part);
    }
  }

  void value(const Operand& o, const OperandSpec& spec, Type type) {
    const std::string wanted = "of type " + std::string(name(type));
    if (o.negated && !spec.may_negate && type != Type::pred) fail_operand(o, "without '!'");
    switch (o.kind) {
      case Operand::Kind::reg:
        if (o.negated && spec.is_destination()) fail_operand(o, "without '!'");
        if (!fits(function_.registers[o.id].type, type, spec.relaxed) &&
            function_.registers[o.id].type != spec.other_type)
          fail_operand(o, wanted);
        return;
      case Operand::Kind::imm:
        if (spec.is_destination() || spec.register_only) fail_operand(o, "a register " + wanted);
        if (!immediate_fits(o, type)) fail_operand(o, wanted);
        if (is_integer(type)) range(o, spec);
        return;
      case Operand::Kind::special: {
        if (instr_.op.row().opcode != "mov") fail_operand(o, "a register; move it to one first");
        const SpecialRegister& s = special_registers()[o.id];
        if (!fits(s.type, type, false)) fail_operand(o, wanted);
        return;
      }
      case Operand::Kind::symbol:
        if (!spec.may_symbol || (bits(type) != 32 && bits(type) != 64) || is_float(type))
          fail_operand(o, "a register " + wanted);
        return;
      case Operand::Kind::sink:
        if (!spec.may_sink) fail_operand(o, "a register " + wanted);
        return;
      case Operand::Kind::none:
      case Operand::Kind::label:
      case Operand::Kind::vector:
      case Operand::Kind::address_reg:
      case Operand::Kind::address_symbol:
      case Operand::Kind::address_imm:
      case Operand::Kind::list:
      case Operand::Kind::pair:
        fail_operand(o, "a register or value " + wanted);
    }
  }

  const Module& module_;
  const Function& function_;
  const Instr& instr_;
  SourceLoc at_;
  std::size_t number_ = 0;  ///< of the operand being checked, from 1
};

}  // namespace

void check_instruction(const Module& module, const Function& function, const Instr& instr,
                       SourceLoc at) {
  if (instr.guard && function.registers[instr.guard->reg].type != Type::pred)
    throw Error(ErrorKind::user,
                to_string(instr.op) + ": guard " + function.registers[instr.guard->reg].name +
                    " has type " + std::string(name(function.registers[instr.guard->reg].type)) +
                    "; it must be a predicate",
                at);
  Checker(module, function, instr, at).run();
}

}  // namespace tilewright::ptx
