// SPDX-License-Identifier: Apache-2.0
// kda_commit: the state after some of the tokens that kda_verify_compact kept records of.
#pragma once

#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

template <class T>
struct KdaCommitArguments {
  T state;                        ///< [slots, HV, V, K] f32, in place
  T d_records;                    ///< [N, T, HV, V] f32
  T k_records;                    ///< [N, T, HV, K] f32
  T decay_records;                ///< [N, T, HV, K] f32
  T accepted;                     ///< [N] s32 or s64: tokens from the first on; 0: nothing changes
  std::optional<T> indices = {};  ///< [N] s32 or s64: slots; negative: inactive. Absent: 0 .. N - 1
};
using KdaCommitTensors = KdaCommitArguments<View>;

struct KdaCommitConfig {
  int heads = 1, k = 128, v = 128;
  int warps = 4;
  int rows_per_lane = 4;
  friend bool operator==(const KdaCommitConfig&, const KdaCommitConfig&) = default;
  int block_rows() const { return warps * rows_per_lane * 4; }
};

struct KdaCommitPlan {
  KdaCommitConfig config;
  KdaCommitTensors tensors;
  KdaCommitArguments<TensorArg> args;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};
KdaCommitPlan plan_kda_commit(const KdaCommitTensors& tensors, SourceLoc at = SourceLoc::here());

/// Runs on the stream. Allocates nothing on the device and does not wait.
void kda_commit(const Stream& stream, const KdaCommitTensors& tensors,
                SourceLoc at = SourceLoc::here());

const Operator& kda_commit_operator();

}  // namespace tilewright
