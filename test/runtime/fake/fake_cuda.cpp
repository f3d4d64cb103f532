// SPDX-License-Identifier: Apache-2.0
// A CUDA driver without a GPU: memory is the host's, launches are recorded, failures are ordered.
// It answers as the Driver API reference manual says, for what the tests of the CUDA device use.
#include "runtime/fake/fake_cuda.h"

#include "runtime/cuda_driver.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

namespace cuda = tilewright::cuda;

namespace {

constexpr int kInvalidValue = 1;
constexpr int kNotInitialized = 3;
constexpr int kInvalidContext = 201;
constexpr int kCaptureUnsupported = 900;
constexpr int kIllegalAddress = 700;

struct FakeStream {
  bool capturing = false;
  std::size_t captured = 0;
};

struct State {
  bool initialised = false;
  cuda::Context current = nullptr;
  std::string failing_call;
  int failing_result = 0;
  FakeCudaStatus status;
};

State& state() {
  static State instance;
  return instance;
}

cuda::Context primary() { return reinterpret_cast<cuda::Context>(std::uintptr_t{0x1000}); }

/// What every call answers first: an ordered failure, or a missing context.
int enter(const char* call) {
  State& s = state();
  if (s.failing_call == call) return s.failing_result;
  if (!s.initialised) return kNotInitialized;
  return s.current == nullptr ? kInvalidContext : 0;
}

FakeStream* fake(cuda::Stream stream) { return reinterpret_cast<FakeStream*>(stream); }

/// Work that a capture keeps; true if it is not to be done now.
bool captured(cuda::Stream stream) {
  if (stream == nullptr || !fake(stream)->capturing) return false;
  ++fake(stream)->captured;
  return true;
}

void* host(cuda::Address address) { return reinterpret_cast<void*>(address); }

}  // namespace

extern "C" {

FakeCudaStatus* fake_cuda_status() { return &state().status; }
void fake_cuda_fail(const char* call, int result) {
  state().failing_call = call;
  state().failing_result = result;
}
void fake_cuda_set_current(void* context) { state().current = static_cast<cuda::Context>(context); }

int cuInit(unsigned) {
  state().initialised = true;
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}
int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return 0;
}
int cuDeviceGetName(char* name, int bytes, int) {
  std::strncpy(name, "Fake H200", static_cast<std::size_t>(bytes));
  return 0;
}
int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{1} << 30;
  return 0;
}
int cuDeviceGetAttribute(int* value, int attribute, int) {
  static const std::map<int, int> values{
      {cuda::kAttrSmCount, 132},           {cuda::kAttrL2Bytes, 52'428'800},
      {cuda::kAttrThreadsPerSm, 2048},     {cuda::kAttrCapabilityMajor, 9},
      {cuda::kAttrCapabilityMinor, 0},     {cuda::kAttrSmemPerSm, 233'472},
      {cuda::kAttrRegistersPerSm, 65'536}, {cuda::kAttrSmemPerBlockOptin, 232'448}};
  auto found = values.find(attribute);
  if (found == values.end()) return kInvalidValue;
  *value = found->second;
  return 0;
}
int cuDevicePrimaryCtxRetain(cuda::Context* context, int) {
  *context = primary();
  ++state().status.primary_contexts;
  return 0;
}
int cuDevicePrimaryCtxRelease_v2(int) {
  --state().status.primary_contexts;
  return 0;
}
int cuCtxGetCurrent(cuda::Context* context) {
  *context = state().current;
  return 0;
}
int cuCtxPushCurrent_v2(cuda::Context context) {
  ++state().status.context_pushes;
  state().current = context;
  return 0;
}
int cuCtxPopCurrent_v2(cuda::Context* context) {
  *context = state().current;
  state().current = nullptr;  // the fake's stack is one deep
  return 0;
}
int cuCtxSetCurrent(cuda::Context context) {
  state().current = context;
  return enter("cuCtxSetCurrent");
}
int cuCtxGetDevice(int* device) {
  *device = 1;
  return enter("cuCtxGetDevice");
}
int cuCtxSynchronize() { return enter("cuCtxSynchronize"); }
int cuDeviceCanAccessPeer(int* can, int from, int to) {
  *can = from != to ? 1 : 0;
  return state().failing_call == "cuDeviceCanAccessPeer" ? (*can = 0) : 0;
}
int cuCtxEnablePeerAccess(cuda::Context, unsigned) {
  ++state().status.peer_accesses;
  return enter("cuCtxEnablePeerAccess");
}

int cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* total_bytes) {
  *free_bytes = 1000;
  *total_bytes = 2000;
  return enter("cuMemGetInfo");
}
int cuMemAlloc_v2(cuda::Address* address, std::size_t bytes) {
  int result = enter("cuMemAlloc");
  if (result != 0) return result;
  ++state().status.allocations;
  *address = reinterpret_cast<cuda::Address>(std::malloc(bytes));
  return 0;
}
int cuMemFree_v2(cuda::Address address) {
  int result = enter("cuMemFree");
  if (result != 0) return result;
  --state().status.allocations;
  std::free(host(address));
  return 0;
}
int cuMemcpyHtoDAsync_v2(cuda::Address to, const void* from, std::size_t bytes,
                         cuda::Stream stream) {
  int result = enter("cuMemcpyHtoD");
  if (result == 0 && !captured(stream)) std::memcpy(host(to), from, bytes);
  return result;
}
int cuMemcpyHtoD_v2(cuda::Address to, const void* from, std::size_t bytes) {
  return cuMemcpyHtoDAsync_v2(to, from, bytes, nullptr);
}
int cuMemcpyDtoHAsync_v2(void* to, cuda::Address from, std::size_t bytes, cuda::Stream stream) {
  int result = enter("cuMemcpyDtoH");
  if (result == 0 && !captured(stream)) std::memcpy(to, host(from), bytes);
  return result;
}
int cuMemcpyDtoH_v2(void* to, cuda::Address from, std::size_t bytes) {
  return cuMemcpyDtoHAsync_v2(to, from, bytes, nullptr);
}
int cuMemcpyDtoDAsync_v2(cuda::Address to, cuda::Address from, std::size_t bytes,
                         cuda::Stream stream) {
  return cuMemcpyHtoDAsync_v2(to, host(from), bytes, stream);
}
int cuMemsetD8Async(cuda::Address to, unsigned char value, std::size_t bytes, cuda::Stream stream) {
  int result = enter("cuMemsetD8Async");
  if (result == 0 && !captured(stream)) std::memset(host(to), value, bytes);
  return result;
}

