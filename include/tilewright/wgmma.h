// SPDX-License-Identifier: Apache-2.0
// Matrix multiplication by a warpgroup of 4 warps (wgmma, sm_90a): asynchronous, from shared
// memory.
#pragma once

#include "tilewright/matrix_tile.h"

#include <vector>

namespace tilewright {

/// k of one instruction: 32 bytes of elements. For f16, bf16, tf32, e4m3, e5m2, s8 and u8.
int wgmma_k(Type type, SourceLoc at = SourceLoc::here());

// Which elements a thread of the warpgroup holds: (thread, index in the fragment) to column-major
// place in a matrix of 64 rows. CuTe's thread-value layouts.
Layout wgmma_layout_a(Type type, SourceLoc at = SourceLoc::here());  ///< 64 x wgmma_k(type)
Layout wgmma_layout_c(int n);                                        ///< 64 x n

/// m x n sums of a warpgroup in registers, which stay where they are: it is never copied. m is a
/// multiple of 64, n of 8 (s32: see the PTX manual) up to 256. Each thread has m n / 128, blocks of
/// 64 rows one after the other. Undefined until fill() or the first wgmma, which need not
/// accumulate.
class Accumulator {
 public:
  Accumulator(Type type, int m, int n, SourceLoc at = SourceLoc::here());
  Accumulator(const Accumulator&) = delete;
  Accumulator& operator=(const Accumulator&) = delete;

  Type type() const { return registers_.type(); }
  int m() const { return m_; }
  int n() const { return n_; }
  /// Sets all sums, so that they can be read before the first wgmma, which may then accumulate:
  /// a loop that rescales them needs no first round of its own. wgmma_fence() comes after it.
  /// Throws Error(user) if a wgmma may still be adding to them.
  void fill(const Arg& value);
  /// The sums, in the accumulator's own registers. Throws Error(user) if a wgmma may still be
  /// adding to them.
  Fragment read(SourceLoc at = SourceLoc::here()) const;

 private:
  friend struct AccumulatorAccess;
  Fragment registers_;
  int m_, n_;
  // Where the newest wgmma stands: its group, and the regions around it.
  int group_ = 0;
  bool filled_ = false;
  std::vector<std::uint32_t> regions_;
};

/// Orders the warpgroup's accesses of accumulators and of fragments A before the wgmmas that
/// follow: before the first one, and after every write of such registers.
void wgmma_fence(SourceLoc at = SourceLoc::here());
/// Makes the wgmmas so far a group.
void wgmma_commit(SourceLoc at = SourceLoc::here());
/// Waits until at most `pending` (0 to 7) of the newest groups are unfinished: what they read may
/// be overwritten, what they added may be read.
void wgmma_wait(int pending = 0, SourceLoc at = SourceLoc::here());

/// Begins sums (+)= a b^T: a is m x k, b is n x k, both of one type (e4m3 and e5m2, s8 and u8 also
/// of two) and with neighbours along k; 16-bit ones may be transposed. `accumulate` (a predicate)
/// says whether the sums are added to, or overwritten. k is a multiple of wgmma_k(). Whole
/// warpgroups take part. Tiles written by ordinary stores need fence_async_proxy() and a barrier.
void wgmma(Accumulator& sums, const MatrixTile& a, const MatrixTile& b, const Arg& accumulate);
/// The same with a in registers: for each 64 rows and wgmma_k() columns the elements of
/// wgmma_layout_a(), k fastest. They must stay unchanged until the wait.
void wgmma(Accumulator& sums, const Fragment& a, const MatrixTile& b, const Arg& accumulate);

}  // namespace tilewright
