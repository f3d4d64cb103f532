// SPDX-License-Identifier: Apache-2.0
// A GPU's memory, streams, events and graphs through the CUDA driver.
#include "runtime/cuda_backend.h"

namespace tilewright::detail {
namespace {

struct CudaGraph : GraphState {
  CudaGraph(Device on, const cuda::Driver& with, cuda::Context in)
      : GraphState(std::move(on)), driver(with), context(in) {}
  ~CudaGraph() override {
    cuda::Scope scope(driver, context);
    if (exec != nullptr) driver.graph_exec_destroy(exec);
  }
  const cuda::Driver& driver;
  cuda::Context context;
  cuda::GraphExec exec = nullptr;
};

cuda::Stream as_stream(void* handle) { return static_cast<cuda::Stream>(handle); }
cuda::Event as_event(void* handle) { return static_cast<cuda::Event>(handle); }

std::string bytes_text(std::int64_t bytes) { return std::to_string(bytes) + " bytes"; }

DeviceProperties read_properties(const cuda::Driver& driver, cuda::Device device) {
  auto attribute = [&](int which) {
    int value = 0;
    return driver.device_attribute(&value, which, device) == cuda::kSuccess ? value : 0;
  };
  char name[256] = "";
  std::size_t memory_bytes = 0;
  driver.device_name(name, sizeof name, device);
  driver.device_memory(&memory_bytes, device);
  int sm = attribute(cuda::kAttrCapabilityMajor) * 10 + attribute(cuda::kAttrCapabilityMinor);
  return {.name = name,
          .target = {sm, sm >= 90 ? 'a' : '\0'},
          .sm_count = attribute(cuda::kAttrSmCount),
          .driver_version = driver.version,
          .max_threads_per_sm = attribute(cuda::kAttrThreadsPerSm),
          .smem_per_block_bytes = attribute(cuda::kAttrSmemPerBlockOptin),
          .smem_per_sm_bytes = attribute(cuda::kAttrSmemPerSm),
          .registers_per_sm = attribute(cuda::kAttrRegistersPerSm),
          .l2_bytes = attribute(cuda::kAttrL2Bytes),
          .memory_bytes = static_cast<std::int64_t>(memory_bytes),
          .memory_clock_khz = attribute(cuda::kAttrMemoryClockKhz),
          .memory_bus_bits = attribute(cuda::kAttrMemoryBusBits)};
}

}  // namespace

CudaBackend::CudaBackend(const cuda::Driver& driver, cuda::Device ordinal, cuda::Context context,
                         Ownership ownership)
    : Backend(DeviceKind::cuda, "cuda:" + std::to_string(ordinal)),
      driver_(driver),
      device_(ordinal),
      context_(context),
      ownership_(ownership) {
  properties = read_properties(driver, ordinal);
}

CudaBackend::~CudaBackend() {
  kernels.reset();  // unloads them, which needs the context
  if (ownership_ == Ownership::primary) driver_.primary_release(device_);
}

MemoryInfo CudaBackend::memory() {
  cuda::Scope current = scope();
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  cuda::check(driver_.memory_info(&free_bytes, &total_bytes), "cuMemGetInfo", {}, {});
  return {.free_bytes = static_cast<std::int64_t>(free_bytes),
          .total_bytes = static_cast<std::int64_t>(total_bytes)};
}

void CudaBackend::synchronize(SourceLoc at) {
  cuda::Scope current = scope();
  cuda::check(driver_.context_synchronize(), "cuCtxSynchronize", {}, at);
}

DeviceAddress CudaBackend::allocate(std::int64_t bytes, SourceLoc at) {
  cuda::Scope current = scope();
  cuda::Address address = 0;
  cuda::check(driver_.allocate(&address, static_cast<std::size_t>(bytes)), "cuMemAlloc",
              bytes_text(bytes), at);
  return address;
}

void CudaBackend::free(DeviceAddress address) noexcept {
  cuda::Scope current = scope();
  driver_.free(address);
}

void CudaBackend::upload(DeviceAddress to, std::span<const std::byte> from, SourceLoc at) {
  cuda::Scope current = scope();
  std::string what = bytes_text(static_cast<std::int64_t>(from.size()));
  cuda::check(driver_.copy_in(to, from.data(), from.size()), "cuMemcpyHtoD", what, at);
  // From pageable memory the copy may still be on its way when the call returns.
  cuda::check(driver_.stream_synchronize(nullptr), "cuStreamSynchronize after cuMemcpyHtoD", what,
              at);
}

void CudaBackend::download(std::span<std::byte> to, DeviceAddress from, SourceLoc at) {
  cuda::Scope current = scope();
  cuda::check(driver_.copy_out(to.data(), from, to.size()), "cuMemcpyDtoH",
              bytes_text(static_cast<std::int64_t>(to.size())), at);
}

void CudaBackend::copy_to_device(DeviceAddress to, std::span<const std::byte> from, void* stream) {
  cuda::Scope current = scope();
  cuda::check(driver_.copy_in_async(to, from.data(), from.size(), as_stream(stream)),
              "cuMemcpyHtoDAsync", bytes_text(static_cast<std::int64_t>(from.size())), {});
}

void CudaBackend::copy_to_host(std::span<std::byte> to, DeviceAddress from, void* stream) {
  cuda::Scope current = scope();
  cuda::check(driver_.copy_out_async(to.data(), from, to.size(), as_stream(stream)),
              "cuMemcpyDtoHAsync", bytes_text(static_cast<std::int64_t>(to.size())), {});
}

void CudaBackend::copy_on_device(DeviceAddress to, DeviceAddress from, std::int64_t bytes,
                                 void* stream) {
  cuda::Scope current = scope();
  cuda::check(driver_.copy_async(to, from, static_cast<std::size_t>(bytes), as_stream(stream)),
              "cuMemcpyDtoDAsync", bytes_text(bytes), {});
}

void CudaBackend::fill(DeviceAddress to, std::byte value, std::int64_t bytes, void* stream) {
  cuda::Scope current = scope();
  cuda::check(driver_.fill_async(to, std::to_integer<unsigned char>(value),
                                 static_cast<std::size_t>(bytes), as_stream(stream)),
              "cuMemsetD8Async", bytes_text(bytes), {});
}

void* CudaBackend::create_stream() {
  cuda::Scope current = scope();
  cuda::Stream stream = nullptr;
  cuda::check(driver_.stream_create(&stream, cuda::kStreamDefault), "cuStreamCreate", {}, {});
  return stream;
}

void CudaBackend::destroy_stream(void* stream) noexcept {
  cuda::Scope current = scope();
  driver_.stream_destroy(as_stream(stream));
}

void CudaBackend::synchronize_stream(void* stream) {
  cuda::Scope current = scope();
  cuda::check(driver_.stream_synchronize(as_stream(stream)), "cuStreamSynchronize", {}, {});
}

bool CudaBackend::stream_done(void* stream) {
  cuda::Scope current = scope();
  cuda::Result result = driver_.stream_query(as_stream(stream));
  if (result == cuda::kErrorNotReady) return false;
  cuda::check(result, "cuStreamQuery", {}, {});
  return true;
}

void CudaBackend::stream_wait(void* stream, void* event) {
  cuda::Scope current = scope();
  cuda::check(driver_.stream_wait(as_stream(stream), as_event(event), 0), "cuStreamWaitEvent", {},
              {});
}

void* CudaBackend::create_event() {
  cuda::Scope current = scope();
  cuda::Event event = nullptr;
  cuda::check(driver_.event_create(&event, cuda::kEventDefault), "cuEventCreate", {}, {});
  return event;
}

void CudaBackend::destroy_event(void* event) noexcept {
  cuda::Scope current = scope();
  driver_.event_destroy(as_event(event));
}

void CudaBackend::record_event(void* event, void* stream) {
  cuda::Scope current = scope();
  cuda::check(driver_.event_record(as_event(event), as_stream(stream)), "cuEventRecord", {}, {});
}

void CudaBackend::synchronize_event(void* event) {
  cuda::Scope current = scope();
  cuda::check(driver_.event_synchronize(as_event(event)), "cuEventSynchronize", {}, {});
}

double CudaBackend::elapsed_ms(void* start, void* end) {
  cuda::Scope current = scope();
  float ms = 0;
  cuda::check(driver_.event_elapsed(&ms, as_event(start), as_event(end)), "cuEventElapsedTime", {},
              {});
  return static_cast<double>(ms);
}

std::uint64_t CudaBackend::capture_id(void* stream) {
  cuda::Scope current = scope();
  int status = 0;
  unsigned long long capture = 0;
  // The default stream answers with an error while another one is captured: it is not.
  const cuda::Result result =
      driver_.stream_capture(as_stream(stream), &status, &capture, nullptr, nullptr, nullptr);
  return result == 0 && status == cuda::kCaptureActive ? capture : 0;
}

void CudaBackend::begin_capture(void* stream) {
  cuda::Scope current = scope();
  cuda::check(driver_.capture_begin(as_stream(stream), cuda::kCaptureThreadLocal),
              "cuStreamBeginCapture", {}, {});
}

Ref<GraphState> CudaBackend::end_capture(const Device& device, void* stream) {
  cuda::Scope current = scope();
  auto* made = new CudaGraph(device, driver_, context_);
  Ref<GraphState> state(made);
  cuda::Graph graph = nullptr;
  cuda::check(driver_.capture_end(as_stream(stream), &graph), "cuStreamEndCapture", {}, {});
  std::size_t nodes = 0;
  driver_.graph_nodes(graph, nullptr, &nodes);
  made->nodes = static_cast<int>(nodes);
  cuda::Result result = driver_.graph_instantiate(&made->exec, graph, 0);
  driver_.graph_destroy(graph);
  cuda::check(result, "cuGraphInstantiateWithFlags", std::to_string(nodes) + " nodes", {});
  return state;
}

void CudaBackend::abandon_capture(void* stream) noexcept {
  cuda::Scope current = scope();
  cuda::Graph graph = nullptr;
  driver_.capture_end(as_stream(stream), &graph);
  if (graph != nullptr) driver_.graph_destroy(graph);
}

void CudaBackend::launch_graph(GraphState& graph, void* stream) {
  cuda::Scope current = scope();
  cuda::check(driver_.graph_launch(static_cast<CudaGraph&>(graph).exec, as_stream(stream)),
              "cuGraphLaunch", {}, {});
}

Ref<Backend> open_cuda(int ordinal, SourceLoc at) {
  const cuda::Driver& driver = cuda::require_driver(at);
  int count = 0;
  cuda::check(driver.device_count(&count), "cuDeviceGetCount", {}, at);
  if (ordinal >= count) {
    throw Error(ErrorKind::unsupported,
                "no device cuda:" + std::to_string(ordinal) + "; this machine has " +
                    std::to_string(count) + ", counted from cuda:0",
                at);
  }
  cuda::Device device = 0;
  cuda::check(driver.device_get(&device, ordinal), "cuDeviceGet", {}, at);
  cuda::Context context = nullptr;
  cuda::check(driver.primary_retain(&context, device), "cuDevicePrimaryCtxRetain",
              "cuda:" + std::to_string(ordinal), at);
  return Ref<Backend>(new CudaBackend(driver, device, context, CudaBackend::Ownership::primary));
}

Ref<Backend> open_current_cuda_context(SourceLoc at) {
  const cuda::Driver& driver = cuda::require_driver(at);
  cuda::Context context = nullptr;
  cuda::check(driver.context_current(&context), "cuCtxGetCurrent", {}, at);
  if (context == nullptr) {
    throw Error(ErrorKind::user,
                "from_current_context: no CUDA context is current on this thread; make one current "
                "or use Device::open",
                at);
  }
  cuda::Device device = 0;
  cuda::check(driver.context_device(&device), "cuCtxGetDevice", {}, at);
  return Ref<Backend>(new CudaBackend(driver, device, context, CudaBackend::Ownership::foreign));
}

}  // namespace tilewright::detail
