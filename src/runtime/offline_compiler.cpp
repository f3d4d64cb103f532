// SPDX-License-Identifier: Apache-2.0
// A device without hardware: code is assembled and kept, launches are noted.
#include "tilewright/offline_compiler.h"

#include "runtime/backend.h"
#include "tilewright/assembler.h"

#include <algorithm>
#include <map>
#include <mutex>

namespace tilewright {
namespace detail {
namespace {

struct OfflineKernel : LoadedKernel {
  using LoadedKernel::LoadedKernel;
};

struct OfflineEvent {};

thread_local std::string problem_of_thread;

class OfflineBackend : public Backend {
 public:
  explicit OfflineBackend(const DeviceProperties& gpu)
      : Backend(DeviceKind::cuda, "offline:" + gpu.name) {
    properties = gpu;
    properties.driver_version = 0;  // machine code of any assembler will do
  }
  ~OfflineBackend() override { kernels.reset(); }

  std::vector<BundleKernel> noted() const {
    std::lock_guard lock(mutex_);
    std::vector<BundleKernel> all;
    for (const auto& [key, kernel] : noted_)
      all.push_back(kernel);
    return all;
  }

  MemoryInfo memory() override { return {properties.memory_bytes, properties.memory_bytes}; }
  void synchronize(SourceLoc) override {}
  /// Addresses that nothing else has; 2^40 bytes are room for any problem.
  DeviceAddress allocate(std::int64_t bytes, SourceLoc) override {
    constexpr DeviceAddress kAlignment = 256;
    return next_.fetch_add((static_cast<DeviceAddress>(bytes) / kAlignment + 1) * kAlignment);
  }
  void free(DeviceAddress) noexcept override {}
  void upload(DeviceAddress, std::span<const std::byte>, SourceLoc) override {}
  void download(std::span<std::byte>, DeviceAddress, SourceLoc at) override {
    refuse("copies", at);
  }
  void copy_to_device(DeviceAddress, std::span<const std::byte>, void*) override {}
  void copy_to_host(std::span<std::byte>, DeviceAddress, void*) override { refuse("copies", {}); }
  void copy_on_device(DeviceAddress, DeviceAddress, std::int64_t, void*) override {}
  void fill(DeviceAddress, std::byte, std::int64_t, void*) override {}
  void* create_stream() override { return nullptr; }
  void destroy_stream(void*) noexcept override {}
  void synchronize_stream(void*) override {}
  bool stream_done(void*) override { return true; }
  void stream_wait(void*, void*) override {}
  void* create_event() override { return new OfflineEvent; }
  void destroy_event(void* event) noexcept override { delete static_cast<OfflineEvent*>(event); }
  void record_event(void*, void*) override {}
  void synchronize_event(void*) override {}
  double elapsed_ms(void*, void*) override { refuse("times", {}); }
  std::uint64_t capture_id(void*) override { return 0; }
  void begin_capture(void*) override { refuse("graphs", {}); }
  Ref<GraphState> end_capture(const Device&, void*) override { refuse("graphs", {}); }
  void abandon_capture(void*) noexcept override {}
  void launch_graph(GraphState&, void*) override { refuse("graphs", {}); }

  Ref<LoadedKernel> load(LoadRequest request, SourceLoc at) override {
    if (request.assembled.bytes.empty()) {
      throw Error(ErrorKind::unsupported, id + ": " + why_no_assembler(), at);
    }
    auto* kernel = new OfflineKernel(*this, std::move(request));
    for (const EntryResources& resources : kernel->source.assembled.resources) {
      if (resources.entry != kernel->source.entry) continue;
      kernel->attributes.registers = resources.registers;
      kernel->attributes.local_bytes = resources.stack_bytes;
      kernel->attributes.static_smem_bytes = resources.static_smem_bytes;
    }
    return Ref<LoadedKernel>(kernel);
  }
  /// CUDA Occupancy: what threads, registers (in units of 256 a warp) and shared memory leave room
  /// for.
  int blocks_per_sm(const LoadedKernel& kernel, int threads, std::int64_t smem_bytes) override {
    constexpr int kMostBlocks = 32;
    constexpr int kRegisterUnit = 256;
    constexpr std::int64_t kReservedSmem = 1024;
    const int warps = (threads + 31) / 32;
    const int warp_registers = (std::max(kernel.attributes.registers, 1) * 32 + kRegisterUnit - 1) /
                               kRegisterUnit * kRegisterUnit;
    const std::int64_t smem = kernel.attributes.static_smem_bytes + smem_bytes + kReservedSmem;
    return static_cast<int>(
        std::min<std::int64_t>({kMostBlocks, properties.max_threads_per_sm / (warps * 32),
                                properties.registers_per_sm / (warp_registers * warps),
                                properties.smem_per_sm_bytes / smem}));
  }
  int active_clusters(const LoadedKernel& kernel, const LaunchConfig& config) override {
    const auto threads = static_cast<int>(count(config.block));
    const int blocks = blocks_per_sm(kernel, threads, config.dynamic_smem_bytes);
    return static_cast<int>(properties.sm_count * blocks / count(config.cluster));
  }
  Ref<LaunchState> prepare(const Kernel& kernel, const LaunchConfig& config, Parameters parameters,
                           SourceLoc) override {
    return Ref<LaunchState>(new LaunchState(kernel, config, std::move(parameters)));
  }
  EncodedTensorMap encode(const TensorMap&, SourceLoc) override { return {}; }
  void launch(LaunchState& state, void*, SourceLoc at) override {
    const LoadRequest& source = state.kernel.loaded().source;
    if (source.front_key.empty()) {
      throw Error(ErrorKind::user,
                  id + ": " + source.entry +
                      " did not come from KernelCache::get, so that no front "
                      "key would find it in a bundle",
                  at);
    }
    std::lock_guard lock(mutex_);
    std::string key = source.front_key + '\0' + canonical_text(source.options);
    if (noted_.contains(key)) return;
    noted_[std::move(key)] = {
        .front_key = source.front_key,
        .entry = source.entry,
        .target = properties.target,
        .options = canonical_text(source.options),
        .recipe = source.metadata,
        .problem = problem_of_thread,
        .assembled = source.assembled,
        .launch = state.config,
        .parameter_bytes = static_cast<std::int64_t>(state.parameters.bytes().size())};
  }

 private:
  [[noreturn]] void refuse(const char* what, SourceLoc at) const {
    throw Error(ErrorKind::unsupported,
                id + " makes kernels for a GPU that is not here: it has no " + what +
                    "; use emu:" + ptx::to_string(properties.target) + " to run them",
                at);
  }

  std::atomic<DeviceAddress> next_{DeviceAddress{1} << 40};
  mutable std::mutex mutex_;
  std::map<std::string, BundleKernel> noted_;
};

const OfflineBackend& as_offline(const Device& device) {
  return static_cast<const OfflineBackend&>(device.backend());
}

}  // namespace
}  // namespace detail

OfflineCompiler::OfflineCompiler(const DeviceProperties& gpu)
    : device_(detail::Ref<detail::Backend>(new detail::OfflineBackend(gpu))) {}

void OfflineCompiler::set_problem(std::string text) const {
  detail::problem_of_thread = std::move(text);
}

std::vector<BundleKernel> OfflineCompiler::kernels() const {
  return detail::as_offline(device_).noted();
}

}  // namespace tilewright
