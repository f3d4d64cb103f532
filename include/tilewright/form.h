// SPDX-License-Identifier: Apache-2.0
// The instruction table: one row a form (opcode plus modifier pattern), and opcodes resolved to it.
#pragma once

#include "tilewright/target.h"
#include "tilewright/type.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tilewright::ptx {

/// One modifier word of an opcode (`rn`, `ftz`, `shared::cta`, `v4`, `f32`): an index into the
/// table's words; 0 is "absent".
struct Mod {
  std::uint16_t id = 0;
  friend bool operator==(Mod, Mod) = default;
};
std::string_view name(Mod mod);
/// The word so spelled, without the dot; id 0 for a word that no form uses.
Mod mod(std::string_view word);
/// The type that a word names, or Type::none.
Type type_of(Mod mod);

/// What executing a form does besides computing lane by lane. `lane` forms have their meaning in
/// ptx/semantics; the emulator gives every other one (its switch has no default).
enum class Effect : std::uint8_t {
  lane,
  load,
  store,
  prefetch,
  atomic,
  reduction,
  vector_atomic,
  branch,
  branch_indexed,
  call,
  ret,
  exit,
  trap,
  brkpt,
  barrier,
  barrier_warp,
  barrier_cluster,
  fence,
  shuffle,
  vote,
  match,
  redux,
  elect,
  activemask,
  nanosleep,
  special_register,
  address_of,
  convert_address,
  is_space,
  map_address,
  stack,
  griddepcontrol,
  setmaxnreg,
  cp_async,
  cp_async_group,
  cp_async_mbarrier,
  mbarrier,
  bulk_copy,
  bulk_reduce,
  bulk_group,
  tensor_copy,
  tensor_reduce,
  tensor_prefetch,
  tensormap,
  store_async,
  reduction_async,
  ldmatrix,
  stmatrix,
  movmatrix,
  mma,
  wmma,
  wgmma,
  wgmma_sync,
  multimem,
  none,  ///< assembled, never executed here: listed in the docs as not supported by the emulator
};

/// A target requirement of a form: on any of the listed targets from that ISA version on.
struct Requires {
  Version version;
  std::string_view targets;  ///< "sm_80+" or "90a,100f,103a,110a,120f", as ptx_isa_probe.txt has it
};

/// One row. `modifiers` is a pattern of slots, e.g. ".{rn,rz,rm,rp}? .ftz? .sat? .f32";
/// `operands` their roles and types, e.g. "d, a, b, c". docs/ptx-table.md describes both languages.
struct Form {
  std::string_view opcode;
  std::string_view modifiers;
  std::string_view operands;
  std::array<Requires, 2>
      requires_;  ///< the second may be empty: an alternative (fp8: 8.1 on sm_89, 7.8 on sm_90)
  Effect effect = Effect::lane;
};
std::span<const Form> forms();

constexpr int kMaxSlots = 14;  // wmma.mma has the most modifier slots

/// A full opcode: its row and the word chosen in each slot of the row's pattern.
struct Opcode {
  std::uint16_t form = 0;
  std::array<Mod, kMaxSlots> slots{};

  const Form& row() const { return forms()[form]; }
  bool has(Mod word) const;
  bool has(std::string_view word) const;  ///< slower: looks the word up
  /// The i-th modifier that names a type (`cvt.rn.f16.f32`: 0 is f16, 1 is f32), or Type::none.
  Type type(int i = 0) const;
  friend bool operator==(const Opcode&, const Opcode&) = default;
};
/// "fma.rn.f32"
std::string to_string(const Opcode& opcode);
/// The first row that the text "fma.rn.f32" matches (a later one may differ in operands only).
/// Throws Error(user) naming the unknown opcode, or the modifier no row of it has.
Opcode parse_opcode(std::string_view text, SourceLoc at = SourceLoc::here());
/// parse_opcode with a process-wide memory of texts seen: what emitters use.
const Opcode& opcode(std::string_view text);

}  // namespace tilewright::ptx
