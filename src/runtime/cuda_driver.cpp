// SPDX-License-Identifier: Apache-2.0
// Opens the CUDA driver and turns its results into errors.
#include "runtime/cuda_driver.h"

#include <cstdlib>
#include <dlfcn.h>

namespace tilewright::cuda {
namespace {

constexpr const char* kRemedy = "; without a GPU use emu:sm_90a";

/// Looks up exported functions; remembers the first that is missing.
class Binder {
 public:
  explicit Binder(void* library) : library_(library) {}

  template <typename F>
  void optional(F*& slot, const char* exported) {
    // POSIX makes an object pointer from dlsym a function pointer by this cast.
    slot = reinterpret_cast<F*>(dlsym(library_, exported));
  }
  template <typename F>
  void operator()(F*& slot, const char* exported) {
    optional(slot, exported);
    if (slot == nullptr && missing_.empty()) missing_ = exported;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* library_;
  std::string missing_;
};

void bind_setup(Driver& driver, Binder& bind) {
  bind(driver.init, "cuInit");
  bind(driver.driver_version, "cuDriverGetVersion");
  bind(driver.device_count, "cuDeviceGetCount");
  bind(driver.device_get, "cuDeviceGet");
  bind(driver.device_name, "cuDeviceGetName");
  bind(driver.device_memory, "cuDeviceTotalMem_v2");
  bind(driver.device_attribute, "cuDeviceGetAttribute");
  bind(driver.primary_retain, "cuDevicePrimaryCtxRetain");
  bind(driver.primary_release, "cuDevicePrimaryCtxRelease_v2");
  bind(driver.context_current, "cuCtxGetCurrent");
  bind(driver.context_push, "cuCtxPushCurrent_v2");
  bind(driver.context_pop, "cuCtxPopCurrent_v2");
  bind(driver.context_device, "cuCtxGetDevice");
  bind(driver.context_synchronize, "cuCtxSynchronize");
  bind(driver.can_access_peer, "cuDeviceCanAccessPeer");
  bind(driver.enable_peer_access, "cuCtxEnablePeerAccess");
}

void bind_work(Driver& driver, Binder& bind) {
  bind(driver.memory_info, "cuMemGetInfo_v2");
  bind(driver.allocate, "cuMemAlloc_v2");
  bind(driver.free, "cuMemFree_v2");
  bind(driver.copy_in, "cuMemcpyHtoD_v2");
  bind(driver.copy_out, "cuMemcpyDtoH_v2");
  bind(driver.copy_in_async, "cuMemcpyHtoDAsync_v2");
  bind(driver.copy_out_async, "cuMemcpyDtoHAsync_v2");
  bind(driver.copy_async, "cuMemcpyDtoDAsync_v2");
  bind(driver.fill_async, "cuMemsetD8Async");
  bind(driver.stream_create, "cuStreamCreate");
  bind(driver.stream_destroy, "cuStreamDestroy_v2");
  bind(driver.stream_synchronize, "cuStreamSynchronize");
  bind(driver.stream_query, "cuStreamQuery");
  bind(driver.stream_capture, "cuStreamGetCaptureInfo_v2");
  bind(driver.stream_wait, "cuStreamWaitEvent");
  bind(driver.event_create, "cuEventCreate");
  bind(driver.event_destroy, "cuEventDestroy_v2");
  bind(driver.event_record, "cuEventRecord");
  bind(driver.event_synchronize, "cuEventSynchronize");
  bind(driver.event_elapsed, "cuEventElapsedTime");
  bind(driver.capture_begin, "cuStreamBeginCapture_v2");
  bind(driver.capture_end, "cuStreamEndCapture");
  bind(driver.graph_instantiate, "cuGraphInstantiateWithFlags");
  bind(driver.graph_launch, "cuGraphLaunch");
  bind(driver.graph_nodes, "cuGraphGetNodes");
  bind(driver.graph_destroy, "cuGraphDestroy");
  bind(driver.graph_exec_destroy, "cuGraphExecDestroy");
}

void bind_code(Driver& driver, Binder& bind) {
  bind(driver.module_load, "cuModuleLoadDataEx");
  bind(driver.module_unload, "cuModuleUnload");
  bind(driver.module_function, "cuModuleGetFunction");
  bind(driver.function_attribute, "cuFuncGetAttribute");
  bind(driver.set_function_attribute, "cuFuncSetAttribute");
  bind(driver.launch, "cuLaunchKernelEx");
  bind(driver.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  bind(driver.active_clusters, "cuOccupancyMaxActiveClusters");
  bind(driver.tensor_map, "cuTensorMapEncodeTiled");
  bind(driver.tensor_map_im2col, "cuTensorMapEncodeIm2col");
  bind(driver.error_name, "cuGetErrorName");
  bind(driver.error_text, "cuGetErrorString");
  bind.optional(driver.library_load, "cuLibraryLoadData");
  bind.optional(driver.library_unload, "cuLibraryUnload");
  bind.optional(driver.library_kernel, "cuLibraryGetKernel");
  bind.optional(driver.kernel_function, "cuKernelGetFunction");
  bind.optional(driver.function_parameter, "cuFuncGetParamInfo");
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string init_problem(const Driver& driver) {
  Result result = driver.init(0);
  if (result == kErrorNoDevice) return std::string("the CUDA driver sees no device") + kRemedy;
  if (result == kErrorStubLibrary) {
    return std::string("libcuda.so.1 is the toolkit's stub, not a driver") + kRemedy;
  }
  if (result != kSuccess) {
    return "cuInit: " + describe(driver, result) +
           "; check the driver's installation with nvidia-smi" + kRemedy;
  }
  return {};
}

Driver open_driver() {
  Driver driver;
  const char* chosen = std::getenv("TILEWRIGHT_CUDA_DRIVER");  // another file, for tests
  std::string name = chosen == nullptr ? "libcuda.so.1" : chosen;
  void* library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    driver.problem =
        "no CUDA driver: " + name + " was not found; install NVIDIA's driver" + kRemedy;
    return driver;
  }
  Binder bind(library);
  bind_setup(driver, bind);
  bind_work(driver, bind);
  bind_code(driver, bind);
  if (driver.driver_version != nullptr) driver.driver_version(&driver.version);
  if (!bind.missing().empty()) {
    driver.problem = "the CUDA driver is too old: it is for CUDA " + version_text(driver.version) +
                     " and lacks " + bind.missing() + "; install one for CUDA 12.0 or newer" +
                     kRemedy;
    return driver;
  }
  driver.problem = init_problem(driver);
  return driver;
}

bool is_sticky(Result result) {
  // Errors after which every call in the context fails: the manual says so of each.
  return result == 700 || result == 702 || result == 710 || (result >= 714 && result <= 719);
}

ErrorKind kind_of(Result result) {
  bool unsupported = result == kErrorNoDevice || result == kErrorNoBinaryForGpu ||
                     result == kErrorUnsupportedPtxVersion || result == kErrorNotSupported;
  return unsupported ? ErrorKind::unsupported : ErrorKind::user;
}

}  // namespace

const Driver& driver() {
  static const Driver instance = open_driver();
  return instance;
}

const Driver& require_driver(SourceLoc at) {
  const Driver& found = driver();
  if (!found.problem.empty()) throw Error(ErrorKind::unsupported, found.problem, at);
  return found;
}

std::string describe(const Driver& driver, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (driver.error_name(result, &name) != kSuccess || name == nullptr) {
    return "CUDA error " + std::to_string(result);
  }
  std::string described = name;
  if (driver.error_text(result, &text) == kSuccess && text != nullptr) {
    described += std::string(" (") + text + ")";
  }
  return described;
}

void check(Result result, std::string_view call, std::string_view what, SourceLoc at) {
  if (result == kSuccess) return;
  std::string message(call);
  if (!what.empty()) message += " of " + std::string(what);
  message += ": " + describe(driver(), result);
  if (is_sticky(result)) {
    message += "; the CUDA context is lost: find the fault with the same kernel on emu:sm_90a";
  }
  if (result == kErrorUnsupportedPtxVersion) {
    message += "; the driver is for CUDA " + version_text(driver().version) +
               ": install a newer one, or an assembler (see tilewright doctor)";
  }
  throw Error(kind_of(result), std::move(message), at);
}

Scope::Scope(const Driver& driver, Context context) noexcept : driver_(driver) {
  Context current = nullptr;
  if (driver_.context_current(&current) == kSuccess && current == context) return;
  pushed_ = driver_.context_push(context) == kSuccess;
}

Scope::~Scope() {
  Context popped = nullptr;
  if (pushed_) driver_.context_pop(&popped);
}

}  // namespace tilewright::cuda
