// SPDX-License-Identifier: Apache-2.0
// Finds the function of an opcode at the instruction-set level of this machine.
#include "ptx/semantics/spec.h"

namespace tilewright::ptx::semantics {

// The tables that cmake/vector.cmake compiles once a level.
#define TW_DECLARE_TABLES(LEVEL)             \
  namespace LEVEL {                          \
  LaneFn find_lane_fn(const Spec& spec);     \
  LaneFn find_pack(Type whole, int parts);   \
  LaneFn find_unpack(Type whole, int parts); \
  }
#ifdef TW_ONE_LEVEL
TW_DECLARE_TABLES(TW_ONE_LEVEL)
#else
TW_DECLARE_TABLES(v2)
TW_DECLARE_TABLES(v3)
TW_DECLARE_TABLES(v4)
#endif
#undef TW_DECLARE_TABLES

namespace {

struct Tables {
  LaneFn (*find)(const Spec&);
  LaneFn (*pack)(Type, int);
  LaneFn (*unpack)(Type, int);
};

#ifdef TW_ONE_LEVEL
Tables tables(Isa) {
  return {TW_ONE_LEVEL::find_lane_fn, TW_ONE_LEVEL::find_pack, TW_ONE_LEVEL::find_unpack};
}
Isa detect() { return Isa::generic; }
#else
Tables tables(Isa isa) {
  switch (isa) {
    case Isa::generic:
      return {v2::find_lane_fn, v2::find_pack, v2::find_unpack};
    case Isa::x86_64_v3:
      return {v3::find_lane_fn, v3::find_pack, v3::find_unpack};
    case Isa::x86_64_v4:
      return {v4::find_lane_fn, v4::find_pack, v4::find_unpack};
  }
  return {};
}
Isa detect() {
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                  __builtin_cpu_supports("avx512cd");
  return v4 ? Isa::x86_64_v4 : v3 ? Isa::x86_64_v3 : Isa::generic;
}
#endif

}  // namespace

Isa best_isa() {
  static const Isa isa = detect();
  return isa;
}

Meaning resolve(const Spec& spec, Isa isa) {
  Meaning meaning;
  if (spec.op == LaneOp::none) return meaning;
  meaning.fn = tables(isa).find(spec);
  if (meaning.fn != nullptr) describe(spec, meaning);
  return meaning;
}

Meaning resolve(std::string_view opcode, Isa isa) { return resolve(parse_spec(opcode), isa); }
Meaning resolve(std::string_view opcode) { return resolve(opcode, best_isa()); }

namespace {
Meaning moved(LaneFn fn, Lanes whole) {
  Meaning meaning;
  meaning.fn = fn;
  meaning.dst[0] = meaning.src[0] = whole;
  return meaning;
}
}  // namespace

Meaning resolve_pack(Type whole, int parts) {
  Meaning meaning = moved(tables(best_isa()).pack(whole, parts), Lanes::b32);
  for (int i = 0; i < parts && i < 5; ++i)
    meaning.src[static_cast<std::size_t>(i)] = Lanes::b32;
  if (bits(whole) == 64) meaning.dst[0] = Lanes::b64;
  return meaning;
}
Meaning resolve_unpack(Type whole, int parts) {
  Meaning meaning = moved(tables(best_isa()).unpack(whole, parts), Lanes::b32);
  if (bits(whole) == 64) meaning.src[0] = Lanes::b64;
  if (parts > 1) meaning.dst[1] = Lanes::b32;
  return meaning;
}

}  // namespace tilewright::ptx::semantics
