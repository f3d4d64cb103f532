// SPDX-License-Identifier: Apache-2.0
// A transpose of 16-bit elements in aligned rows: ldmatrix turns matrices of 8 x 8.
#pragma once

#include "kernels/transpose/shared_tile.h"
#include "kernels/transpose/transpose.h"
#include "tilewright/tensor.h"
#include "tilewright/value.h"

namespace tilewright {

/// One block's tile, by accesses of 16 bytes to src, shared memory and dst. Pre: whole accesses on
/// both sides; traced with TransposeConfig::smem_bytes() of dynamic shared memory.
class MatrixTile {
 public:
  MatrixTile(const TransposeConfig& config, const Tensor& src, const Tensor& dst,
             TransposeCorner corner);
  /// src to shared memory, a barrier, shared memory to dst.
  void transpose() const;

 private:
  void read() const;
  void write() const;
  /// Access `column` of a row in shared memory, at another place in it: the eight rows of a matrix
  /// that ldmatrix reads, and the neighbours that are stored, meet different banks.
  Element access(const Value& row, const Value& column) const;

  TransposeConfig c_;
  Tensor src_, dst_;
  Tensor tile_;  ///< (row, element)
  TransposeCorner corner_;
};

}  // namespace tilewright
