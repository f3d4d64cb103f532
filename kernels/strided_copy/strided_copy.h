// SPDX-License-Identifier: Apache-2.0
// strided_copy: dst = src for tensors of up to five modes with any strides, or of another type.
#pragma once

#include "tilewright/device.h"
#include "tilewright/kernel.h"
#include "tilewright/operator.h"
#include "tilewright/trace.h"
#include "tilewright/view.h"

#include <string>

namespace tilewright {

/// The specialisation besides the facts of the arguments. A thread copies items: elements one after
/// another along the innermost mode, in the widest accesses that each side's strides and address
/// allow.
struct StridedCopyConfig {
  int elems = 1;  ///< of an item, a power of two
  int items = 1;  ///< of a thread, all loaded before the first is stored
  int threads = 128;
  bool ends = false;  ///< the innermost mode ends with a part of an item
  bool wide = false;  ///< items are counted in 64 bits, and extents are part of the code
  friend bool operator==(const StridedCopyConfig&, const StridedCopyConfig&) = default;
};
std::string to_string(const StridedCopyConfig& config);

/// A copy that is ready to be specialised and launched.
struct StridedCopyPlan {
  StridedCopyConfig config;
  View src, dst;  ///< the modes that are left: the widest strides of dst first; as bits if no cast
  TensorArg src_arg, dst_arg;
  std::int64_t items = 0;
  LaunchConfig launch;

  /// Items that the innermost mode has, extents of the others.
  std::int64_t extent(int mode) const;
  std::string key() const;
  Traced trace(ptx::Target target) const;
  Parameters parameters() const;
};

/// Checks the arguments, merges modes that continue each other on both sides, and chooses how much
/// a thread copies.
/// Pre: equal shapes of rank 1 to 5; strides of at least 0, of dst such that elements are apart; no
/// overlap; equal types of 8 to 64 bits, or a cast from bf16, f16, f32, e4m3 or e5m2 to bf16, f16
/// or f32. Throws Error(user) otherwise.
StridedCopyPlan plan_strided_copy(const DeviceProperties& device, const View& src, const View& dst,
                                  SourceLoc at = SourceLoc::here());
/// The same with a configuration given, for measurements. `ends` is found, as is `wide` where it
/// has to be. Pre: `elems` is a power of two up to 16.
StridedCopyPlan plan_strided_copy(const DeviceProperties& device, const View& src, const View& dst,
                                  const StridedCopyConfig& config,
                                  SourceLoc at = SourceLoc::here());

/// Copies on the stream: the same bits, or numbers rounded once to nearest even (beyond the largest
/// to infinity). Allocates nothing on the device and does not wait.
void strided_copy(const Stream& stream, const View& src, const View& dst,
                  SourceLoc at = SourceLoc::here());
/// The same, specialised and checked once for many launches.
PreparedLaunch prepare_strided_copy(const Device& device, const StridedCopyPlan& plan,
                                    SourceLoc at = SourceLoc::here());

const Operator& strided_copy_operator();

}  // namespace tilewright
