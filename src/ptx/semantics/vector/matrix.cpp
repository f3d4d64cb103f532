// SPDX-License-Identifier: Apache-2.0
// Matrix products of every type.
#include "ptx/semantics/matrix.h"

#include "ptx/semantics/vector/lanes.h"
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

}  // namespace

MatrixTables matrix_tables() {
  return {multiply<float>, multiply<double>, multiply_integers<false>, multiply_integers<true>};
}

}  // namespace tilewright::ptx::semantics::TW_ISA
