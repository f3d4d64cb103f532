// SPDX-License-Identifier: Apache-2.0
// Compiling for a GPU that is not here: launches are noted, and their kernels kept for a bundle.
#pragma once

#include "tilewright/bundle.h"
#include "tilewright/device.h"

#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

/// What host plans ask of a GPU, by the name that its driver gives it: "NVIDIA H200". Throws
/// Error(user) that lists the known names. For others, take Device::properties() of one.
DeviceProperties known_gpu(std::string_view name, SourceLoc at = SourceLoc::here());
std::vector<std::string> known_gpus();

/// A device on which everything that prepares a launch works (plans, cache, assembling), while
/// memory holds nothing and a launch only notes its kernel. Launch operators on it, with
/// made-up addresses, to fill the cache or a bundle. Thread-safe.
class OfflineCompiler {
 public:
  explicit OfflineCompiler(const DeviceProperties& gpu);

  const Device& device() const { return device_; }
  /// Said of the kernels that this thread launches from here on: BundleKernel::problem.
  void set_problem(std::string text) const;
  /// Every kernel that was launched, once, with its first launch; in the order of their keys.
  std::vector<BundleKernel> kernels() const;

 private:
  Device device_;
};

}  // namespace tilewright
