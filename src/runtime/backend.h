// SPDX-License-Identifier: Apache-2.0
// What a kind of device has to provide; the public classes are thin handles over it.
#pragma once

#include "tilewright/buffer.h"
#include "tilewright/device.h"
#include "tilewright/graph.h"
#include "tilewright/kernel.h"
#include "tilewright/tensor_map.h"

#include <atomic>
#include <memory>
#include <span>
#include <string>

namespace tilewright::detail {

/// The count behind Ref.
struct Counted {
  std::atomic<int> owners{0};
};

/// Code to be loaded: machine code if `assembled.bytes` holds some, else the PTX text.
struct LoadRequest {
  Assembled assembled;
  std::string ptx;
  std::string entry;
  std::string metadata;
  AssembleOptions options;
  std::string front_key{};  ///< empty: not from a cache
};

/// A loaded entry. The backend outlives it: by the Device in each Kernel, or by owning it.
struct LoadedKernel : Counted {
  LoadedKernel(Backend& owner, LoadRequest loaded_from);
  virtual ~LoadedKernel() = default;
  Backend& backend;
  LoadRequest source;
  KernelAttributes attributes;
};

/// A checked launch with its parameters where the device wants them.
struct LaunchState : Counted {
  LaunchState(Kernel of, LaunchConfig how, Parameters with);
  virtual ~LaunchState() = default;
  Kernel kernel;
  LaunchConfig config;
  Parameters parameters;
};

struct GraphState : Counted {
  explicit GraphState(Device on) : device(std::move(on)) {}
  virtual ~GraphState() = default;
  Device device;
  int nodes = 0;
};

/// Kernels of a device by front key; see cache.cpp.
struct MemoryCache;
struct MemoryCacheDeleter {
  void operator()(MemoryCache* cache) const noexcept;
};
MemoryCache* make_memory_cache();

class Backend : public Counted {
 public:
  Backend(DeviceKind device_kind, std::string device_id);
  virtual ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const DeviceKind kind;
  const std::string id;
  DeviceProperties properties;

  virtual MemoryInfo memory() = 0;
  virtual void synchronize(SourceLoc at) = 0;

  virtual DeviceAddress allocate(std::int64_t bytes, SourceLoc at) = 0;
  virtual void free(DeviceAddress address) noexcept = 0;
  /// Blocking, ordered after the default stream and streams of this library.
  virtual void upload(DeviceAddress to, std::span<const std::byte> from, SourceLoc at) = 0;
  virtual void download(std::span<std::byte> to, DeviceAddress from, SourceLoc at) = 0;

  virtual void copy_to_device(DeviceAddress to, std::span<const std::byte> from, void* stream) = 0;
  virtual void copy_to_host(std::span<std::byte> to, DeviceAddress from, void* stream) = 0;
  virtual void copy_on_device(DeviceAddress to, DeviceAddress from, std::int64_t bytes,
                              void* stream) = 0;
  virtual void fill(DeviceAddress to, std::byte value, std::int64_t bytes, void* stream) = 0;

  virtual void* create_stream() = 0;
  virtual void destroy_stream(void* stream) noexcept = 0;
  virtual void synchronize_stream(void* stream) = 0;
  virtual bool stream_done(void* stream) = 0;
  virtual void stream_wait(void* stream, void* event) = 0;

  virtual void* create_event() = 0;
  virtual void destroy_event(void* event) noexcept = 0;
  virtual void record_event(void* event, void* stream) = 0;
  virtual void synchronize_event(void* event) = 0;
  virtual double elapsed_ms(void* start, void* end) = 0;

  virtual Ref<LoadedKernel> load(LoadRequest request, SourceLoc at) = 0;
  virtual int blocks_per_sm(const LoadedKernel& kernel, int threads, std::int64_t smem_bytes) = 0;
  virtual int active_clusters(const LoadedKernel& kernel, const LaunchConfig& config) = 0;
  /// `config` and `parameters` have been checked.
  virtual Ref<LaunchState> prepare(const Kernel& kernel, const LaunchConfig& config,
                                   Parameters parameters, SourceLoc at) = 0;
  /// `map` has been checked.
  virtual EncodedTensorMap encode(const TensorMap& map, SourceLoc at) = 0;
  virtual void launch(LaunchState& state, void* stream, SourceLoc at) = 0;

  virtual std::uint64_t capture_id(void* stream) = 0;  ///< 0: the stream runs what it is given
  virtual void begin_capture(void* stream) = 0;
  virtual Ref<GraphState> end_capture(const Device& device, void* stream) = 0;
  virtual void abandon_capture(void* stream) noexcept = 0;
  virtual void launch_graph(GraphState& graph, void* stream) = 0;

  std::unique_ptr<MemoryCache, MemoryCacheDeleter> kernels;
};

/// Throws Error(user) for a launch that no device of this kind could run.
void check_launch(const LoadedKernel& kernel, const LaunchConfig& config, std::size_t param_bytes,
                  SourceLoc at);

Ref<Backend> open_cuda(int ordinal, SourceLoc at);
Ref<Backend> open_current_cuda_context(SourceLoc at);
/// What emulated peers have in common; null: the device has it for itself.
struct EmuShared;
Ref<Backend> open_emulator(ptx::Target target, std::shared_ptr<EmuShared> shared = nullptr);

class EmuBackend;
/// The emulated device behind a backend. Throws Error(user) "WHAT: cuda:0 is not emulated".
EmuBackend& as_emulator(Backend& backend, const char* what, SourceLoc at);

}  // namespace tilewright::detail
