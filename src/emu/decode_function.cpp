// SPDX-License-Identifier: Apache-2.0
// Decodes one function: statements to instruction records, labels to program counters.
#include "emu/decode_function.h"

#include <algorithm>
#include <optional>

namespace tilewright::emu::detail {

using OperandKind = ptx::Operand::Kind;

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
  bit_field_masks_ = bit_field_masks(source_);
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
  find_straight_runs(fc_.entry_pc);
  fc_.end_pc = static_cast<std::uint32_t>(code_.insts.size());
  fc_.frame_bytes = slots_.bytes();
}

void FunctionDecoder::find_straight_runs(std::size_t first) {
  constexpr std::uint16_t kMost = 0xffff;
  std::uint16_t run = 0;
  for (std::size_t i = code_.insts.size(); i-- > first;) {
    Inst& in = code_.insts[i];
    const bool plain = in.fn != nullptr && !in.guarded;
    run = !plain ? std::uint16_t{0} : static_cast<std::uint16_t>(run + (run < kMost ? 1 : 0));
    in.straight = run;
  }
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

namespace {

/// The words that a lane of ld or st moves, if registers and elements have the same width.
std::uint8_t row_words(const OpInfo& info, const std::vector<Slot>& slots, std::size_t data) {
  const std::int64_t bytes = info.bytes * info.vec;
  if ((info.bytes != 4 && info.bytes != 8) || bytes > 16) return 0;
  const Class want = info.bytes == 4 ? Class::b32 : Class::b64;
  for (unsigned i = 0; i < static_cast<unsigned>(info.vec); ++i) {
    if (slots.at(info.start[data] + i).cls != want) return 0;
  }
  return static_cast<std::uint8_t>(bytes / 4);
}

}  // namespace

void FunctionDecoder::decode_effect() {
  OpInfo& info = code_.infos.emplace_back();
  read_modifiers(instr_->op, info);
  std::vector<Slot> slots;
  int index = 0;
  std::optional<ptx::LabelId> table;
  for (const auto& o : instr_->operands) {
    if (o.kind == OperandKind::label) table = o.id;
    flatten(o, index++, info, slots);
  }
  for (Slot& s : slots) {
    if (s.cls == Class::none) fail("'" + std::string(text_) + "' has an operand without a value");
  }
  const ptx::Effect effect = instr_->op.row().effect;
  const std::uint8_t words = effect == ptx::Effect::load    ? row_words(info, slots, 0)
                             : effect == ptx::Effect::store ? row_words(info, slots, 1)
                                                            : std::uint8_t{0};
  Handler handler = handler_of(effect);
  if (effect == ptx::Effect::load && info.space == Space::param) handler = exec_load_param;
  Inst& in = emit(handler, std::move(slots));
  in.info = &info;
  in.row_words = words;
  guard(in);
  if (effect == ptx::Effect::branch_indexed && table) table_fixups_.push_back({&info, *table});
}

void FunctionDecoder::decode_branch() {
  const auto& ops = instr_->operands;
  if (ops.size() != 1 || ops[0].kind != OperandKind::label) fail("bra needs a label");
  fixups_.push_back({code_.insts.size(), ops[0].id});
  guard(emit(exec_branch, {}));
}

void FunctionDecoder::decode_call() {
  OpInfo& info = code_.infos.emplace_back();
  info.opcode = &instr_->op;
  std::vector<Slot> slots;
  bool seen_target = false;
  for (const auto& o : instr_->operands) {
    if (o.kind == OperandKind::list) {
      auto& list = seen_target ? info.arguments : info.results;
      for (const auto& e : o.elems)
        list.push_back(argument(e));
    } else if (!seen_target && o.kind == OperandKind::symbol) {
      seen_target = true;
      info.function = function_number(code_, code_.module.symbols.at(o.id));
      if (info.function == kNoFunction) {
        fail("call of '" + code_.module.symbols[o.id] +
             "', which has no body in this module; include_ptx adds one");
      }
      fc_.calls.push_back(info.function);
    } else if (!seen_target && o.kind == OperandKind::reg) {
      seen_target = true;
      info.function = kNoFunction;
      fc_.calls_unknown = true;
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

void decode_function(Code& code, FunctionCode& function) { FunctionDecoder(code, function).run(); }

}  // namespace tilewright::emu::detail
