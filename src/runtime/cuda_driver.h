// SPDX-License-Identifier: Apache-2.0
// The CUDA driver's interface as this library uses it: own declarations, bound when the program
// runs.
#pragma once

#include "tilewright/error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright::cuda {

// Names, values and layouts are those of the CUDA Driver API reference manual (CUDA 12 and 13).
using Result = int;
using Device = int;
using Address = std::uint64_t;
using Context = struct ContextTag*;
using Module = struct ModuleTag*;
using Library = struct LibraryTag*;
using Kernel = struct KernelTag*;
using Function = struct FunctionTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Graph = struct GraphTag*;
using GraphExec = struct GraphExecTag*;
using GraphNode = struct GraphNodeTag*;

constexpr Result kSuccess = 0;
constexpr Result kErrorNoDevice = 100;
constexpr Result kErrorNoBinaryForGpu = 209;
constexpr Result kErrorInvalidPtx = 218;
constexpr Result kErrorUnsupportedPtxVersion = 222;
constexpr Result kErrorNotFound = 500;
constexpr Result kErrorNotReady = 600;
constexpr Result kErrorPeerAlreadyEnabled = 704;
constexpr Result kErrorNotSupported = 801;
constexpr Result kErrorStubLibrary = 34;

constexpr int kAttrSmCount = 16;
constexpr int kAttrMemoryClockKhz = 36;
constexpr int kAttrMemoryBusBits = 37;
constexpr int kAttrL2Bytes = 38;
constexpr int kAttrThreadsPerSm = 39;
constexpr int kAttrCapabilityMajor = 75;
constexpr int kAttrCapabilityMinor = 76;
constexpr int kAttrSmemPerSm = 81;
constexpr int kAttrRegistersPerSm = 82;
constexpr int kAttrSmemPerBlockOptin = 97;

constexpr int kFuncMaxThreads = 0;
constexpr int kFuncStaticSmem = 1;
constexpr int kFuncLocalBytes = 3;
constexpr int kFuncRegisters = 4;
constexpr int kFuncMaxDynamicSmem = 8;
constexpr int kFuncNonPortableCluster = 14;

constexpr int kJitInfoLog = 3;
constexpr int kJitInfoLogBytes = 4;
constexpr int kJitErrorLog = 5;
constexpr int kJitErrorLogBytes = 6;
constexpr int kJitOptLevel = 7;
constexpr int kJitLogVerbose = 12;
constexpr int kJitLineInfo = 13;

constexpr int kCaptureThreadLocal = 1;
constexpr int kCaptureActive = 1;
constexpr unsigned kEventDefault = 0;
constexpr unsigned kStreamDefault = 0;

constexpr std::uintptr_t kParamEnd = 0;
constexpr std::uintptr_t kParamBuffer = 1;
constexpr std::uintptr_t kParamBufferBytes = 2;

constexpr int kLaunchCooperative = 2;
constexpr int kLaunchCluster = 4;
constexpr int kLaunchDependent = 6;

struct LaunchAttribute {
  int id = 0;
  char pad[4] = {};
  union {
    char bytes[64] = {};
    int flag;
    unsigned cluster[3];
  };
};
static_assert(sizeof(LaunchAttribute) == 72,
              "CUlaunchAttribute: an id, padding, 64 bytes of value");

/// CUtensorMap: opaque, 128 bytes aligned to 64.
struct alignas(64) TensorMap {
  std::byte bytes[128];
};
// CUtensorMapInterleave, CUtensorMapL2promotion.
constexpr int kInterleaveNone = 0;
constexpr int kL2Promotion128 = 2;

struct LaunchConfig {
  unsigned grid[3] = {1, 1, 1};
  unsigned block[3] = {1, 1, 1};
  unsigned dynamic_smem_bytes = 0;
  Stream stream = nullptr;
  LaunchAttribute* attributes = nullptr;
  unsigned attribute_count = 0;
};
static_assert(sizeof(LaunchConfig) == 56, "CUlaunchConfig on a 64-bit host");

