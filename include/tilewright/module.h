// SPDX-License-Identifier: Apache-2.0
// A PTX module in memory: what the language builds, the printer prints and the emulator executes.
#pragma once

#include "tilewright/form.h"
#include "tilewright/target.h"
#include "tilewright/type.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace tilewright::ptx {

/// State spaces of variables. `generic` is the absence of one.
enum class Space : std::uint8_t { generic, reg, const_, global, local, param, shared };

using RegId = std::uint32_t;     ///< index into Function::registers
using LabelId = std::uint32_t;   ///< index into Function::labels
using SymbolId = std::uint32_t;  ///< index into Module::symbols (names; interned once a module)
using SiteId = std::uint32_t;    ///< index into Module::sites; 0 is "unknown"

/// A source position; `parent` is the call site that it was inlined at (0: none).
struct Site {
  std::uint32_t file = 0;  ///< index into Module::files
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  SiteId parent = 0;  ///< an earlier site
};

/// One operand. Trees are shallow: a vector's elements, or a tensor address's coordinates.
struct Operand {
  enum class Kind : std::uint8_t {
    none,
    reg,  ///< `id`: RegId; `negated`: !%p
    imm,  ///< `value`: the bits, sign-extended; `type` f32/f64 for 0f/0d literals, else s64 or u64
    special,  ///< `id`: index into special_registers(); `component` 0..3 for .x .y .z .w, -1 for
              ///< none
    symbol,   ///< `id`: SymbolId (a variable or function); `value`: byte offset added
    label,    ///< `id`: LabelId
    sink,     ///< `_`
    vector,   ///< `elems`
    address_reg,     ///< [%r + value]; `elems` holds a tensor address's coordinate vector, if any
    address_symbol,  ///< [symbol + value]
    address_imm,     ///< [value]
    list,            ///< parenthesised call arguments: `elems`
    pair,            ///< p|q : `elems` of two
  };
  Kind kind = Kind::none;
  bool negated = false;
  std::int8_t component = -1;
  Type type = Type::none;
  std::uint32_t id = 0;
  std::int64_t value = 0;
  std::vector<Operand> elems;

  friend bool operator==(const Operand&, const Operand&) = default;
};

Operand reg(RegId id, bool negated = false);
Operand imm(std::int64_t value);
Operand imm_f32(float value);
Operand imm_f64(double value);
/// Throws Error(user) for a name that is no special register. "%tid.x", "%laneid".
Operand special(std::string_view name);
/// The same, but nothing for an unknown name.
std::optional<Operand> find_special(std::string_view name);
Operand symbol(SymbolId id, std::int64_t offset = 0);
Operand label(LabelId id);
Operand sink();
Operand vector(std::vector<Operand> elems);
Operand list(std::vector<Operand> elems);
Operand pair(Operand first, Operand second);
Operand address(RegId base, std::int64_t offset = 0);
Operand address_symbol(SymbolId base, std::int64_t offset = 0);
Operand address_imm(std::int64_t value);

struct SpecialRegister {
  std::string_view name;  ///< "%tid"
  Type type;              ///< u32 or u64, pred for %is_explicit_cluster
  int components;         ///< 0: scalar; 3: .x .y .z
  Requires requires_;
};
std::span<const SpecialRegister> special_registers();

struct Guard {
  RegId reg = 0;
  bool negated = false;
  friend bool operator==(const Guard&, const Guard&) = default;
};

struct Instr {
  Opcode op;
  std::optional<Guard> guard;
  std::vector<Operand> operands;  ///< in textual order
  SiteId site = 0;                ///< the user's source line
  std::uint32_t line = 0;         ///< line of the PTX text: set by the parser, and by print()
};

struct Label {
  LabelId id = 0;
};
/// `.pragma "nounroll";` and other statements that are kept as text, without the semicolon.
struct Directive {
  std::string text;
};
using Stmt = std::variant<Instr, Label, Directive>;

struct Register {
  std::string name;  ///< "%r1"; unique in the function (the parser renames shadowed ones)
  Type type = Type::b32;
};

