// SPDX-License-Identifier: Apache-2.0
// A device that kernels run on: a GPU through its driver, or the emulator.
#pragma once

#include "tilewright/error.h"
#include "tilewright/target.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tilewright {

namespace emu {
struct Options;
struct Diagnostic;
struct LaunchReport;
class Machine;
}  // namespace emu
namespace detail {

class Backend;
void retain(Backend* backend) noexcept;
void release(Backend* backend) noexcept;

/// A counted pointer to a T that need not be complete: retain(T*) and release(T*) count and delete.
/// (std::shared_ptr's header alone would be half of what a header may cost.)
template <typename T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* pointer) noexcept : pointer_(pointer) {
    if (pointer_ != nullptr) retain(pointer_);
  }
  Ref(const Ref& other) noexcept : Ref(other.pointer_) {}
  Ref(Ref&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  Ref& operator=(Ref other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Ref() {
    if (pointer_ != nullptr) release(pointer_);
  }
  T* get() const { return pointer_; }
  T& operator*() const { return *pointer_; }
  T* operator->() const { return pointer_; }
  explicit operator bool() const { return pointer_ != nullptr; }
  friend bool operator==(const Ref&, const Ref&) = default;

 private:
  T* pointer_ = nullptr;
};

}  // namespace detail

enum class DeviceKind : std::uint8_t { cuda, emulated };

/// What a host plan may ask of a device. Zero where an emulated device has no such thing.
struct DeviceProperties {
  std::string name;    ///< "NVIDIA H200", "emulator"
  ptx::Target target;  ///< what kernels are assembled for: sm_90a on compute capability 9.0
  int sm_count = 0;
  int driver_version = 0;  ///< 13000: a driver for CUDA 13.0
  int max_threads_per_sm = 0;
  int smem_per_block_bytes = 0;  ///< the opt-in limit, 232,448 on sm_90
  int smem_per_sm_bytes = 0;
  int registers_per_sm = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  int memory_clock_khz = 0;
  int memory_bus_bits = 0;
};

struct MemoryInfo {
  std::int64_t free_bytes = 0;
  std::int64_t total_bytes = 0;
};

/// A shared handle: copies name the same device, which is closed with the last of them and the last
/// buffer, stream and kernel on it. Thread-safe for cuda devices; an emulated one takes one thread
/// at a time.
class Device {
 public:
  /// "cuda:0" or "emu:sm_90a"; each emulated device has memory of its own. Throws
  /// Error(unsupported) without a driver or device, Error(user) that lists the known targets.
  static Device open(std::string_view name, SourceLoc at = SourceLoc::here());
  /// The CUDA context that is current on this thread, which the caller keeps.
  static Device from_current_context(SourceLoc at = SourceLoc::here());
  /// How many CUDA devices the driver has; 0 without a driver.
  static int cuda_count();
  /// Why there is no CUDA device, in words; empty where there is one.
  static std::string why_no_cuda();

  DeviceKind kind() const;
  const std::string& id() const;  ///< "cuda:0"
  const DeviceProperties& properties() const;
  ptx::Target target() const { return properties().target; }
  MemoryInfo memory() const;
  /// Waits for all work on it. Throws Error for work that failed.
  void synchronize() const;

  /// The machine of an emulated device. Throws Error(user) for a cuda device.
  emu::Machine& emulator(SourceLoc at = SourceLoc::here()) const;
  /// How an emulated device runs kernels from here on; without effect on a cuda device.
  void set_options(const emu::Options& options) const;
  const emu::Options& options(SourceLoc at = SourceLoc::here()) const;
  /// The last launch on an emulated device: counters, findings, output. Throws for a cuda device.
  const emu::LaunchReport& last_report(SourceLoc at = SourceLoc::here()) const;
  /// What the emulator found since the last take_findings(); always empty on a cuda device.
  const std::vector<emu::Diagnostic>& findings() const;
  std::vector<emu::Diagnostic> take_findings() const;

  friend bool operator==(const Device&, const Device&) = default;
  detail::Backend& backend() const { return *backend_; }
  explicit Device(detail::Ref<detail::Backend> backend) : backend_(std::move(backend)) {}

 private:
  detail::Ref<detail::Backend> backend_;
};

}  // namespace tilewright
