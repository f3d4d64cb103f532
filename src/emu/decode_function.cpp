// SPDX-License-Identifier: Apache-2.0
// Decodes one function: operands to slots, opcodes to handlers, labels to program counters.
#include "emu/decode.h"
#include "emu/handlers.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace tilewright::emu::detail {

namespace {

namespace sem = ptx::semantics;
using Kind = ptx::Operand::Kind;

struct LocalVariable {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

class FunctionDecoder {
 public:
  FunctionDecoder(Code& code, FunctionCode& fc)
      : code_(code), fc_(fc), source_(*fc.source), slots_(code, fc) {}

  void run();

 private:
  Code& code_;
  FunctionCode& fc_;
  const ptx::Function& source_;
  SlotTable slots_;
  std::unordered_map<std::string_view, LocalVariable> locals_;
  std::vector<std::uint32_t> label_pc_;
  struct Fixup {
    std::size_t inst;
    ptx::LabelId label;
  };
  std::vector<Fixup> fixups_;
  struct TargetsFixup {
    OpInfo* info;
    ptx::LabelId table;
  };
  std::vector<TargetsFixup> table_fixups_;
  const ptx::Instr* instr_ = nullptr;
  std::string_view text_;

  [[noreturn]] void fail(const std::string& what) const;
  void place_locals();
  std::uint32_t place_local(const ptx::Variable& v);
  void decode(const ptx::Instr& instr);
  Inst& emit(Handler handler, std::vector<Slot> slots);
  void guard(Inst& in);

  Slot value_slot(const ptx::Operand& o, Class want, Type type);
  Slot immediate(const ptx::Operand& o, Class want, Type type);
  Slot special_slot(const ptx::Operand& o);
  Slot symbol_slot(std::string_view name, std::int64_t offset, Class cls, OpInfo* info);
  Slot adapted(Slot slot, Class want);

