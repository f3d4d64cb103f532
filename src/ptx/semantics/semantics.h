// SPDX-License-Identifier: Apache-2.0
// The lane-pure meaning of PTX instructions: one function computes the 32 lanes of a warp.
#pragma once

#include "tilewright/form.h"

#include <array>
#include <cstdint>
#include <string_view>

namespace tilewright::ptx::semantics {

/// How a register's 32 lanes lie in memory, 128-byte aligned: `b32` std::uint32_t[32] (registers of
/// up to 32 bits), `b64` std::uint64_t[32], `pred` one std::uint32_t, bit i for lane i.
/// Bits of a lane above a narrower register's width are unspecified: every reader ignores them.
enum class Lanes : std::uint8_t { none, b32, b64, pred };

/// The operands of one execution, destinations and sources each in textual order. An immediate is
/// 32 equal lanes. A negated predicate is passed as its complement. A destination may be the same
/// array as a source, not overlap one partly. Only lanes in `mask` of destinations and carry are
/// written.
struct LaneArgs {
  std::array<void*, 4> dst{};  ///< setp p|q: {p, q}; a null one after the first is not written
  std::array<const void*, 5> src{};
  std::uint32_t* carry =
      nullptr;             ///< the flag CC.CF of each lane: .cc writes it, addc subc madc read it
  std::uint32_t mask = 0;  ///< active lanes
};
using LaneFn = void (*)(const LaneArgs&);

struct Meaning {
  LaneFn fn = nullptr;
  std::array<Lanes, 2> dst{};  ///< the second: q of setp p|q, the predicate of lop3.BoolOp
  std::array<Lanes, 5> src{};  ///< optional last operands (setp's c) are `none` where absent
  bool reads_carry = false;
  bool writes_carry = false;
  /// Empty where the result is the exact one; else the manual's error bound: this host's value is
  /// the double-precision one rounded to nearest, and a GPU's may differ from it by the bound.
  std::string_view accuracy;

  explicit operator bool() const { return fn != nullptr; }
};

/// The meaning of a full opcode such as "fma.rn.ftz.f32"; false for one without a lane-pure
/// meaning. Slow: for decoding, not for executing. Operand sizes are those of the opcode's types:
/// where cvt has a wider register than its type, adapt with cvt.u32.u64 before, or cvt.s64.s32 /
/// cvt.u64.u32 after (results of 8 and 16 bits are already extended to 32 by their type's sign).
Meaning resolve(std::string_view opcode);
Meaning resolve(const Opcode& opcode);

/// mov.TYPE d, {a, b, ..}: 2 or 4 equal pieces joined to b32 or b64, the first in the low bits.
Meaning resolve_pack(Type whole, int parts);
/// mov.TYPE {a, b, ..}, s: a null destination is `_`.
Meaning resolve_unpack(Type whole, int parts);

/// Instruction-set levels of the vector code; the best one that this machine has is used.
enum class Isa : std::uint8_t { generic, x86_64_v2 = generic, x86_64_v3, x86_64_v4 };
Isa best_isa();
/// As above, at a given level. Pre: `isa` <= best_isa(). Tests compare the levels.
Meaning resolve(std::string_view opcode, Isa isa);

}  // namespace tilewright::ptx::semantics