/// Bytes of an initialiser, or the address of a symbol at that place.
struct InitAddress {
  std::int64_t at = 0;  ///< byte offset in the variable
  SymbolId symbol = 0;
  std::int64_t offset = 0;
  int width = 8;         ///< bytes
  bool generic = false;  ///< generic(sym)
};
struct Initializer {
  std::vector<std::uint8_t> bytes;
  std::vector<InitAddress> addresses;
};

enum class Linkage : std::uint8_t { internal, visible, extern_, weak, common };

/// A variable of any addressable space, or a parameter.
struct Variable {
  Space space = Space::global;
  Linkage linkage = Linkage::internal;
  Type type = Type::b8;
  int vector = 1;     ///< .v2 .v4
  int alignment = 0;  ///< bytes; 0: natural
  std::string name;
  std::vector<std::int64_t> extents;  ///< empty: scalar; {0}: unsized (extern shared)
  std::optional<Initializer> init;
  std::string
      attributes;  ///< ".ptr .global .align 16" of a parameter, ".attribute(.managed)", verbatim
  std::uint32_t line = 0;
};
std::int64_t size_bytes(const Variable& variable);
int alignment_bytes(const Variable& variable);

/// `.branchtargets`, `.calltargets` or `.callprototype` under a label.
struct BranchTargets {
  LabelId name;
  std::vector<LabelId> targets;
};
struct CallPrototype {
  LabelId name;
  std::vector<Variable> returns, params;
  std::vector<SymbolId> targets;  ///< for .calltargets
  bool noreturn = false;
};

/// `.reqntid` and the other performance directives; 0 is "absent".
struct Tuning {
  std::array<int, 3> reqntid{}, maxntid{}, reqnctapercluster{};
  int maxnreg = 0, minnctapersm = 0, maxclusterrank = 0;
  bool explicitcluster = false, noreturn = false;
};

struct Function {
  std::string name;
  bool entry = false;
  Linkage linkage = Linkage::visible;
  bool declaration = false;  ///< no body
  std::vector<Variable> returns, params;
  Tuning tuning;
  std::vector<Register> registers;
  std::vector<std::string> labels;
  std::vector<Variable> variables;  ///< .shared, .local, .param and others declared in the body
  std::vector<BranchTargets> branch_targets;
  std::vector<CallPrototype> prototypes;
  std::vector<std::string> directives;  ///< before the body, kept as text: `.pragma "...";`
  std::vector<Stmt> body;
  std::uint32_t line = 0;
};

struct Module {
  Version version{};  ///< as parsed; print() writes the lowest that suffices if it is {0, 0}
  Target target{};
  std::string target_options;  ///< ", texmode_independent", verbatim
  int address_size = 64;
  std::vector<std::string> files{""};  ///< 0 is "unknown"
  std::vector<Site> sites{Site{}};
  std::vector<std::string> symbols;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<std::string> directives;  ///< `.alias a, b`, kept as text

  SymbolId symbol_id(std::string_view name);                   ///< interns
  const Function* find_function(std::string_view name) const;  ///< its definition, if there is one
};

enum class LineInfo : std::uint8_t { off, on };

/// The module as PTX text, byte for byte the same for the same module; sets Instr::line.
std::string print(Module& module, LineInfo line_info = LineInfo::off);
/// Reads PTX text. `file` names it in errors, which carry the line:
/// "k.ptx:41: error: unknown instruction 'foo.bar'; ...". Never crashes, whatever the text.
Module parse(std::string_view text, std::string_view file = "ptx");
/// The lowest ISA version that the module's instructions, registers and target need.
Version required_version(const Module& module);
/// Throws Error(unsupported) at the first instruction the module's target or version does not have:
/// "wgmma.fence.sync.aligned needs one of 90a (PTX 8.0); the module's target is sm_90".
void check_capabilities(const Module& module);
/// Throws Error(user) unless operand kinds, widths and types fit the instruction's row.
void check_instruction(const Module& module, const Function& function, const Instr& instr,
                       SourceLoc at = SourceLoc::here());

}  // namespace tilewright::ptx
