// SPDX-License-Identifier: Apache-2.0
// Decodes one function: the state that decoding its statements, operands and lane-pure opcodes
// share.
#pragma once

#include "emu/bit_fields.h"
#include "emu/decode.h"
#include "emu/handlers.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace tilewright::emu::detail {

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
  std::unordered_set<const ptx::Instr*> bit_field_masks_;
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
  void emit_lane(std::vector<Slot> slots, ptx::semantics::LaneFn fn);
  void decode_move_vector();
  void decode_lane_with(const ptx::semantics::Meaning& meaning,
                        const std::vector<const ptx::Operand*>& dsts,
                        const std::vector<const ptx::Operand*>& srcs);
  void decode_effect();
  void flatten(const ptx::Operand& o, int index, OpInfo& info, std::vector<Slot>& out);
  void decode_branch();
  void decode_call();
  Argument argument(const ptx::Operand& o);
  void resolve_labels();
  void find_straight_runs(std::size_t first);
};

}  // namespace tilewright::emu::detail
