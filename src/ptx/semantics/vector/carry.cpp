// SPDX-License-Identifier: Apache-2.0
// Additions, subtractions and multiply-adds that read or write the carry flag CC.CF.
#include "ptx/semantics/vector/lanes.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;
template <class T>
struct Wider;
template <>
struct Wider<u32> {
  using type = u64;
};
template <>
struct Wider<s32> {
  using type = s64;
};
template <>
struct Wider<u64> {
  using type = u128;
};
template <>
struct Wider<s64> {
  using type = s128;
};

TW_LANE void keep_carry(const LaneArgs& args, u32 value) {
  *args.carry = (*args.carry & ~args.mask) | (value & args.mask);
}

/// d = a + b + carry, or a + ~b + carry: the flag behind a subtraction is set where nothing was
/// borrowed, as hardware has it; code that reads it with addc relies on that.
template <class T, bool Subtracts, bool Reads, bool Writes>
void add_carry(const LaneArgs& args) {
  using Wide = typename Wider<T>::type;
  const T* a = source<T>(args, 0);
  const T* b = source<T>(args, 1);
  const u32 in = Reads ? *args.carry : 0;
  alignas(128) Store<T> out[kLanes];
  u32 carry = 0;
  for (int i = 0; i < kLanes; ++i) {
    const Wide extra = Reads ? ((in & kBit[i]) != 0 ? 1 : 0) : (Subtracts ? 1 : 0);
    const Wide sum = Wide{a[i]} + static_cast<T>(Subtracts ? ~b[i] : b[i]) + extra;
    carry |= ((sum >> (8 * sizeof(T))) & 1) != 0 ? kBit[i] : 0u;
    out[i] = static_cast<T>(sum);
  }
  keep(target<T>(args), out, args.mask);
  if (Writes) keep_carry(args, carry);
}

/// d = low or high half of a * b, plus c, plus carry.
template <class T, bool High, bool Reads, bool Writes>
void multiply_add_carry(const LaneArgs& args) {
  using U = Store<T>;
  using Wide = typename Wider<T>::type;
  const U* a = source<T>(args, 0);
  const U* b = source<T>(args, 1);
  const U* c = source<T>(args, 2);
  const u32 in = Reads ? *args.carry : 0;
  alignas(128) U out[kLanes];
  u32 carry = 0;
  for (int i = 0; i < kLanes; ++i) {
    const Wide product = static_cast<Wide>(get<T>(a[i])) * static_cast<Wide>(get<T>(b[i]));
    const U half = static_cast<U>(High ? product >> (8 * sizeof(T)) : product);
    const U extra = Reads && (in & kBit[i]) != 0 ? 1 : 0;
    const U partial = half + c[i];
    const U sum = partial + extra;
    carry |= (partial < half) || (sum < partial) ? kBit[i] : 0u;
    out[i] = sum;
  }
  keep(target<T>(args), out, args.mask);
  if (Writes) keep_carry(args, carry);
}

template <class T, bool Subtracts>
LaneFn sum(bool reads, bool writes) {
  if (reads)
    return writes ? add_carry<T, Subtracts, true, true> : add_carry<T, Subtracts, true, false>;
  return writes ? add_carry<T, Subtracts, false, true> : nullptr;
}
template <class T, bool High>
LaneFn product(bool reads, bool writes) {
  if (reads) {
    return writes ? multiply_add_carry<T, High, true, true>
                  : multiply_add_carry<T, High, true, false>;
  }
  return writes ? multiply_add_carry<T, High, false, true> : nullptr;
}
template <class T>
LaneFn product(const Spec& spec, bool reads) {
  const bool writes = spec.has(kCc);
  return spec.has(kHi)   ? product<T, true>(reads, writes)
         : spec.has(kLo) ? product<T, false>(reads, writes)
                         : nullptr;
}

}  // namespace

LaneFn find_carry(const Spec& spec) {
  const Type type = spec.types[0];
  if (!spec.only(kCc | kHi | kLo) || spec.type_count != 1) return nullptr;
  const bool wide = type == Type::u64 || type == Type::s64;
  if (!wide && type != Type::u32 && type != Type::s32) return nullptr;
  const bool writes = spec.has(kCc);
  switch (spec.op) {
    case LaneOp::add:
    case LaneOp::addc: {
      const bool reads = spec.op == LaneOp::addc;
      return wide ? sum<u64, false>(reads, writes) : sum<u32, false>(reads, writes);
    }
    case LaneOp::sub:
    case LaneOp::subc: {
      const bool reads = spec.op == LaneOp::subc;
      return wide ? sum<u64, true>(reads, writes) : sum<u32, true>(reads, writes);
    }
    case LaneOp::mad:
    case LaneOp::madc: {
      const bool reads = spec.op == LaneOp::madc;
      return type == Type::u32   ? product<u32>(spec, reads)
             : type == Type::s32 ? product<s32>(spec, reads)
             : type == Type::u64 ? product<u64>(spec, reads)
                                 : product<s64>(spec, reads);
    }
    default:
      return nullptr;
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
