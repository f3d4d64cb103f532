// SPDX-License-Identifier: Apache-2.0
// Matrix products and the decoding of their operands.
#include "ptx/semantics/matrix.h"

#include "ptx/semantics/vector/formats.h"
#include "ptx/semantics/vector/matrix_tables.h"

namespace tilewright::ptx::semantics::TW_ISA {
namespace {

TW_LANE float multiply_one(float a, float b, float sum) { return sum + a * b; }
TW_LANE double multiply_one(double a, double b, double sum) { return __builtin_fma(a, b, sum); }

/// One row of d, Columns at a time, so that the sums stay in registers.
template <class T, unsigned Columns>
TW_LANE void multiply_columns(const T* a, const T* b, const T* c, T* d, int k, int n) {
  T sum[Columns];
  for (unsigned j = 0; j < Columns; ++j)
    sum[j] = c[j];
  for (int i = 0; i < k; ++i) {
    const T* row = b + static_cast<s64>(i) * n;
    for (unsigned j = 0; j < Columns; ++j)
      sum[j] = multiply_one(a[i], row[j], sum[j]);
  }
  for (unsigned j = 0; j < Columns; ++j)
    d[j] = sum[j];
}
template <class T>
void multiply(const MatrixExtent& extent, const T* a, const T* b, const T* c, T* d) {
  const int n = extent.n;
  for (int i = 0; i < extent.m; ++i) {
    int j = 0;
    for (; j + 64 <= n; j += 64)
      multiply_columns<T, 64>(a, b + j, c + j, d + j, extent.k, n);
    for (; j + 8 <= n; j += 8)
      multiply_columns<T, 8>(a, b + j, c + j, d + j, extent.k, n);
    for (; j < n; ++j)
      multiply_columns<T, 1>(a, b + j, c + j, d + j, extent.k, n);
    a += extent.k;
    c += n;
    d += n;
  }
}

template <bool Saturates>
void multiply_integers(const MatrixExtent& extent, const s32* a, const s32* b, const s32* c,
                       s32* d) {
  const int n = extent.n;
  for (int i = 0; i < extent.m; ++i) {
    for (int j = 0; j < n; ++j) {
      s64 sum = c[static_cast<s64>(i) * n + j];
      for (int k = 0; k < extent.k; ++k) {
        sum += static_cast<s64>(a[static_cast<s64>(i) * extent.k + k]) *
               b[static_cast<s64>(k) * n + j];
      }
      constexpr s64 kMax = 0x7fffffff;
      if (Saturates) sum = sum > kMax ? kMax : sum < -kMax - 1 ? -kMax - 1 : sum;
      d[static_cast<s64>(i) * n + j] = static_cast<s32>(static_cast<u32>(static_cast<u64>(sum)));
    }
  }
}

template <class F, int Bits>
void decode_packed(const u32* words, int count, float* out) {
  constexpr int kPerWord = 32 / Bits;
  for (int i = 0; i < count; ++i) {
    out[i] = decode<F>(words[i / kPerWord] >> (i % kPerWord * Bits));
  }
}
void decode_floats(const u32* words, int count, float* out) {
  for (int i = 0; i < count; ++i)
    out[i] = as_float(words[i]);
}
/// A tf32 operand's low 13 bits are ignored.
void decode_tf32(const u32* words, int count, float* out) {
  for (int i = 0; i < count; ++i)
    out[i] = as_float(words[i] & 0xffffe000u);
}
template <class T>
void decode_bytes(const u32* words, int count, s32* out) {
  for (int i = 0; i < count; ++i)
    out[i] = static_cast<T>(words[i / 4] >> (i % 4 * 8));
}

DecodeFloats find_decode_floats(Type type) {
  switch (type) {
    case Type::f16:
      return decode_packed<F16, 16>;
    case Type::bf16:
      return decode_packed<Bf16, 16>;
    case Type::tf32:
      return decode_tf32;
    case Type::f32:
      return decode_floats;
    case Type::e4m3:
      return decode_packed<E4m3, 8>;
    case Type::e5m2:
      return decode_packed<E5m2, 8>;
    case Type::e2m3:
      return decode_packed<E2m3, 8>;
    case Type::e3m2:
      return decode_packed<E3m2, 8>;
    case Type::e2m1:
      return decode_packed<E2m1, 8>;
    default:
      return nullptr;
  }
}
DecodeIntegers find_decode_integers(Type type) {
  return type == Type::s8 ? decode_bytes<s8> : type == Type::u8 ? decode_bytes<u8> : nullptr;
}

}  // namespace

MatrixTables matrix_tables() {
  return {multiply<float>,         multiply<double>,   multiply_integers<false>,
          multiply_integers<true>, find_decode_floats, find_decode_integers};
}

}  // namespace tilewright::ptx::semantics::TW_ISA
