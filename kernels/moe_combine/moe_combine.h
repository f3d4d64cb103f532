// SPDX-License-Identifier: Apache-2.0
// Combining what the experts made of a token: a weighted sum of rows by slot.
#pragma once

#include "kernels/rows/row_tile.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>

namespace tilewright {

struct MoeCombineTensors {
  View y;                           ///< [M, H] bf16, f16 or f32
  View slot;                        ///< T K contiguous s32: the row of y of each choice
  View weights;                     ///< [T, K] f32
  std::optional<View> shared = {};  ///< [T, H]: what the sum begins with; may be out itself
  View out;                         ///< [T, H] bf16, f16 or f32
};

struct MoeCombineOptions {
  bool accumulate = false;  ///< begins with what is in out
};

/// The specialisation besides the facts of the arguments.
struct MoeCombineConfig {
  int k = 0;
  rows::RowTile tile;
  friend bool operator==(const MoeCombineConfig&, const MoeCombineConfig&) = default;
};

struct MoeCombinePlan {
  MoeCombineConfig config;
  MoeCombineTensors tensors;  ///< slot as [T, K]; shared is out where that is added to
  TensorArg y_arg, slot_arg, weights_arg, out_arg;
  std::optional<TensorArg> start_arg;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};
MoeCombinePlan plan_moe_combine(const DeviceProperties& device, const MoeCombineTensors& tensors,
                                const MoeCombineOptions& options = {},
                                SourceLoc at = SourceLoc::here());

void launch_moe_combine(const Stream& stream, const MoeCombinePlan& plan,
                        SourceLoc at = SourceLoc::here());

/// out[t] = start + sum over k, in order, of weights[t,k] y[slot[t,k]], in f32 by fma, rounded
/// once. Slots outside y are skipped. Allocates nothing on the device and does not wait.
void moe_combine(const Stream& stream, const MoeCombineTensors& tensors,
                 const MoeCombineOptions& options = {}, SourceLoc at = SourceLoc::here());

const Operator& moe_combine_operator();

}  // namespace tilewright
