// SPDX-License-Identifier: Apache-2.0
// A decoded module: dense instruction records with handlers, operand slots, and frame layouts.
#pragma once

#include "emu/shared_layout.h"
#include "emu/word.h"
#include "ptx/semantics/semantics.h"
#include "tilewright/emulator.h"
#include "tilewright/module.h"

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::emu::detail {

struct Exec;
struct Inst;

/// What the interpreter does after an instruction.
enum class Flow : std::uint8_t {
  next,  ///< go on behind it
  jump,  ///< the handler set the split's pc
  stop,  ///< the split waits, ended, or was divided: choose again
};
using Handler = Flow (*)(Exec&, const Inst&);

enum class Class : std::uint8_t { none, b32, b64, pred, b128, sink };

/// An operand: 32 lanes in the frame (`value` is a byte offset) or constant (`value` an address).
struct Slot {
  std::uint64_t value = 0;
  std::uint64_t defined = 0;  ///< as `value`, of the mask of lanes that hold a defined value
  Class cls = Class::none;
  bool in_frame = false;
  bool negated = false;
};

enum class Space : std::uint8_t { generic, global, shared, shared_cluster, local, param, const_ };
enum class Order : std::uint8_t { weak, volatile_, relaxed, acquire, release, acq_rel, sc };
enum class Scope : std::uint8_t { none, cta, cluster, gpu, sys };
enum class AtomOp : std::uint8_t { none, add, inc, dec, min, max, and_, or_, xor_, exch, cas };

constexpr int kMaxOperands = 12;

/// A call's argument or result: a variable in the frame's local memory, or a register or constant.
struct Argument {
  bool variable = false;
  std::uint32_t local = 0;  ///< offset in the frame's local memory
  std::uint32_t bytes = 0;
  Slot slot;
};

/// What the handlers of memory and synchronisation effects read; fields mean what PTX words say.
struct OpInfo : Words {
  Space space = Space::generic;
  Type type = Type::none;
  std::int64_t bytes = 0;  ///< of one element, one lane
  int vec = 1;
  Order order = Order::weak;
  Scope scope = Scope::none;
  AtomOp atom = AtomOp::none;
  std::array<std::uint8_t, kMaxOperands> start{};   ///< first slot of each textual operand
  std::array<std::uint8_t, kMaxOperands> count{};   ///< its number of slots (vectors, coordinates)
  std::array<std::int64_t, kMaxOperands> offset{};  ///< added to an address operand
  int operands = 0;
  std::uint32_t flags = 0;  ///< a meaning per effect
  std::int64_t number = 0;  ///< a meaning per effect
  const ptx::Opcode* opcode = nullptr;
  std::uint32_t function = 0;                ///< call target; kNoFunction for indirect
  std::vector<std::uint32_t> targets;        ///< brx, indirect calls
  std::vector<Argument> arguments, results;  ///< of a call
};

struct Inst {
  Handler run = nullptr;
  ptx::semantics::LaneFn fn = nullptr;
  const Slot* slot = nullptr;  ///< destinations, then sources
  const OpInfo* info = nullptr;
  std::uint32_t guard = 0;  ///< frame offset of the predicate
  std::uint32_t guard_defined = 0;
  std::uint32_t target = 0;  ///< branch: pc
  std::uint8_t dsts = 0, srcs = 0;
  std::uint16_t slots = 0;  ///< number of all operand slots
  bool guarded = false, guard_negated = false;
  bool backward = false;  ///< a branch to an earlier pc
  bool carry = false;
  std::uint8_t row_words = 0;  ///< ld and st whose lanes move so many whole words; else 0
  std::uint16_t straight = 0;  ///< from here on, so many are lane-pure and unguarded

  /// Slot i of an operand: of a vector its element, of an address its base, then its offset.
  const Slot& slot_at(int operand, int i) const {
    return slot[info->start[static_cast<std::size_t>(operand)] + static_cast<unsigned>(i)];
  }
};

/// Where an instruction came from.
struct Origin {
  std::uint32_t line = 0;
  ptx::SiteId site = 0;
  std::string_view text;  ///< the full opcode
};

/// A hidden register filled when a frame is made.
enum class Hidden : std::uint8_t {
  special,        ///< `index`: special register, `component`
  shared_symbol,  ///< `index`: the variable, `value`: offset in it
  dynamic_shared,
  local_symbol,  ///< `value`: offset in the frame's local memory
};
struct HiddenRegister {
  Hidden kind;
  std::uint32_t index = 0;
  int component = -1;
  std::int64_t value = 0;
  Slot slot;
};

struct FunctionCode {
  std::string name;
  const ptx::Function* source = nullptr;
  std::uint32_t entry_pc = 0, end_pc = 0;
  std::uint32_t frame_bytes = 0;             ///< multiple of 128
  std::vector<std::uint32_t> defined_lines;  ///< offsets of 128-byte lines of defined masks
  std::uint32_t local_bytes = 0;             ///< .local and .param variables, multiple of 16
  std::uint32_t carry_offset = 0;
  std::vector<std::uint32_t> shared_used;  ///< variables in shared memory that it names
  std::vector<std::uint32_t> calls;        ///< functions that it names
  bool calls_unknown = false;              ///< through a register
  SharedLayout shared;                     ///< of an entry
  std::vector<HiddenRegister> hidden;
  std::vector<ParamSlot> params;                             ///< entries: in the parameter block
  std::vector<std::uint32_t> param_offsets, return_offsets;  ///< functions: in local memory
  std::int64_t param_bytes = 0;
};
constexpr std::uint32_t kNoFunction = 0xffffffff;
constexpr std::uint32_t kVprintf = 0xfffffffe;
constexpr std::uint32_t kAssertfail = 0xfffffffd;
constexpr std::uint32_t kMalloc = 0xfffffffc;
constexpr std::uint32_t kFree = 0xfffffffb;

struct GlobalVariable {
  std::string name;
  std::uint64_t address = 0;
  std::int64_t bytes = 0;
};

struct Code {
  ptx::Module module;
  std::vector<Inst> insts;
  std::vector<Origin> origins;
  std::vector<FunctionCode> functions;
  std::vector<GlobalVariable> globals;
  std::map<std::string, std::uint32_t, std::less<>> function_index;
  std::vector<SharedVariable> shared;
  std::deque<std::vector<Slot>> slots;
  std::deque<OpInfo> infos;
  std::deque<std::string> texts;
  struct alignas(128) Lanes {
    std::array<std::uint64_t, 64> bytes;
  };
  std::deque<Lanes> constants;
  bool has_wgmma = false;
  int device = 0;
};

/// Decodes for a target; `device` allocates the global variables.
std::unique_ptr<Code> decode(const ptx::Module& module, Device& device);

}  // namespace tilewright::emu::detail
