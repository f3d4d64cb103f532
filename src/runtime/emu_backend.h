// SPDX-License-Identifier: Apache-2.0
// The emulator as a device: work is done when it is queued, unless a stream is being captured.
#pragma once

#include "runtime/backend.h"
#include "runtime/emu_copy.h"
#include "runtime/stream_order.h"
#include "tilewright/emulator.h"

#include <functional>
#include <memory>
#include <vector>

namespace tilewright::detail {

/// An address space, and the order of the launches in it.
struct EmuShared {
  emu::Fabric fabric;
  StreamOrder order;
};

class EmuBackend : public Backend {
 public:
  EmuBackend(ptx::Target target, std::shared_ptr<EmuShared> shared);
  ~EmuBackend() override;

  struct Together {
    LaunchState* state;
    void* stream;
  };
  /// Launches of different devices with one EmuShared, interleaved.
  static void launch_together(std::span<const Together> work, SourceLoc at);

 private:
  std::shared_ptr<EmuShared> shared_;  ///< outlives the machine

 public:
  emu::Machine machine;
  emu::Options options;
  emu::LaunchReport last_report;
  std::vector<emu::Diagnostic> findings;

  MemoryInfo memory() override;
  void synchronize(SourceLoc at) override;
  DeviceAddress allocate(std::int64_t bytes, SourceLoc at) override;
  void free(DeviceAddress address) noexcept override;
  void upload(DeviceAddress to, std::span<const std::byte> from, SourceLoc at) override;
  void download(std::span<std::byte> to, DeviceAddress from, SourceLoc at) override;
  void copy_to_device(DeviceAddress to, std::span<const std::byte> from, void* stream) override;
  void copy_to_host(std::span<std::byte> to, DeviceAddress from, void* stream) override;
  void copy_on_device(DeviceAddress to, DeviceAddress from, std::int64_t bytes,
                      void* stream) override;
  void fill(DeviceAddress to, std::byte value, std::int64_t bytes, void* stream) override;
  void* create_stream() override;
  void destroy_stream(void* stream) noexcept override;
  void synchronize_stream(void* stream) override;
  bool stream_done(void* stream) override;
  void stream_wait(void* stream, void* event) override;
  void* create_event() override;
  void destroy_event(void* event) noexcept override;
  void record_event(void* event, void* stream) override;
  void synchronize_event(void* event) override;
  double elapsed_ms(void* start, void* end) override;
  Ref<LoadedKernel> load(LoadRequest request, SourceLoc at) override;
  int blocks_per_sm(const LoadedKernel& kernel, int threads, std::int64_t smem_bytes) override;
  int active_clusters(const LoadedKernel& kernel, const LaunchConfig& config) override;
  Ref<LaunchState> prepare(const Kernel& kernel, const LaunchConfig& config, Parameters parameters,
                           SourceLoc at) override;
  EncodedTensorMap encode(const TensorMap& map, SourceLoc at) override;
  void launch(LaunchState& state, void* stream, SourceLoc at) override;
  std::uint64_t capture_id(void* stream) override;
  void begin_capture(void* stream) override;
  Ref<GraphState> end_capture(const Device& device, void* stream) override;
  void abandon_capture(void* stream) noexcept override;
  void launch_graph(GraphState& graph, void* stream) override;

 private:
  using Work = std::function<void(void* stream)>;  ///< of the stream that it runs on
  struct StreamState {
    std::uint32_t number = 0;   ///< in order_
    std::uint64_t capture = 0;  ///< its number while there is one
    std::vector<Work> captured;
  };
  StreamState* find_stream(void* handle);
  std::uint32_t number_of(void* stream);
  /// Does the work, or keeps it for the graph that the stream is being captured into.
  void queue(void* stream, Work work);
  void refuse_in_capture(void* stream, const char* call);
  /// The host waits for all launches of this device.
  void host_waits();
  void keep(emu::LaunchReport report);
  /// A copy or fill is about to be done on a stream.
  void check_copy(const CopiedBytes& copied, void* stream);

  std::vector<std::unique_ptr<StreamState>> streams_;
  std::uint64_t captures_ = 0;
  StreamOrder& order_;
  std::uint32_t default_stream_;  ///< its number in order_
  CopyChecker copies_;
};

}  // namespace tilewright::detail