int cuStreamCreate(cuda::Stream* stream, unsigned) {
  int result = enter("cuStreamCreate");
  if (result != 0) return result;
  ++state().status.streams;
  *stream = reinterpret_cast<cuda::Stream>(new FakeStream);
  return 0;
}
int cuStreamDestroy_v2(cuda::Stream stream) {
  --state().status.streams;
  delete fake(stream);
  return enter("cuStreamDestroy");
}
int cuStreamSynchronize(cuda::Stream) { return enter("cuStreamSynchronize"); }
int cuStreamQuery(cuda::Stream) { return enter("cuStreamQuery"); }
int cuStreamWaitEvent(cuda::Stream, cuda::Event, unsigned) { return enter("cuStreamWaitEvent"); }
int cuEventCreate(cuda::Event* event, unsigned) {
  *event = reinterpret_cast<cuda::Event>(new int);
  return enter("cuEventCreate");
}
int cuEventDestroy_v2(cuda::Event event) {
  delete reinterpret_cast<int*>(event);
  return enter("cuEventDestroy");
}
int cuEventRecord(cuda::Event, cuda::Stream) { return enter("cuEventRecord"); }
int cuEventSynchronize(cuda::Event) { return enter("cuEventSynchronize"); }
int cuEventElapsedTime(float* ms, cuda::Event, cuda::Event) {
  *ms = 1.5F;
  return enter("cuEventElapsedTime");
}

int cuStreamGetCaptureInfo_v2(cuda::Stream stream, int* capturing, unsigned long long* id,
                              cuda::Graph*, const cuda::GraphNode**, std::size_t*) {
  *capturing = stream != nullptr && fake(stream)->capturing ? cuda::kCaptureActive : 0;
  *id = 77;
  return enter("cuStreamGetCaptureInfo");
}
int cuStreamBeginCapture_v2(cuda::Stream stream, int mode) {
  if (stream == nullptr || mode != cuda::kCaptureThreadLocal) return kCaptureUnsupported;
  *fake(stream) = FakeStream{.capturing = true, .captured = 0};
  return enter("cuStreamBeginCapture");
}
int cuStreamEndCapture(cuda::Stream stream, cuda::Graph* graph) {
  *graph = reinterpret_cast<cuda::Graph>(new std::size_t(fake(stream)->captured));
  ++state().status.graphs;
  fake(stream)->capturing = false;
  return enter("cuStreamEndCapture");
}
int cuGraphGetNodes(cuda::Graph graph, cuda::GraphNode*, std::size_t* count) {
  *count = *reinterpret_cast<std::size_t*>(graph);
  return 0;
}
int cuGraphInstantiateWithFlags(cuda::GraphExec* exec, cuda::Graph, unsigned long long) {
  int result = enter("cuGraphInstantiateWithFlags");
  if (result != 0) return result;
  ++state().status.graph_execs;
  *exec = reinterpret_cast<cuda::GraphExec>(std::uintptr_t{0x2000});
  return 0;
}
int cuGraphLaunch(cuda::GraphExec, cuda::Stream) {
  ++state().status.graph_launches;
  return enter("cuGraphLaunch");
}
int cuGraphDestroy(cuda::Graph graph) {
  --state().status.graphs;
  delete reinterpret_cast<std::size_t*>(graph);
  return 0;
}
int cuGraphExecDestroy(cuda::GraphExec) {
  --state().status.graph_execs;
  return 0;
}

