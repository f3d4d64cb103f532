// SPDX-License-Identifier: Apache-2.0
// Loaded kernels, and their launches.
#include "tilewright/kernel.h"

#include "lang/resident_grid.h"
#include "runtime/assemblers.h"
#include "runtime/backend.h"

#include <algorithm>

namespace tilewright {
namespace detail {

void retain(LoadedKernel* loaded) noexcept {
  loaded->owners.fetch_add(1, std::memory_order_relaxed);
}
void release(LoadedKernel* loaded) noexcept {
  if (loaded->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete loaded;
}
void retain(LaunchState* state) noexcept { state->owners.fetch_add(1, std::memory_order_relaxed); }
void release(LaunchState* state) noexcept {
  if (state->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete state;
}

namespace {

bool needs_resident_grid(const LoadRequest& source) {
  std::string symbol = lang::resident_grid_symbol(source.entry);
  auto bytes = source.assembled.bytes.empty() ? std::as_bytes(std::span(source.ptx))
                                              : std::span(source.assembled.bytes);
  auto wanted = std::as_bytes(std::span(symbol));
  return std::search(bytes.begin(), bytes.end(), wanted.begin(), wanted.end()) != bytes.end();
}

}  // namespace

LoadedKernel::LoadedKernel(Backend& owner, LoadRequest loaded_from)
    : backend(owner), source(std::move(loaded_from)) {
  attributes.resident_grid = needs_resident_grid(source);
}

LaunchState::LaunchState(Kernel of, LaunchConfig how, Parameters with)
    : kernel(std::move(of)), config(how), parameters(std::move(with)) {}

}  // namespace detail

Kernel::Kernel(const Device& device, detail::Ref<detail::LoadedKernel> loaded)
    : device_(device), loaded_(std::move(loaded)) {}

const std::string& Kernel::name() const { return loaded_->source.entry; }
const KernelAttributes& Kernel::attributes() const { return loaded_->attributes; }
const std::string& Kernel::metadata() const { return loaded_->source.metadata; }
const Assembled& Kernel::assembled() const { return loaded_->source.assembled; }
const std::string& Kernel::ptx() const { return loaded_->source.ptx; }

int Kernel::blocks_per_sm(int block_threads, std::int64_t dynamic_smem_bytes) const {
  return device_.backend().blocks_per_sm(*loaded_, block_threads, dynamic_smem_bytes);
}

int Kernel::active_clusters(const LaunchConfig& config) const {
  return device_.backend().active_clusters(*loaded_, config);
}

void Kernel::launch(const LaunchConfig& config, const Parameters& parameters, const Stream& stream,
                    SourceLoc at) const {
  prepare(config, parameters, at).launch(stream, at);
}

PreparedLaunch Kernel::prepare(const LaunchConfig& config, Parameters parameters,
                               SourceLoc at) const {
  detail::check_launch(*loaded_, config, parameters.bytes().size(), at);
  return PreparedLaunch(device_.backend().prepare(*this, config, std::move(parameters), at));
}

PreparedLaunch::PreparedLaunch(detail::Ref<detail::LaunchState> state) : state_(std::move(state)) {}

void PreparedLaunch::launch(const Stream& stream, SourceLoc at) const {
  state_->kernel.device().backend().launch(*state_, stream.handle(), at);
}

const Kernel& PreparedLaunch::kernel() const { return state_->kernel; }
const LaunchConfig& PreparedLaunch::config() const { return state_->config; }
Parameters& PreparedLaunch::parameters() { return state_->parameters; }

Kernel load_ptx(const Device& device, const std::string& ptx, std::string_view entry,
                const AssembleOptions& options, SourceLoc at) {
  detail::LoadRequest request{
      .assembled = {}, .ptx = ptx, .entry = std::string(entry), .metadata = {}, .options = options};
  if (device.kind() == DeviceKind::cuda) {
    int max_cuda = device.properties().driver_version;
    if (auto assembler = detail::choose_for_device(ptx, max_cuda, options, at)) {
      request.assembled = detail::assemble_with(*assembler, {ptx, device.target(), options}, at);
    }
  }
  return Kernel(device, device.backend().load(std::move(request), at));
}

Kernel load_cubin(const Device& device, Assembled cubin, std::string_view entry, SourceLoc at) {
  if (device.kind() != DeviceKind::cuda) {
    throw Error(ErrorKind::user,
                "load_cubin: " + device.id() + " runs PTX, not machine code; use load_ptx", at);
  }
  if (cubin.bytes.empty())
    throw Error(ErrorKind::user, "load_cubin: the machine code is empty", at);
  detail::LoadRequest request{.assembled = std::move(cubin),
                              .ptx = {},
                              .entry = std::string(entry),
                              .metadata = {},
                              .options = {}};
  return Kernel(device, device.backend().load(std::move(request), at));
}

}  // namespace tilewright
