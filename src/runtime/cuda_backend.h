// SPDX-License-Identifier: Apache-2.0
// A GPU through the CUDA driver as a device.
#pragma once

#include "runtime/backend.h"
#include "runtime/cuda_driver.h"

namespace tilewright::detail {

class CudaBackend : public Backend {
 public:
  enum class Ownership : std::uint8_t { primary, foreign };
  CudaBackend(const cuda::Driver& driver, cuda::Device ordinal, cuda::Context context,
              Ownership ownership);
  ~CudaBackend() override;

  const cuda::Driver& driver() const { return driver_; }
  cuda::Context context() const { return context_; }
  cuda::Device ordinal() const { return device_; }

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
  cuda::Scope scope() const { return {driver_, context_}; }

  const cuda::Driver& driver_;
  cuda::Device device_;
  cuda::Context context_;
  Ownership ownership_;
};

}  // namespace tilewright::detail