  void decode_lane();
  void decode_move_vector();
  void decode_lane_with(const sem::Meaning& meaning, const std::vector<const ptx::Operand*>& dsts,
                        const std::vector<const ptx::Operand*>& srcs);
  void decode_effect();
  void flatten(const ptx::Operand& o, int index, OpInfo& info, std::vector<Slot>& out);
  void decode_branch();
  void decode_call();
  Argument argument(const ptx::Operand& o);
  void resolve_labels();
};

void FunctionDecoder::fail(const std::string& what) const {
  std::string where = instr_ != nullptr ? "line " + std::to_string(instr_->line) + ": " : "";
  throw Error(ErrorKind::user, "PTX " + where + what);
}

std::uint32_t FunctionDecoder::place_local(const ptx::Variable& v) {
  const auto align = static_cast<std::uint32_t>(std::max(4, ptx::alignment_bytes(v)));
  const std::uint32_t at = (fc_.local_bytes + align - 1) / align * align;
  const auto size = static_cast<std::uint32_t>(ptx::size_bytes(v));
  locals_[v.name] = {at, size};
  fc_.local_bytes = at + size;
  return at;
}

void FunctionDecoder::place_locals() {
  if (!source_.entry) {
    for (const auto& v : source_.params)
      fc_.param_offsets.push_back(place_local(v));
    for (const auto& v : source_.returns)
      fc_.return_offsets.push_back(place_local(v));
  }
  for (const auto& v : source_.variables) {
    if (v.space == ptx::Space::local || v.space == ptx::Space::param) place_local(v);
  }
  fc_.local_bytes = (fc_.local_bytes + 15) / 16 * 16;
}

void FunctionDecoder::run() {
  place_locals();
  fc_.entry_pc = static_cast<std::uint32_t>(code_.insts.size());
  label_pc_.assign(source_.labels.size(), 0);
  for (const ptx::Stmt& stmt : source_.body) {
    if (const auto* label = std::get_if<ptx::Label>(&stmt)) {
      label_pc_.at(label->id) = static_cast<std::uint32_t>(code_.insts.size());
    } else if (const auto* instr = std::get_if<ptx::Instr>(&stmt)) {
      decode(*instr);
    }
  }
  instr_ = nullptr;
  text_ = "ret";
  emit(exec_ret, {});
  resolve_labels();
  fc_.end_pc = static_cast<std::uint32_t>(code_.insts.size());
  fc_.frame_bytes = slots_.bytes();
}

Inst& FunctionDecoder::emit(Handler handler, std::vector<Slot> slots) {
  Inst& in = code_.insts.emplace_back();
  in.run = handler;
  in.slots = static_cast<std::uint16_t>(slots.size());
  code_.has_wgmma |= handler == exec_wgmma;
  in.slot = code_.slots.emplace_back(std::move(slots)).data();
  Origin& origin = code_.origins.emplace_back();
  if (instr_ != nullptr) {
    origin.line = instr_->line;
    origin.site = instr_->site;
  }
  origin.text = text_;
  return in;
}

void FunctionDecoder::guard(Inst& in) {
  if (!instr_->guard) return;
  const Slot slot = slots_.reg(instr_->guard->reg);
  if (slot.cls != Class::pred) fail("the guard of '" + std::string(text_) + "' is no predicate");
  in.guarded = true;
  in.guard_negated = instr_->guard->negated;
  in.guard = static_cast<std::uint32_t>(slot.value);
  in.guard_defined = static_cast<std::uint32_t>(slot.defined);
}

void FunctionDecoder::decode(const ptx::Instr& instr) {
  instr_ = &instr;
  text_ = code_.texts.emplace_back(ptx::to_string(instr.op));
  switch (instr.op.row().effect) {
    case ptx::Effect::lane:
    case ptx::Effect::special_register:
    case ptx::Effect::address_of:
      decode_lane();
      break;
    case ptx::Effect::branch:
      decode_branch();
      break;
    case ptx::Effect::call:
      decode_call();
      break;
    default:
      decode_effect();
      break;  // handler_of() has the switch without default
  }
}

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
  auto shared = fc_.shared_offsets.find(name);
  if (shared != fc_.shared_offsets.end()) {
    return slots_.hidden(Hidden::shared_symbol, cls, 0, -1, shared->second + offset);
  }
  shared = code_.shared_offsets.find(name);
  if (shared != code_.shared_offsets.end()) {
    return slots_.hidden(Hidden::shared_symbol, cls, 0, -1, shared->second + offset);
  }
  auto is_dynamic = [&](const std::vector<ptx::Variable>& list) {
    return std::any_of(list.begin(), list.end(), [&](const ptx::Variable& v) {
      return v.space == ptx::Space::shared && v.name == name;
    });
  };
  if (is_dynamic(source_.variables) || is_dynamic(code_.module.variables)) {
    return slots_.hidden(Hidden::dynamic_shared, cls, 0, -1, offset);
  }
  const std::uint32_t builtin = function_number(code_, name);
  if (builtin != kNoFunction && find_global(code_, name) == nullptr) {
    return slots_.constant(cls, kFunctionAddress + builtin);
  }
  return slots_.constant(cls, symbol_value(code_, name) + static_cast<std::uint64_t>(offset));
}

Slot FunctionDecoder::value_slot(const ptx::Operand& o, Class want, Type type) {
  switch (o.kind) {
    case Kind::reg: {
      Slot slot = slots_.reg(o.id);
      slot.negated = o.negated;
      return slot;
    }
    case Kind::imm:
      return immediate(o, want, type);
    case Kind::special:
      return special_slot(o);
    case Kind::symbol:
      return symbol_slot(code_.module.symbols.at(o.id), o.value,
                         want == Class::b64 ? Class::b64 : Class::b32, nullptr);
    case Kind::sink:
      return {.cls = Class::sink};
    case Kind::label: {
      // The address of a label: only brx tables use one, and those are resolved by name.
      return slots_.constant(want, 0);
    }
    case Kind::none:
    case Kind::vector:
    case Kind::address_reg:
    case Kind::address_symbol:
    case Kind::address_imm:
    case Kind::list:
    case Kind::pair:
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
  Inst& in = emit(exec_lane, {out, slot});
  in.fn = sem::resolve(narrow ? "cvt.u32.u64" : "cvt.u64.u32").fn;
  in.dsts = in.srcs = 1;
  guard(in);
  return out;
}

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

void FunctionDecoder::decode_lane() {
  const auto& ops = instr_->operands;
  if (ops.empty()) fail("'" + std::string(text_) + "' has no operands");
  if (instr_->op.row().opcode == "mov") {
    if (instr_->op.type() == Type::b128 || ops[0].kind == Kind::vector ||
        (ops.size() > 1 && ops[1].kind == Kind::vector)) {
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
  if (ops[0].kind == Kind::pair) {
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
    slots.push_back(slot);
  }
  const bool carry = meaning.reads_carry || meaning.writes_carry;
  if (carry) fc_.carry_offset = slots_.carry();
  Inst& in = emit(carry     ? exec_lane_carry
                  : negated ? exec_lane_negated
                            : exec_lane,
                  std::move(slots));
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
    Inst& widen = emit(exec_lane, {w.to, w.from});
    widen.fn = sem::resolve(narrow ? "cvt.u32.u64" : sign ? "cvt.s64.s32" : "cvt.u64.u32").fn;
    widen.dsts = widen.srcs = 1;
    guard(widen);
  }
}

void FunctionDecoder::decode_move_vector() {
  const auto& ops = instr_->operands;
  const Type type = instr_->op.type();
  const bool pack = ops[1].kind == Kind::vector;
  if (type == Type::b128) {
    std::vector<Slot> slots;
    auto add = [&](const ptx::Operand& o) {
      if (o.kind != Kind::vector) {
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

void FunctionDecoder::flatten(const ptx::Operand& o, int index, OpInfo& info,
                              std::vector<Slot>& out) {
  const auto i = static_cast<std::size_t>(index);
  if (i >= info.start.size()) fail("'" + std::string(text_) + "' has too many operands");
  info.start[i] = static_cast<std::uint8_t>(out.size());
  const Class wide = info.type != Type::none && bits(info.type) == 64 ? Class::b64 : Class::b32;
  auto add = [&](const ptx::Operand& e) {
    const bool large = e.kind == Kind::imm && (e.value > 0xffffffffLL || e.value < -0x80000000LL);
    out.push_back(value_slot(e, large || e.kind == Kind::symbol ? Class::b64 : wide, info.type));
  };
  switch (o.kind) {
    case Kind::address_reg:
      out.push_back(slots_.reg(o.id));
      break;
    case Kind::address_symbol:
      out.push_back(symbol_slot(code_.module.symbols.at(o.id), 0, Class::b64, &info));
      break;
    case Kind::address_imm:
      out.push_back(slots_.constant(Class::b64, 0));
      break;
    case Kind::vector:
    case Kind::pair:
      for (const auto& e : o.elems)
        add(e);
      break;
    case Kind::none:
      break;
    case Kind::reg:
    case Kind::imm:
    case Kind::special:
    case Kind::symbol:
    case Kind::label:
    case Kind::sink:
    case Kind::list:
      add(o);
      break;
  }
  if (o.kind == Kind::address_reg || o.kind == Kind::address_symbol ||
      o.kind == Kind::address_imm) {
    info.offset[i] = o.value;
    for (const auto& e : o.elems) {
      if (e.kind == Kind::vector) {
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

void FunctionDecoder::decode_effect() {
  OpInfo& info = code_.infos.emplace_back();
  read_modifiers(instr_->op, info);
  std::vector<Slot> slots;
  int index = 0;
  std::optional<ptx::LabelId> table;
  for (const auto& o : instr_->operands) {
    if (o.kind == Kind::label) table = o.id;
    flatten(o, index++, info, slots);
  }
  for (Slot& s : slots) {
    if (s.cls == Class::none) fail("'" + std::string(text_) + "' has an operand without a value");
  }
  const ptx::Effect effect = instr_->op.row().effect;
  Handler handler = handler_of(effect);
  if (effect == ptx::Effect::load && info.space == Space::param) handler = exec_load_param;
  Inst& in = emit(handler, std::move(slots));
  in.info = &info;
  guard(in);
  if (effect == ptx::Effect::branch_indexed && table) table_fixups_.push_back({&info, *table});
}

void FunctionDecoder::decode_branch() {
  const auto& ops = instr_->operands;
  if (ops.size() != 1 || ops[0].kind != Kind::label) fail("bra needs a label");
  fixups_.push_back({code_.insts.size(), ops[0].id});
  guard(emit(exec_branch, {}));
}

Argument FunctionDecoder::argument(const ptx::Operand& o) {
  Argument out;
  if (o.kind == Kind::symbol) {
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

void FunctionDecoder::decode_call() {
  OpInfo& info = code_.infos.emplace_back();
  info.opcode = &instr_->op;
  std::vector<Slot> slots;
  bool seen_target = false;
  for (const auto& o : instr_->operands) {
    if (o.kind == Kind::list) {
      auto& list = seen_target ? info.arguments : info.results;
      for (const auto& e : o.elems)
        list.push_back(argument(e));
    } else if (!seen_target && o.kind == Kind::symbol) {
      seen_target = true;
      info.function = function_number(code_, code_.module.symbols.at(o.id));
      if (info.function == kNoFunction) {
        fail("call of '" + code_.module.symbols[o.id] +
             "', which has no body in this module; include_ptx adds one");
      }
    } else if (!seen_target && o.kind == Kind::reg) {
      seen_target = true;
      info.function = kNoFunction;
      slots.push_back(slots_.reg(o.id));
    }
  }
  Inst& in = emit(exec_call, std::move(slots));
  in.info = &info;
  guard(in);
}

void FunctionDecoder::resolve_labels() {
  for (const Fixup& f : fixups_) {
    Inst& in = code_.insts[f.inst];
    in.target = label_pc_.at(f.label);
    in.backward = in.target <= f.inst;
  }
  for (const TargetsFixup& f : table_fixups_) {
    for (const auto& table : source_.branch_targets) {
      if (table.name != f.table) continue;
      for (const ptx::LabelId label : table.targets) {
        f.info->targets.push_back(label_pc_.at(label));
      }
    }
  }
}

}  // namespace

void decode_function(Code& code, FunctionCode& function) { FunctionDecoder(code, function).run(); }

}  // namespace tilewright::emu::detail
