// SPDX-License-Identifier: Apache-2.0
// Code loaded on a device, its kernels, and launches that are ready to go.
#pragma once

#include "tilewright/assembler.h"
#include "tilewright/device.h"
#include "tilewright/launch.h"
#include "tilewright/stream.h"

namespace tilewright {

namespace detail {
struct LoadedKernel;
struct LaunchState;
void retain(LoadedKernel* loaded) noexcept;
void release(LoadedKernel* loaded) noexcept;
void retain(LaunchState* state) noexcept;
void release(LaunchState* state) noexcept;
}  // namespace detail

/// What a kernel needs of a multiprocessor. -1: an emulated device does not know.
struct KernelAttributes {
  int registers = -1;
  int local_bytes = -1;  ///< a thread's stack and spills
  std::int64_t static_smem_bytes = 0;
  int max_threads_per_block = 1024;
  std::int64_t parameter_bytes = -1;  ///< -1: this driver does not tell
  bool resident_grid = false;         ///< has a GridBarrier: takes cooperative launches only
};

class PreparedLaunch;

/// One entry of code loaded on a device; copies share it, the last one unloads it.
class Kernel {
 public:
  const std::string& name() const;
  const Device& device() const { return device_; }
  const KernelAttributes& attributes() const;
  /// The text that its source carried through the cache: recipes of parameters and such.
  const std::string& metadata() const;
  /// The assembler's log, name and resources; its bytes are empty on an emulated device.
  const Assembled& assembled() const;
  const std::string& ptx() const;  ///< empty where a front key was found on disk: see cache.h

  /// Blocks of this shape that fit on one multiprocessor, by the driver's reckoning; 1 if emulated.
  int blocks_per_sm(int block_threads, std::int64_t dynamic_smem_bytes) const;
  /// Clusters that can be resident at once; `config` must name a cluster.
  int active_clusters(const LaunchConfig& config) const;

  void launch(const LaunchConfig& config, const Parameters& parameters, const Stream& stream,
              SourceLoc at = SourceLoc::here()) const;
  /// Checks everything once, so that PreparedLaunch::launch costs one driver call.
  PreparedLaunch prepare(const LaunchConfig& config, Parameters parameters,
                         SourceLoc at = SourceLoc::here()) const;

  Kernel(const Device& device, detail::Ref<detail::LoadedKernel> loaded);
  const detail::LoadedKernel& loaded() const { return *loaded_; }

 private:
  Device device_;  // outlives loaded_, whose destructor needs it
  detail::Ref<detail::LoadedKernel> loaded_;
};

/// A kernel with its checked configuration and packed parameters. Not to be moved while it runs in
/// another thread.
class PreparedLaunch {
 public:
  PreparedLaunch(PreparedLaunch&&) noexcept = default;
  PreparedLaunch& operator=(PreparedLaunch&&) noexcept = default;

  void launch(const Stream& stream, SourceLoc at = SourceLoc::here()) const;
  const Kernel& kernel() const;
  const LaunchConfig& config() const;
  /// To change parameters between launches; their size stays.
  Parameters& parameters();
  detail::LaunchState& state() const { return *state_; }

 private:
  friend class Kernel;
  explicit PreparedLaunch(detail::Ref<detail::LaunchState> state);
  detail::Ref<detail::LaunchState> state_;
};

/// Assembles PTX text (the driver does it where there is no assembler) and loads one entry of it.
Kernel load_ptx(const Device& device, const std::string& ptx, std::string_view entry,
                const AssembleOptions& options = {}, SourceLoc at = SourceLoc::here());
/// Loads machine code that was assembled earlier for this device's target.
Kernel load_cubin(const Device& device, Assembled cubin, std::string_view entry,
                  SourceLoc at = SourceLoc::here());

}  // namespace tilewright