int cuModuleLoadDataEx(cuda::Module* module, const void* image, unsigned count, int* options,
                       void** values) {
  int result = enter("cuModuleLoadDataEx");
  FakeCudaStatus& status = state().status;
  std::string text = static_cast<const char*>(image);
  for (unsigned i = 0; i < count; ++i) {
    auto* buffer = static_cast<char*>(values[i]);
    if (options[i] == cuda::kJitErrorLog && result != 0) std::strcpy(buffer, "line 3: bad");
    if (options[i] == cuda::kJitInfoLog) std::strcpy(buffer, status.jit_log);
  }
  if (result != 0) return result;
  ++status.modules;
  *module = reinterpret_cast<cuda::Module>(std::uintptr_t{0x3000});
  return 0;
}
int cuModuleUnload(cuda::Module) {
  --state().status.modules;
  return enter("cuModuleUnload");
}
int cuModuleGetFunction(cuda::Function* function, cuda::Module, const char* name) {
  *function = reinterpret_cast<cuda::Function>(std::uintptr_t{0x4000});
  return std::string(name) == "missing" ? cuda::kErrorNotFound : enter("cuModuleGetFunction");
}
int cuLibraryLoadData(cuda::Library* library, const void*, int*, void**, unsigned, int*, void**,
                      unsigned) {
  int result = enter("cuLibraryLoadData");
  if (result != 0) return result;
  ++state().status.libraries;
  *library = reinterpret_cast<cuda::Library>(std::uintptr_t{0x5000});
  return 0;
}
int cuLibraryUnload(cuda::Library) {
  --state().status.libraries;
  return enter("cuLibraryUnload");
}
int cuLibraryGetKernel(cuda::Kernel* kernel, cuda::Library, const char* name) {
  *kernel = reinterpret_cast<cuda::Kernel>(std::uintptr_t{0x6000});
  return std::string(name) == "missing" ? cuda::kErrorNotFound : enter("cuLibraryGetKernel");
}
int cuKernelGetFunction(cuda::Function* function, cuda::Kernel) {
  *function = reinterpret_cast<cuda::Function>(std::uintptr_t{0x4000});
  return enter("cuKernelGetFunction");
}
int cuFuncGetAttribute(int* value, int attribute, cuda::Function) {
  static const std::map<int, int> values{{cuda::kFuncMaxThreads, 512},
                                         {cuda::kFuncStaticSmem, 1024},
                                         {cuda::kFuncLocalBytes, 16},
                                         {cuda::kFuncRegisters, 40}};
  *value = values.at(attribute);
  return enter("cuFuncGetAttribute");
}
int cuFuncSetAttribute(cuda::Function, int attribute, int value) {
  if (attribute == cuda::kFuncMaxDynamicSmem) state().status.max_dynamic_smem = value;
  if (attribute == cuda::kFuncNonPortableCluster) state().status.non_portable_cluster = value;
  return enter("cuFuncSetAttribute");
}
int cuFuncGetParamInfo(cuda::Function, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  if (index > 1) return kInvalidValue;
  if (state().status.takes_tensor_map != 0) {  // an int and a tensor map, as on sm_90
    *offset = index == 0 ? 0 : 48;
    *bytes = index == 0 ? 4 : 128;
    return 0;
  }
  // Two parameters: an address and an int.
  *offset = index == 0 ? 0 : 8;
  *bytes = index == 0 ? 8 : 4;
  return 0;
}
int cuLaunchKernelEx(const cuda::LaunchConfig* config, cuda::Function, void** parameters,
                     void** extra) {
  int result = enter("cuLaunchKernelEx");
  if (result != 0) return result;
  FakeCudaStatus& status = state().status;
  FakeCudaLaunch& launch = status.last_launch;
  launch = {};
  std::copy_n(config->grid, 3, launch.grid);
  std::copy_n(config->block, 3, launch.block);
  launch.dynamic_smem_bytes = config->dynamic_smem_bytes;
  launch.stream = config->stream;
  for (unsigned i = 0; i < config->attribute_count; ++i) {
    const cuda::LaunchAttribute& attribute = config->attributes[i];
    if (attribute.id == cuda::kLaunchCluster) std::copy_n(attribute.cluster, 3, launch.cluster);
    if (attribute.id == cuda::kLaunchCooperative) launch.cooperative = attribute.flag;
    if (attribute.id == cuda::kLaunchDependent) launch.dependent = attribute.flag;
  }
  // As a driver in a capture.
  const bool apart = launch.cooperative != 0 || launch.dependent != 0;
  if (apart && extra != nullptr) return kInvalidValue;
  if (apart) {
    std::memcpy(launch.parameters, parameters[0], 8);
    std::memcpy(launch.parameters + 8, parameters[1], 4);
  } else if (parameters != nullptr) {  // of a kernel that takes a tensor map
    if (extra != nullptr) return kInvalidValue;
    std::memcpy(launch.parameters, parameters[0], 4);
    std::memcpy(&launch.map, parameters[1], sizeof launch.map);
  }
  for (; extra != nullptr && extra[0] != nullptr; extra += 2) {
    if (extra[0] == reinterpret_cast<void*>(cuda::kParamBufferBytes)) {
      launch.parameter_bytes = *static_cast<std::size_t*>(extra[1]);
    } else if (extra[0] == reinterpret_cast<void*>(cuda::kParamBuffer)) {
      std::memcpy(launch.parameters, extra[1], 12);
    } else {
      return kIllegalAddress;
    }
  }
  captured(config->stream);
  ++status.launches;
  return 0;
}
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, cuda::Function, int threads,
                                                std::size_t) {
  *blocks = 2048 / threads;
  return enter("cuOccupancyMaxActiveBlocksPerMultiprocessor");
}
int cuOccupancyMaxActiveClusters(int* clusters, cuda::Function, const cuda::LaunchConfig* config) {
  if (config->attribute_count != 1) return kInvalidValue;
  *clusters = 132 / static_cast<int>(config->attributes[0].cluster[0]);
  return enter("cuOccupancyMaxActiveClusters");
}
int cuTensorMapEncodeIm2col(cuda::TensorMap* map, int type, unsigned rank, void* address,
                            const std::uint64_t* extents, const std::uint64_t* strides,
                            const int* lower, const int* upper, std::uint32_t channels,
                            std::uint32_t pixels, const std::uint32_t*, int, int swizzle, int,
                            int fill) {
  if (rank < 3 || rank > 5) return kInvalidValue;
  FakeTensorMap made{.type = type, .rank = rank, .swizzle = swizzle, .fill = fill};
  std::memcpy(&made.address, &address, sizeof address);
  std::copy_n(extents, rank, made.extents);
  std::copy_n(strides, rank - 1, made.strides);
  made.box[0] = channels;
  made.box[1] = pixels;
  made.lower = lower[0];
  made.upper = upper[0];
  static_assert(sizeof made <= sizeof *map);
  std::memcpy(map->bytes, &made, sizeof made);
  return enter("cuTensorMapEncodeIm2col");
}
int cuTensorMapEncodeTiled(cuda::TensorMap* map, int type, unsigned rank, void* address,
                           const std::uint64_t* extents, const std::uint64_t* strides,
                           const std::uint32_t* box, const std::uint32_t*, int, int swizzle, int,
                           int fill) {
  if (rank < 1 || rank > 5) return kInvalidValue;
  FakeTensorMap made{.type = type, .rank = rank, .swizzle = swizzle, .fill = fill};
  std::memcpy(&made.address, &address, sizeof address);
  std::copy_n(extents, rank, made.extents);
  std::copy_n(strides, rank - 1, made.strides);
  std::copy_n(box, rank, made.box);
  static_assert(sizeof made <= sizeof *map);
  std::memcpy(map->bytes, &made, sizeof made);
  return enter("cuTensorMapEncodeTiled");
}
int cuGetErrorName(int error, const char** name) {
  static const std::map<int, const char*> names{{2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
                                                {700, "CUDA_ERROR_ILLEGAL_ADDRESS"}};
  auto found = names.find(error);
  if (found == names.end()) return kInvalidValue;
  *name = found->second;
  return 0;
}
int cuGetErrorString(int error, const char** text) {
  static const std::map<int, const char*> texts{
      {2, "out of memory"},
      {222, "the provided PTX was compiled with an unsupported toolchain."},
      {700, "an illegal memory access was encountered"}};
  auto found = texts.find(error);
  if (found == texts.end()) return kInvalidValue;
  *text = found->second;
  return 0;
}

}  // extern "C"
