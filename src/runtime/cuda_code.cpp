// SPDX-License-Identifier: Apache-2.0
// Loads code through the CUDA driver and launches it.
#include "runtime/assemblers.h"
#include "runtime/cuda_backend.h"
#include "runtime/ptxas_log.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tilewright::detail {
namespace {

struct CudaKernel : LoadedKernel {
  CudaKernel(CudaBackend& owner, LoadRequest from) : LoadedKernel(owner, std::move(from)) {}
  ~CudaKernel() override {
    const auto& owner = static_cast<const CudaBackend&>(backend);
    cuda::Scope scope(owner.driver(), owner.context());
    if (module != nullptr) owner.driver().module_unload(module);
    if (library != nullptr) owner.driver().library_unload(library);
  }
  cuda::Module module = nullptr;
  cuda::Library library = nullptr;
  cuda::Function function = nullptr;
  std::vector<std::size_t> parameter_bytes;  ///< of each; empty where the driver does not tell
};

struct CudaLaunch : LaunchState {
  using LaunchState::LaunchState;
  cuda::LaunchConfig how;
  std::array<cuda::LaunchAttribute, 3> attributes;
  std::vector<void*> pointers;  ///< to each parameter, where one buffer does not do
};

constexpr std::size_t kWidestScalar = 16;  // alignment up to which a buffer is laid out as PTX is

CudaKernel& as_cuda(const LoadedKernel& kernel) {
  // The function handle is not part of what const promises to callers.
  return static_cast<CudaKernel&>(const_cast<LoadedKernel&>(kernel));
}

/// A number that the driver takes in place of an address.
void* as_pointer(std::uintptr_t value) { return std::bit_cast<void*>(value); }

void check_found(cuda::Result result, const char* call, const std::string& entry, SourceLoc at) {
  if (result == cuda::kErrorNotFound) {
    throw Error(ErrorKind::user, "load: the code has no entry '" + entry + "'", at);
  }
  cuda::check(result, call, entry, at);
}

/// Machine code: as a library where the driver has those, else as a module.
void load_machine_code(const cuda::Driver& driver, CudaKernel& kernel, SourceLoc at) {
  const std::string& entry = kernel.source.entry;
  const void* image = kernel.source.assembled.bytes.data();
  if (driver.library_load != nullptr && driver.library_kernel != nullptr &&
      driver.kernel_function != nullptr) {
    cuda::Kernel handle = nullptr;
    cuda::check(
        driver.library_load(&kernel.library, image, nullptr, nullptr, 0, nullptr, nullptr, 0),
        "cuLibraryLoadData", entry, at);
    check_found(driver.library_kernel(&handle, kernel.library, entry.c_str()), "cuLibraryGetKernel",
                entry, at);
    cuda::check(driver.kernel_function(&kernel.function, handle), "cuKernelGetFunction", entry, at);
    return;
  }
  cuda::check(driver.module_load(&kernel.module, image, 0, nullptr, nullptr), "cuModuleLoadDataEx",
              entry, at);
  check_found(driver.module_function(&kernel.function, kernel.module, entry.c_str()),
              "cuModuleGetFunction", entry, at);
}

/// The text up to its NUL: the driver fills a buffer of fixed size.
std::string log_text(const std::vector<char>& buffer) {
  return {buffer.begin(), std::find(buffer.begin(), buffer.end(), '\0')};
}

/// PTX text: the driver assembles it.
void load_text(const cuda::Driver& driver, CudaKernel& kernel, SourceLoc at) {
  const std::string& entry = kernel.source.entry;
  const AssembleOptions& options = kernel.source.options;
  std::vector<char> info(16'384);
  std::vector<char> errors(16'384);
  std::array names{cuda::kJitInfoLog,       cuda::kJitInfoLogBytes, cuda::kJitErrorLog,
                   cuda::kJitErrorLogBytes, cuda::kJitLogVerbose,   cuda::kJitOptLevel,
                   cuda::kJitLineInfo};
  std::array<void*, 7> values{info.data(),
                              as_pointer(info.size() - 1),
                              errors.data(),
                              as_pointer(errors.size() - 1),
                              as_pointer(1),
                              as_pointer(static_cast<std::uintptr_t>(options.opt_level)),
                              as_pointer(options.line_info ? 1 : 0)};
  cuda::Result result =
      driver.module_load(&kernel.module, kernel.source.ptx.c_str(),
                         static_cast<unsigned>(names.size()), names.data(), values.data());
  std::string log = log_text(errors);
  if (result != cuda::kSuccess) {
    std::string what = log.empty() ? entry : entry + ": " + log + remedy_for(log);
    cuda::check(result, "cuModuleLoadDataEx", what, at);
  }
  Assembled& assembled = kernel.source.assembled;
  assembled.assembler = "driver " + std::to_string(driver.version / 1000) + "." +
                        std::to_string(driver.version % 1000 / 10);
  assembled.log = log_text(info);
  assembled.resources = parse_resources(assembled.log);
  refuse_advisories(assembled.log, options.allowed_advisories, at);
  check_found(driver.module_function(&kernel.function, kernel.module, entry.c_str()),
              "cuModuleGetFunction", entry, at);
}

void read_attributes(const cuda::Driver& driver, CudaKernel& kernel, SourceLoc at) {
  auto attribute = [&](int which) {
    int value = 0;
    cuda::check(driver.function_attribute(&value, which, kernel.function), "cuFuncGetAttribute",
                kernel.source.entry, at);
    return value;
  };
  KernelAttributes& attributes = kernel.attributes;
  attributes.registers = attribute(cuda::kFuncRegisters);
  attributes.local_bytes = attribute(cuda::kFuncLocalBytes);
  attributes.static_smem_bytes = attribute(cuda::kFuncStaticSmem);
  attributes.max_threads_per_block = attribute(cuda::kFuncMaxThreads);
  if (driver.function_parameter == nullptr) return;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  std::size_t end = 0;
  bool as_in_ptx = true;
  for (std::size_t i = 0;
       driver.function_parameter(kernel.function, i, &offset, &bytes) == cuda::kSuccess; ++i) {
    // The driver counts from an address that is a multiple of 16 only: a gap shows a tensor map.
    as_in_ptx &= offset - end < kWidestScalar;
    end = offset + bytes;
    kernel.parameter_bytes.push_back(bytes);
  }
  attributes.parameter_bytes = as_in_ptx ? static_cast<std::int64_t>(end) : -1;
}

/// Parameters of wider alignment lie elsewhere in the driver's layout than in PTX's (where that is
/// depends on the target), and captures of cooperative launches refused one buffer of parameters
/// (driver 580): the driver is given each one's address instead, of dependent launches too.
void point_to_parameters(CudaLaunch& state, const CudaKernel& kernel, SourceLoc at) {
  const std::vector<Parameters::Slot>& slots = state.parameters.slots();
  bool wide = std::any_of(slots.begin(), slots.end(), [](const Parameters::Slot& slot) {
    return slot.alignment > kWidestScalar;
  });
  bool plain = !state.config.cooperative && !state.config.dependent;
  if (!wide && plain && kernel.attributes.parameter_bytes >= 0) return;
  bool fits = kernel.parameter_bytes.empty() || kernel.parameter_bytes.size() == slots.size();
  for (std::size_t i = 0; fits && i < kernel.parameter_bytes.size(); ++i)
    fits = kernel.parameter_bytes[i] == slots[i].size_bytes;
  if (!fits) {
    throw Error(ErrorKind::user,
                "launch of " + kernel.source.entry + ": the kernel takes " +
                    std::to_string(kernel.parameter_bytes.size()) + " parameters, " +
                    std::to_string(slots.size()) + " of other sizes are given",
                at);
  }
  auto* first = const_cast<std::byte*>(state.parameters.bytes().data());  // the driver reads it
  for (const Parameters::Slot& slot : slots)
    state.pointers.push_back(first + slot.offset_bytes);
}

void allow_dynamic_smem(const cuda::Driver& driver, const CudaKernel& kernel, int device_limit,
                        SourceLoc at) {
  int most = device_limit - static_cast<int>(kernel.attributes.static_smem_bytes);
  cuda::check(driver.set_function_attribute(kernel.function, cuda::kFuncMaxDynamicSmem, most),
              "cuFuncSetAttribute(MAX_DYNAMIC_SHARED_SIZE_BYTES)", kernel.source.entry, at);
}

void set_extents(unsigned (&to)[3], const Dim3& from) {
  to[0] = static_cast<unsigned>(from.x);
  to[1] = static_cast<unsigned>(from.y);
  to[2] = static_cast<unsigned>(from.z);
}

/// `state` must not move: the configuration points to its attributes.
void fill_config(CudaLaunch& state) {
  const LaunchConfig& config = state.config;
  set_extents(state.how.grid, config.grid);
  set_extents(state.how.block, config.block);
  state.how.dynamic_smem_bytes = static_cast<unsigned>(config.dynamic_smem_bytes);
  state.how.attributes = state.attributes.data();
  auto add = [&](int id) -> cuda::LaunchAttribute& {
    cuda::LaunchAttribute& attribute = state.attributes[state.how.attribute_count++];
    attribute.id = id;
    return attribute;
  };
  if (count(config.cluster) > 1) set_extents(add(cuda::kLaunchCluster).cluster, config.cluster);
  if (config.cooperative) add(cuda::kLaunchCooperative).flag = 1;
  if (config.dependent) add(cuda::kLaunchDependent).flag = 1;
}

}  // namespace

Ref<LoadedKernel> CudaBackend::load(LoadRequest request, SourceLoc at) {
  cuda::Scope current = scope();
  auto* kernel = new CudaKernel(*this, std::move(request));
  Ref<LoadedKernel> loaded(kernel);
  if (kernel->source.assembled.bytes.empty()) {
    load_text(driver_, *kernel, at);
  } else {
    load_machine_code(driver_, *kernel, at);
  }
  read_attributes(driver_, *kernel, at);
  allow_dynamic_smem(driver_, *kernel, properties.smem_per_block_bytes, at);
  return loaded;
}

int CudaBackend::blocks_per_sm(const LoadedKernel& kernel, int threads, std::int64_t smem_bytes) {
  cuda::Scope current = scope();
  int blocks = 0;
  cuda::check(driver_.occupancy(&blocks, as_cuda(kernel).function, threads,
                                static_cast<std::size_t>(smem_bytes)),
              "cuOccupancyMaxActiveBlocksPerMultiprocessor", kernel.source.entry, {});
  return blocks;
}

int CudaBackend::active_clusters(const LoadedKernel& kernel, const LaunchConfig& config) {
  cuda::Scope current = scope();
  cuda::LaunchConfig how;
  cuda::LaunchAttribute cluster;
  set_extents(how.grid, config.grid);
  set_extents(how.block, config.block);
  how.dynamic_smem_bytes = static_cast<unsigned>(config.dynamic_smem_bytes);
  cluster.id = cuda::kLaunchCluster;
  set_extents(cluster.cluster, config.cluster);
  how.attributes = &cluster;
  how.attribute_count = 1;
  int clusters = 0;
  cuda::check(driver_.active_clusters(&clusters, as_cuda(kernel).function, &how),
              "cuOccupancyMaxActiveClusters", kernel.source.entry, {});
  return clusters;
}

Ref<LaunchState> CudaBackend::prepare(const Kernel& kernel, const LaunchConfig& config,
                                      Parameters parameters, SourceLoc at) {
  auto* state = new CudaLaunch(kernel, config, std::move(parameters));
  Ref<LaunchState> prepared(state);
  fill_config(*state);
  point_to_parameters(*state, as_cuda(kernel.loaded()), at);
  if (count(config.cluster) > 8) {  // more than 8 blocks are not portable and asked for by name
    cuda::Scope current = scope();
    cuda::check(driver_.set_function_attribute(as_cuda(kernel.loaded()).function,
                                               cuda::kFuncNonPortableCluster, 1),
                "cuFuncSetAttribute(NON_PORTABLE_CLUSTER_SIZE_ALLOWED)", kernel.name(), at);
  }
  return prepared;
}

void CudaBackend::launch(LaunchState& state, void* stream, SourceLoc at) {
  cuda::Scope current = scope();
  auto& prepared = static_cast<CudaLaunch&>(state);
  cuda::LaunchConfig how = prepared.how;
  how.stream = static_cast<cuda::Stream>(stream);
  std::span<const std::byte> bytes = state.parameters.bytes();
  std::size_t size_bytes = bytes.size();
  void* extra[] = {as_pointer(cuda::kParamBuffer),
                   const_cast<std::byte*>(bytes.data()),  // the driver only reads it
                   as_pointer(cuda::kParamBufferBytes), &size_bytes, as_pointer(cuda::kParamEnd)};
  bool apart = !prepared.pointers.empty();
  cuda::Result result = driver_.launch(&how, as_cuda(state.kernel.loaded()).function,
                                       apart ? prepared.pointers.data() : nullptr,
                                       apart || bytes.empty() ? nullptr : extra);
  if (result != cuda::kSuccess) {
    cuda::check(result, "cuLaunchKernelEx",
                state.kernel.name() + " with grid " + to_string(state.config.grid) + ", block " +
                    to_string(state.config.block),
                at);
  }
}

}  // namespace tilewright::detail
