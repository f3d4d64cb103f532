// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication by one warp (mma.sync), and the loads and stores of its operands.
#pragma once

#include "tilewright/fragment.h"

namespace tilewright {

/// The matrices of one instruction: A is m x k, B is k x n, C is m x n.
struct MmaShape {
  int m = 16;
  int n = 8;
  int k = 0;
  friend bool operator==(const MmaShape&, const MmaShape&) = default;
};
/// The largest for elements of f16, bf16 (k = 16), tf32 (8), s8, u8, e4m3 and e5m2 (32), and f64
/// (16, sm_90). For f64 there are also m16n8k8 and m16n8k4 (sm_90) and m8n8k4 (sm_80).
MmaShape mma_shape(Type type, SourceLoc at = SourceLoc::here());

// Which elements a lane holds: (lane, index in the fragment) to column-major place in the matrix,
// A by m + 16 k, B by n + 8 k, C by m + 16 n (8 for shapes of 8 rows). CuTe's thread-value layouts.
Layout mma_layout_a(Type type, MmaShape shape, SourceLoc at = SourceLoc::here());
Layout mma_layout_b(Type type, MmaShape shape, SourceLoc at = SourceLoc::here());
Layout mma_layout_c(MmaShape shape = {});
inline Layout mma_layout_a(Type type, SourceLoc at = SourceLoc::here()) {
  return mma_layout_a(type, mma_shape(type, at), at);
}
inline Layout mma_layout_b(Type type, SourceLoc at = SourceLoc::here()) {
  return mma_layout_b(type, mma_shape(type, at), at);
}

/// c += a b by the whole warp, in place. The sum's type is f32 (also f16 for f16), f64 for f64, s32
/// for s8 and u8. Products are exact; the order and rounding of the sum are the hardware's. Of
/// f64's shapes it is the one whose fragments are given.
void mma(const Fragment& c, const Fragment& a, const Fragment& b, SourceLoc at = SourceLoc::here());

enum class Transposed : std::uint8_t { no, yes };
/// Reads 1, 2 or 4 matrices of 8 rows of 16 bytes from shared memory: lane 8 i + j says where row j
/// of matrix i begins, aligned to 16 bytes. Lane l gets of each matrix the 4 bytes l % 4 of row
/// l / 4: of 16-bit types elements 2 (l % 4) and + 1. Those may be transposed: then of column l
/// / 4.
Fragment ldmatrix(const Element& row, int matrices, Transposed transposed = Transposed::no,
                  SourceLoc at = SourceLoc::here());
/// The reverse (sm_90).
void stmatrix(const Element& row, const Fragment& fragment, Transposed transposed = Transposed::no,
              SourceLoc at = SourceLoc::here());

}  // namespace tilewright
