// SPDX-License-Identifier: Apache-2.0
// tile_copy: dst = src for matrices of any shape, row stride and element size.
#pragma once

#include "tilewright/device.h"
#include "tilewright/kernel.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"
#include "tilewright/view.h"

namespace tilewright {

struct TileCopyOptions {
  int tile_m = 0;   ///< rows of a tile; 0: by the plan
  int threads = 0;  ///< of a block, a multiple of 32; 0: by the plan
};

/// How a tile travels: through registers, or asynchronously through shared memory.
enum class CopyMethod : std::uint8_t { direct, async };

/// The specialisation: everything the traced code depends on besides the facts of the arguments.
struct TileCopyConfig {
  CopyMethod method = CopyMethod::direct;
  int vector_bytes = 16;  ///< of one access
  int threads = 128;
  int threads_n = 128;  ///< of them along a row
  int vectors = 1;      ///< accesses of a thread in a tile, down the rows (along the row if flat)
  int stages = 1;       ///< tiles in flight of a block (async)
  Cache cache = Cache::all;
  bool flat = false;  ///< one long row: a tile is a piece of it
  friend bool operator==(const TileCopyConfig&, const TileCopyConfig&) = default;

  int tile_m() const { return flat ? 1 : threads / threads_n * vectors; }
  /// In vectors.
  int tile_n() const { return flat ? threads * vectors : threads_n; }
};
std::string to_string(const TileCopyConfig& config);

/// A copy that is ready to be specialised and launched.
struct TileCopyPlan {
  TileCopyConfig config;
  View src, dst;  ///< as units of the access: b8, b16 or b32, contiguous modes merged
  TensorArg src_arg, dst_arg;
  std::int64_t tiles_m = 0, tiles_n = 0;
  LaunchConfig launch;

  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// Checks the arguments and chooses access width, tile and depth.
/// Pre: equal types and shapes of rank 2, last stride 1, no overlap. Throws Error(user) otherwise.
TileCopyPlan plan_tile_copy(const DeviceProperties& device, const View& src, const View& dst,
                            const TileCopyOptions& options = {}, SourceLoc at = SourceLoc::here());
/// The same with a configuration given, for measurements.
TileCopyPlan plan_tile_copy(const DeviceProperties& device, const View& src, const View& dst,
                            const TileCopyConfig& config, SourceLoc at = SourceLoc::here());

/// Copies on the stream. Allocates nothing on the device and does not wait.
void tile_copy(const Stream& stream, const View& src, const View& dst,
               const TileCopyOptions& options = {}, SourceLoc at = SourceLoc::here());
/// The same, specialised and checked once for many launches.
PreparedLaunch prepare_tile_copy(const Device& device, const TileCopyPlan& plan,
                                 SourceLoc at = SourceLoc::here());

const Operator& tile_copy_operator();

}  // namespace tilewright
