// SPDX-License-Identifier: Apache-2.0
// Decodes instructions with a lane-pure meaning, and adapts the widths of their operands.
#include "emu/decode_function.h"

#include <algorithm>

namespace tilewright::emu::detail {

namespace sem = ptx::semantics;
using OperandKind = ptx::Operand::Kind;

namespace {

Class class_of(sem::Lanes lanes) {
  switch (lanes) {
    case sem::Lanes::none:
      return Class::none;
    case sem::Lanes::b32:
      return Class::b32;
    case sem::Lanes::b64:
      return Class::b64;
    case sem::Lanes::pred:
      return Class::pred;
  }
  return Class::none;
}

}  // namespace

void FunctionDecoder::decode_lane() {
  const auto& ops = instr_->operands;
  if (ops.empty()) fail("'" + std::string(text_) + "' has no operands");
  if (instr_->op.row().opcode == "mov") {
    if (instr_->op.type() == Type::b128 || ops[0].kind == OperandKind::vector ||
        (ops.size() > 1 && ops[1].kind == OperandKind::vector)) {
      decode_move_vector();
      return;
    }
  }
  const sem::Meaning meaning = sem::resolve(text_);
  if (!meaning) {
    decode_effect();
    return;
  }
  std::vector<const ptx::Operand*> dsts, srcs;
  if (ops[0].kind == OperandKind::pair) {
    for (const auto& e : ops[0].elems)
      dsts.push_back(&e);
  } else {
    dsts.push_back(&ops[0]);
  }
  for (std::size_t i = 1; i < ops.size(); ++i)
    srcs.push_back(&ops[i]);
  decode_lane_with(meaning, dsts, srcs);
}

void FunctionDecoder::decode_lane_with(const sem::Meaning& meaning,
                                       const std::vector<const ptx::Operand*>& dsts,
                                       const std::vector<const ptx::Operand*>& srcs) {
  std::vector<Slot> slots;
  struct Widen {
    Slot from, to;
  };
  std::vector<Widen> after;
  for (std::size_t i = 0; i < dsts.size(); ++i) {
    const Class want = class_of(meaning.dst[std::min<std::size_t>(i, 1)]);
    Slot slot = value_slot(*dsts[i], want, Type::none);
    if (slot.cls == Class::sink && i == 0) slot = slots_.scratch(want);
    if (slot.cls != want && slot.cls != Class::sink) {
      const Slot narrow = slots_.scratch(want);
      after.push_back({narrow, slot});
      slot = narrow;
    }
    slots.push_back(slot);
  }
  bool negated = false;
  for (std::size_t i = 0; i < srcs.size(); ++i) {
    const Class want = i < meaning.src.size() ? class_of(meaning.src[i]) : Class::none;
    const Class imm = want == Class::none ? Class::b32 : want;
    Type type = instr_->op.type();
    if (is_float(type) && bits(type) < 32) type = Type::none;
    // The type of cvt.f64.f32 is its result's; a literal has the source's.
    if (type == Type::f64 && want == Class::b32) type = Type::f32;
    if (type == Type::f32 && want == Class::b64) type = Type::f64;
    Slot slot = adapted(value_slot(*srcs[i], imm, type), want);
    negated |= slot.negated;
    if (i == 0 && slot.in_frame && bit_field_masks_.count(instr_) != 0) {
      slot.defined = slots_.hidden(Hidden::local_symbol, Class::b32, 0, -1, 0).defined;
    }
    slots.push_back(slot);
  }
  const bool carry = meaning.reads_carry || meaning.writes_carry;
  if (carry) fc_.carry_offset = slots_.carry();
  const Handler handler = carry     ? exec_lane_carry
                          : negated ? exec_lane_negated
                                    : lane_handler(slots, static_cast<unsigned>(dsts.size()));
  Inst& in = emit(handler, std::move(slots));
  in.fn = meaning.fn;
  in.dsts = static_cast<std::uint8_t>(dsts.size());
  in.srcs = static_cast<std::uint8_t>(srcs.size());
  if (carry) in.target = slots_.carry();
  guard(in);
  for (const Widen& w : after) {
    if (w.from.cls == Class::pred || w.to.cls == Class::pred) {
      fail("'" + std::string(text_) + "' has a result of the wrong class");
    }
    const bool narrow = w.to.cls == Class::b32;
    const bool sign = is_signed(instr_->op.type());
    emit_lane({w.to, w.from}, sem::resolve(narrow ? "cvt.u32.u64"
                                           : sign ? "cvt.s64.s32"
                                                  : "cvt.u64.u32")
                                  .fn);
  }
}

/// A lane-pure instruction with one result and one operand, under the guard of the one decoded.
void FunctionDecoder::emit_lane(std::vector<Slot> slots, sem::LaneFn fn) {
  const Handler handler = lane_handler(slots, 1);
  Inst& in = emit(handler, std::move(slots));
  in.fn = fn;
  in.dsts = in.srcs = 1;
  guard(in);
}

void FunctionDecoder::decode_move_vector() {
  const auto& ops = instr_->operands;
  const Type type = instr_->op.type();
  const bool pack = ops[1].kind == OperandKind::vector;
  if (type == Type::b128) {
    std::vector<Slot> slots;
    auto add = [&](const ptx::Operand& o) {
      if (o.kind != OperandKind::vector) {
        slots.push_back(value_slot(o, Class::b128, Type::none));
        return;
      }
      for (const auto& e : o.elems)
        slots.push_back(value_slot(e, Class::b64, Type::none));
    };
    OpInfo& info = code_.infos.emplace_back();
    add(ops[0]);
    info.count[0] = static_cast<std::uint8_t>(slots.size());
    add(ops[1]);
    Inst& in = emit(exec_copy128, std::move(slots));
    in.info = &info;
    guard(in);
    return;
  }
  std::vector<const ptx::Operand*> dsts, srcs;
  const auto& parts = ops[pack ? 1 : 0].elems;
  for (const auto& e : parts)
    (pack ? srcs : dsts).push_back(&e);
  (pack ? dsts : srcs).push_back(&ops[pack ? 0 : 1]);
  const sem::Meaning meaning = pack ? sem::resolve_pack(type, static_cast<int>(parts.size()))
                                    : sem::resolve_unpack(type, static_cast<int>(parts.size()));
  if (!meaning) fail("'" + std::string(text_) + "' has a vector of the wrong length");
  decode_lane_with(meaning, dsts, srcs);
}

}  // namespace tilewright::emu::detail
