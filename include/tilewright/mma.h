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
};
/// For elements of f16, bf16 (k = 16), tf32 (8), s8, u8, e4m3 and e5m2 (32).
MmaShape mma_shape(Type type, SourceLoc at = SourceLoc::here());

// Which elements a lane holds: (lane, index in the fragment) to column-major place in the matrix,
// A by m + 16 k, B by n + 8 k, C by m + 16 n. CuTe's thread-value layouts.
Layout mma_layout_a(Type type, SourceLoc at = SourceLoc::here());
Layout mma_layout_b(Type type, SourceLoc at = SourceLoc::here());
Layout mma_layout_c();

/// c += a b by the whole warp, in place. The sum's type is f32 (also f16 for f16), s32 for s8 and
/// u8. Products are exact; the order and rounding of the sum are the hardware's.
void mma(const Fragment& c, const Fragment& a, const Fragment& b, SourceLoc at = SourceLoc::here());

enum class Transposed : std::uint8_t { no, yes };
/// Reads 1, 2 or 4 matrices of 8 x 8 elements of 16 bits from shared memory: lane 8 i + j says
/// where row j of matrix i begins (8 neighbouring elements, aligned to 16 bytes). Lane l gets of
/// each matrix elements 2 (l % 4) and + 1 of row l / 4; of column l / 4 if transposed.
Fragment ldmatrix(const Element& row, int matrices, Transposed transposed = Transposed::no,
                  SourceLoc at = SourceLoc::here());
/// The reverse (sm_90).
void stmatrix(const Element& row, const Fragment& fragment, Transposed transposed = Transposed::no,
              SourceLoc at = SourceLoc::here());

}  // namespace tilewright
