// SPDX-License-Identifier: Apache-2.0
// Loops over the 32 lanes of a warp; compiled once per instruction-set level, in a namespace of its
// own.
#pragma once

#include "ptx/semantics/spec.h"

#ifndef TW_ISA  // set by cmake/vector.cmake: v2, v3, v4 or generic
#define TW_ISA generic
#endif
#ifdef __clang__
#define TW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TW_INDEPENDENT _Pragma("GCC ivdep")
#endif

/// Arithmetic of one lane: a call in the loop would keep it from becoming vector code.
#define TW_LANE [[gnu::always_inline]] inline

// Nothing here may be an inline function of the standard library: the linker keeps one copy of
// those, which could be the one compiled for a machine that this is not.
namespace tilewright::ptx::semantics::TW_ISA {

constexpr int kLanes = 32;
constexpr std::uint32_t kAllLanes = 0xffffffffu;

using u8 = std::uint8_t;
using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s8 = std::int8_t;
using s16 = std::int16_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

template <class T>
struct StoreOf {
  using type = u32;
};
template <>
struct StoreOf<u64> {
  using type = u64;
};
template <>
struct StoreOf<s64> {
  using type = u64;
};
template <>
struct StoreOf<double> {
  using type = u64;
};
/// The array element that holds a T.
template <class T>
using Store = typename StoreOf<T>::type;

template <class T>
TW_LANE T get(Store<T> bits) {
  if constexpr (sizeof(T) == sizeof(Store<T>)) {
    return __builtin_bit_cast(T, bits);
  } else {
    return static_cast<T>(bits);
  }
}
/// Narrow signed values are stored sign-extended, unsigned ones zero-extended.
template <class T>
TW_LANE Store<T> put(T value) {
  if constexpr (sizeof(T) == sizeof(Store<T>)) {
    return __builtin_bit_cast(Store<T>, value);
  } else {
    return static_cast<u32>(static_cast<s32>(value));
  }
}

template <class T>
inline const Store<T>* source(const LaneArgs& args, unsigned i) {
  return static_cast<const Store<T>*>(__builtin_assume_aligned(args.src[i], 128));
}
template <class T>
inline Store<T>* target(const LaneArgs& args, unsigned i = 0) {
  return static_cast<Store<T>*>(__builtin_assume_aligned(args.dst[i], 128));
}
inline u32 predicate(const LaneArgs& args, unsigned i) {
  return *static_cast<const u32*>(args.src[i]);
}

alignas(128) constexpr u32 kBit[kLanes] = {
    1u << 0,  1u << 1,  1u << 2,  1u << 3,  1u << 4,  1u << 5,  1u << 6,  1u << 7,
    1u << 8,  1u << 9,  1u << 10, 1u << 11, 1u << 12, 1u << 13, 1u << 14, 1u << 15,
    1u << 16, 1u << 17, 1u << 18, 1u << 19, 1u << 20, 1u << 21, 1u << 22, 1u << 23,
    1u << 24, 1u << 25, 1u << 26, 1u << 27, 1u << 28, 1u << 29, 1u << 30, 1u << 31};

/// Copies the lanes in `mask`.
inline void keep(u32* to, const u32* from, u32 mask) {
  TW_INDEPENDENT
  for (int i = 0; i < kLanes; ++i)
    to[i] = (mask & kBit[i]) != 0 ? from[i] : to[i];
}
inline void keep(u64* to, const u64* from, u32 mask) {
  TW_INDEPENDENT
  for (int i = 0; i < kLanes; ++i)
    to[i] = (mask & kBit[i]) != 0 ? from[i] : to[i];
}
inline void keep_predicate(const LaneArgs& args, unsigned i, u32 value) {
  u32* to = static_cast<u32*>(args.dst[i]);
  if (to != nullptr) *to = (*to & ~args.mask) | (value & args.mask);
}

/// Runs `whole`, which computes all lanes of its one result, for the lanes in the mask only.
template <class S>
[[gnu::noinline]] void masked(const LaneArgs& args, LaneFn whole) {
  alignas(128) S spare[kLanes];
  LaneArgs inner = args;
  inner.dst[0] = spare;
  inner.mask = kAllLanes;
  whole(inner);
  keep(static_cast<S*>(args.dst[0]), spare, args.mask);
}

/// F::apply(a) -> D for each lane; likewise for two and three sources.
template <class F, class D, class A>
void map1(const LaneArgs& args) {
  if (args.mask != kAllLanes) return masked<Store<D>>(args, map1<F, D, A>);
  const Store<A>* a = source<A>(args, 0);
  Store<D>* d = target<D>(args);
  TW_INDEPENDENT
  for (int i = 0; i < kLanes; ++i)
    d[i] = put<D>(F::apply(get<A>(a[i])));
}
template <class F, class D, class A, class B>
void map2(const LaneArgs& args) {
  if (args.mask != kAllLanes) return masked<Store<D>>(args, map2<F, D, A, B>);
  const Store<A>* a = source<A>(args, 0);
  const Store<B>* b = source<B>(args, 1);
  Store<D>* d = target<D>(args);
  TW_INDEPENDENT
  for (int i = 0; i < kLanes; ++i)
    d[i] = put<D>(F::apply(get<A>(a[i]), get<B>(b[i])));
}
template <class F, class D, class A, class B, class C>
void map3(const LaneArgs& args) {
  if (args.mask != kAllLanes) return masked<Store<D>>(args, map3<F, D, A, B, C>);
  const Store<A>* a = source<A>(args, 0);
  const Store<B>* b = source<B>(args, 1);
  const Store<C>* c = source<C>(args, 2);
  Store<D>* d = target<D>(args);
  TW_INDEPENDENT
  for (int i = 0; i < kLanes; ++i) {
    d[i] = put<D>(F::apply(get<A>(a[i]), get<B>(b[i]), get<C>(c[i])));
  }
}

LaneFn find_integer(const Spec& spec);
LaneFn find_bits(const Spec& spec);
LaneFn find_fields(const Spec& spec);
LaneFn find_carry(const Spec& spec);
LaneFn find_compare(const Spec& spec);
LaneFn find_float(const Spec& spec);
LaneFn find_float_pair(const Spec& spec);
LaneFn find_half(const Spec& spec);
LaneFn find_convert(const Spec& spec);
LaneFn find_approximate(const Spec& spec);
LaneFn find_pack(Type whole, int parts);
LaneFn find_unpack(Type whole, int parts);

}  // namespace tilewright::ptx::semantics::TW_ISA
