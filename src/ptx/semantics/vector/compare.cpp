// SPDX-License-Identifier: Apache-2.0
// set and setp for integers, f32 and f64.
#include "ptx/semantics/vector/compare.h"

namespace tilewright::ptx::semantics::TW_ISA {

LaneFn find_compare(const Spec& spec) {
  const Type type = spec.op == LaneOp::setp ? spec.types[0] : spec.types[1];
  if (!spec.only(kFtz)) return nullptr;
  switch (type) {
    case Type::b16:
    case Type::u16:
      return compare<Plain<u16>, u16>(spec);
    case Type::b32:
    case Type::u32:
      return compare<Plain<u32>, u32>(spec);
    case Type::b64:
    case Type::u64:
      return compare<Plain<u64>, u64>(spec);
    case Type::s16:
      return compare<Plain<s16>, s16>(spec);
    case Type::s32:
      return compare<Plain<s32>, s32>(spec);
    case Type::s64:
      return compare<Plain<s64>, s64>(spec);
    case Type::f32:
      return spec.has(kFtz) ? compare<Flushed, float>(spec) : compare<Plain<float>, float>(spec);
    case Type::f64:
      return spec.has(kFtz) ? nullptr : compare<Plain<double>, double>(spec);
    default:
      return find_compare_half(spec, type);
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