/// The driver's functions, each under its exported name in cuda_driver.cpp. All return a Result.
struct Driver {
  Result (*init)(unsigned flags) = nullptr;
  Result (*driver_version)(int* version) = nullptr;
  Result (*device_count)(int* count) = nullptr;
  Result (*device_get)(Device* device, int ordinal) = nullptr;
  Result (*device_name)(char* name, int bytes, Device device) = nullptr;
  Result (*device_memory)(std::size_t* bytes, Device device) = nullptr;
  Result (*device_attribute)(int* value, int attribute, Device device) = nullptr;
  Result (*primary_retain)(Context* context, Device device) = nullptr;
  Result (*primary_release)(Device device) = nullptr;
  Result (*context_current)(Context* context) = nullptr;
  Result (*context_push)(Context context) = nullptr;
  Result (*context_pop)(Context* context) = nullptr;
  Result (*context_device)(Device* device) = nullptr;
  Result (*context_synchronize)() = nullptr;
  Result (*can_access_peer)(int* can, Device from, Device to) = nullptr;
  Result (*enable_peer_access)(Context peer, unsigned flags) = nullptr;
  Result (*memory_info)(std::size_t* free, std::size_t* total) = nullptr;
  Result (*allocate)(Address* address, std::size_t bytes) = nullptr;
  Result (*free)(Address address) = nullptr;
  Result (*copy_in)(Address to, const void* from, std::size_t bytes) = nullptr;
  Result (*copy_out)(void* to, Address from, std::size_t bytes) = nullptr;
  Result (*copy_in_async)(Address to, const void* from, std::size_t bytes, Stream stream) = nullptr;
  Result (*copy_out_async)(void* to, Address from, std::size_t bytes, Stream stream) = nullptr;
  Result (*copy_async)(Address to, Address from, std::size_t bytes, Stream stream) = nullptr;
  Result (*fill_async)(Address to, unsigned char value, std::size_t bytes, Stream stream) = nullptr;
  Result (*stream_create)(Stream* stream, unsigned flags) = nullptr;
  Result (*stream_destroy)(Stream stream) = nullptr;
  Result (*stream_synchronize)(Stream stream) = nullptr;
  Result (*stream_capture)(Stream stream, int* status, unsigned long long* id, Graph* graph,
                           const GraphNode** dependencies, std::size_t* count) = nullptr;
  Result (*stream_query)(Stream stream) = nullptr;
  Result (*stream_wait)(Stream stream, Event event, unsigned flags) = nullptr;
  Result (*event_create)(Event* event, unsigned flags) = nullptr;
  Result (*event_destroy)(Event event) = nullptr;
  Result (*event_record)(Event event, Stream stream) = nullptr;
  Result (*event_synchronize)(Event event) = nullptr;
  Result (*event_elapsed)(float* ms, Event start, Event end) = nullptr;
  Result (*capture_begin)(Stream stream, int mode) = nullptr;
  Result (*capture_end)(Stream stream, Graph* graph) = nullptr;
  Result (*graph_instantiate)(GraphExec* exec, Graph graph, unsigned long long flags) = nullptr;
  Result (*graph_launch)(GraphExec exec, Stream stream) = nullptr;
  Result (*graph_nodes)(Graph graph, GraphNode* nodes, std::size_t* count) = nullptr;
  Result (*graph_destroy)(Graph graph) = nullptr;
  Result (*graph_exec_destroy)(GraphExec exec) = nullptr;
  Result (*module_load)(Module* module, const void* image, unsigned count, int* options,
                        void** values) = nullptr;
  Result (*module_unload)(Module module) = nullptr;
  Result (*module_function)(Function* function, Module module, const char* name) = nullptr;
  Result (*function_attribute)(int* value, int attribute, Function function) = nullptr;
  Result (*set_function_attribute)(Function function, int attribute, int value) = nullptr;
  Result (*launch)(const LaunchConfig* config, Function function, void** parameters,
                   void** extra) = nullptr;
  Result (*occupancy)(int* blocks, Function function, int block_threads,
                      std::size_t dynamic_smem_bytes) = nullptr;
  Result (*active_clusters)(int* clusters, Function function, const LaunchConfig* config) = nullptr;
  Result (*tensor_map)(TensorMap* map, int type, unsigned rank, void* address,
                       const std::uint64_t* extents, const std::uint64_t* strides,
                       const std::uint32_t* box, const std::uint32_t* element_strides,
                       int interleave, int swizzle, int l2_promotion, int fill) = nullptr;
  Result (*tensor_map_im2col)(TensorMap* map, int type, unsigned rank, void* address,
                              const std::uint64_t* extents, const std::uint64_t* strides,
                              const int* lower, const int* upper, std::uint32_t channels,
                              std::uint32_t pixels, const std::uint32_t* element_strides,
                              int interleave, int swizzle, int l2_promotion, int fill) = nullptr;
  Result (*error_name)(Result error, const char** name) = nullptr;
  Result (*error_text)(Result error, const char** text) = nullptr;

  // Drivers before CUDA 12.0 (12.4 for the last) do not have these; null then.
  Result (*library_load)(Library* library, const void* code, int* jit_options, void** jit_values,
                         unsigned jit_count, int* options, void** values, unsigned count) = nullptr;
  Result (*library_unload)(Library library) = nullptr;
  Result (*library_kernel)(Kernel* kernel, Library library, const char* name) = nullptr;
  Result (*kernel_function)(Function* function, Kernel kernel) = nullptr;
  Result (*function_parameter)(Function function, std::size_t index, std::size_t* offset,
                               std::size_t* bytes) = nullptr;

  int version = 0;      ///< 13000
  std::string problem;  ///< why there is no usable driver; empty: there is one
};

/// The driver, opened and initialised once a process; `problem` says why it cannot be used.
const Driver& driver();
/// The same. Throws Error(unsupported) with the problem.
const Driver& require_driver(SourceLoc at);

/// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)".
std::string describe(const Driver& driver, Result result);
/// Throws Error for any result but success: "cuMemAlloc of 64 bytes: CUDA_ERROR_...".
void check(Result result, std::string_view call, std::string_view what, SourceLoc at);

/// Makes a context current on this thread while it lives.
class Scope {
 public:
  Scope(const Driver& driver, Context context) noexcept;
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope();

 private:
  const Driver& driver_;
  bool pushed_ = false;
};

}  // namespace tilewright::cuda
