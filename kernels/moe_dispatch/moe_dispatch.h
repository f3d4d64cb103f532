// SPDX-License-Identifier: Apache-2.0
// Dispatch of a mixture of experts: copies tokens' rows so that each expert's rows are neighbours.
#pragma once

#include "kernels/moe_dispatch/copy.h"
#include "kernels/rows/rows.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"

#include <optional>
#include <string>
#include <vector>

namespace tilewright {

struct MoeDispatchTensors {
  View x;                           ///< [T, H] of 8, 16 or 32 bits
  View ids;                         ///< [T, K] s32: experts; others than this rank's are skipped
  std::optional<View> scales = {};  ///< [T, G] of 8, 16 or 32 bits, any strides
  View x_perm;                      ///< [M, H], M at least moe_dispatch_rows()
  std::optional<View> scales_perm = {};       ///< [M, G]
  View counts, offsets;                       ///< [E], [E + 1] s32, of this rank's experts
  View slot;                                  ///< [T K] s32: the row of each choice, or -1
  std::optional<View> sorted_token_ids = {};  ///< [M] s32: the choice of each row, T K for padding
  std::optional<View> block_expert = {};      ///< [M / block] s32: the expert of each block, or -1
  View total_rows;                            ///< [1] s32
};

/// How the work is laid out in launches; results are the same.
enum class DispatchVariant : std::uint8_t {
  automatic,          ///< by the number of choices
  replicated,         ///< one launch; every block routes all choices, then copies its part
  decode,             ///< one cooperative launch: a block routes, a grid barrier, all blocks copy
  decode_dependent,   ///< a launch of one block routes, a dependent launch copies
  prefill,            ///< a cooperative launch routes, with a grid barrier; another launch copies
  prefill_dependent,  ///< the same with a dependent launch
};

struct MoeDispatchOptions {
  std::int64_t experts = 0;         ///< of all ranks
  std::int64_t block = 1;           ///< an expert's rows are padded to a multiple of it
  std::int64_t first_expert = 0;    ///< of this rank
  std::int64_t local_experts = -1;  ///< of this rank; -1: all from first_expert on
  DispatchOrder order = DispatchOrder::stable;
  bool zero_pad = false;  ///< padding rows become 0; their scales always do
  DispatchVariant variant = DispatchVariant::automatic;
};

/// Experts of this rank. Throws Error(user) for ranges outside the experts.
std::int64_t local_experts(const MoeDispatchOptions& options, SourceLoc at = SourceLoc::here());
/// The most rows that `choices` = T K can take: T K + experts (block - 1).
std::int64_t moe_dispatch_rows(std::int64_t choices, const MoeDispatchOptions& options);
/// Bytes of workspace that a launch needs: zeroed once, and left as the next launch needs them.
std::int64_t moe_dispatch_workspace_bytes(const MoeDispatchOptions& options);

/// The arguments of every kernel of a dispatch: views, what a trace knows of them, or tensors.
template <class T>
struct DispatchArguments {
  T x, ids;
  std::optional<T> scales;
  T x_perm;
  std::optional<T> scales_perm;
  T counts, offsets, slot;
  std::optional<T> sorted_token_ids, block_expert;
  T total_rows;
  T barrier;  ///< [1] u32
  T table;    ///< [blocks E] s32: the counts of each block that routes
};

/// What a kernel does.
enum class DispatchStage : std::uint8_t { replicated, decode, route, copy };

/// One launch of a dispatch.
struct DispatchLaunch {
  DispatchStage stage = DispatchStage::copy;
  RouteConfig route;
  CopyConfig copy;
  bool team = false;  ///< several blocks route, with a grid barrier
  DispatchArguments<View> views;
  DispatchArguments<TensorArg> args;
  std::int64_t choices_per_warp = 32;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

struct MoeDispatchPlan {
  DispatchVariant variant = DispatchVariant::automatic;  ///< the one that was chosen
  std::vector<DispatchLaunch> launches;
};
MoeDispatchPlan plan_moe_dispatch(const DeviceProperties& device, const MoeDispatchTensors& tensors,
                                  const MoeDispatchOptions& options, const Workspace& workspace,
                                  SourceLoc at = SourceLoc::here());
void launch_moe_dispatch(const Stream& stream, const MoeDispatchPlan& plan,
                         SourceLoc at = SourceLoc::here());

/// Plans and launches. Allocates nothing on the device and does not wait.
void moe_dispatch(const Stream& stream, const MoeDispatchTensors& tensors,
                  const MoeDispatchOptions& options, const Workspace& workspace,
                  SourceLoc at = SourceLoc::here());

const Operator& moe_dispatch_operator();

}  // namespace tilewright
