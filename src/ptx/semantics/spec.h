// SPDX-License-Identifier: Apache-2.0
// A full opcode taken apart into enumerators: what the tables of lane functions are searched by.
#pragma once

#include "ptx/semantics/semantics.h"

namespace tilewright::ptx::semantics {

enum class LaneOp : std::uint8_t {
  none,
  add,
  sub,
  mul,
  mad,
  mul24,
  mad24,
  sad,
  div,
  rem,
  abs,
  neg,
  min,
  max,
  fma,
  addc,
  subc,
  madc,
  and_,
  or_,
  xor_,
  not_,
  cnot,
  lop3,
  shl,
  shr,
  shf,
  bfe,
  bfi,
  bfind,
  bmsk,
  szext,
  brev,
  popc,
  clz,
  prmt,
  dp4a,
  dp2a,
  set,
  setp,
  selp,
  slct,
  mov,
  cvt,
  copysign,
  testp,
  rcp,
  sqrt,
  rsqrt,
  sin,
  cos,
  lg2,
  ex2,
  tanh,
  fns,
  createpolicy,
};

enum class Rounding : std::uint8_t { none, rn, rz, rm, rp, rna, rni, rzi, rmi, rpi };

enum class Compare : std::uint8_t {
  none,
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  lo,
  ls,
  hi,
  hs,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan,
};

enum class Bool : std::uint8_t { none, and_, or_, xor_ };

/// prmt's modes, shf's direction and clamping, testp's classes: one word an opcode.
enum class Mode : std::uint8_t {
  none,
  f4e,
  b4e,
  rc8,
  ecl,
  ecr,
  rc16,
  l_clamp,
  l_wrap,
  r_clamp,
  r_wrap,
  clamp,
  wrap,
  finite,
  infinite,
  number,
  notanumber,
  normal,
  subnormal,
};

enum Flag : std::uint32_t {
  kFtz = 1,
  kSat = 2,
  kSatfinite = 4,
  kRelu = 8,
  kApprox = 16,
  kFull = 32,
  kNan = 64,
  kXorsignAbs = 128,
  kLo = 256,
  kHi = 512,
  kWide = 1024,
  kCc = 2048,
  kShiftamt = 4096,
  kPack = 8192,
  kAbs = 16384,
  kOob = 32768,
};

struct Spec {
  LaneOp op = LaneOp::none;
  Rounding rounding = Rounding::none;
  Compare compare = Compare::none;
  Bool combine = Bool::none;
  Mode mode = Mode::none;
  std::uint32_t flags = 0;
  Type types[3] = {Type::none, Type::none, Type::none};
  int type_count = 0;
  int sources = 0;    ///< operands read, where the opcode does not tell: 3 for max.f32 d, a, b, c
  int pack_bits = 0;  ///< cvt.pack's u8 s8 u4 s4 u2 s2: the width, negative if signed

  // Always inlined: an emitted copy could be compiled for another machine (see vector/lanes.h).
  /// No other flag than those allowed is set.
  [[gnu::always_inline]] bool only(std::uint32_t allowed) const { return (flags & ~allowed) == 0; }
  [[gnu::always_inline]] bool has(std::uint32_t flag) const { return (flags & flag) != 0; }
};

/// op none where a word is unknown to the lane-pure meanings.
Spec parse_spec(std::string_view opcode);
Meaning resolve(const Spec& spec, Isa isa);
/// Sets operand classes, carry use and accuracy of a meaning whose function was found.
void describe(const Spec& spec, Meaning& meaning);
/// The manual's error bound of an approximate instruction, empty for an exact one.
std::string_view accuracy_of(const Spec& spec);

}  // namespace tilewright::ptx::semantics
