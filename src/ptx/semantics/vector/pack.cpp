// SPDX-License-Identifier: Apache-2.0
// Vector operands of mov: pieces joined to a register and taken apart.
#include "ptx/semantics/vector/lanes.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

/// D from N pieces of type P, the first in the low bits.
template <class D, class P, unsigned N>
void pack(const LaneArgs& args) {
  if (args.mask != kAllLanes) return masked<Store<D>>(args, pack<D, P, N>);
  Store<D>* out = target<D>(args);
  TW_INDEPENDENT
  for (int i = 0; i < kLanes; ++i) {
    Store<D> whole = 0;
    for (unsigned j = 0; j < N; ++j) {
      const Store<D> piece = static_cast<P>(static_cast<const u32*>(args.src[j])[i]);
      whole |= static_cast<Store<D>>(piece << (j * 8 * sizeof(P)));
    }
    out[i] = whole;
  }
}
template <class D, class P, unsigned N>
void unpack(const LaneArgs& args) {
  alignas(128) u32 piece[N][kLanes];  // before any is written: the source may be a destination too
  const Store<D>* s = source<D>(args, 0);
  for (unsigned j = 0; j < N; ++j) {
    for (int i = 0; i < kLanes; ++i)
      piece[j][i] = static_cast<P>(s[i] >> (j * 8 * sizeof(P)));
  }
  for (unsigned j = 0; j < N; ++j) {
    if (args.dst[j] != nullptr) keep(target<u32>(args, j), piece[j], args.mask);
  }
}

}  // namespace

LaneFn find_pack(Type whole, int parts) {
  switch (bits(whole) * 10 + parts) {
    case 322:
      return pack<u32, u16, 2>;
    case 324:
      return pack<u32, u8, 4>;
    case 642:
      return pack<u64, u32, 2>;
    case 644:
      return pack<u64, u16, 4>;
    case 162:
      return pack<u16, u8, 2>;
    default:
      return nullptr;
  }
}
LaneFn find_unpack(Type whole, int parts) {
  switch (bits(whole) * 10 + parts) {
    case 322:
      return unpack<u32, u16, 2>;
    case 324:
      return unpack<u32, u8, 4>;
    case 642:
      return unpack<u64, u32, 2>;
    case 644:
      return unpack<u64, u16, 4>;
    case 162:
      return unpack<u16, u8, 2>;
    default:
      return nullptr;
  }
}

}  // namespace tilewright::ptx::semantics::TW_ISA
