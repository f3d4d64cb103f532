// SPDX-License-Identifier: Apache-2.0
// Opens devices by name.
#include "tilewright/device.h"

#include "runtime/backend.h"
#include "runtime/cuda_driver.h"
#include "runtime/emu_backend.h"

#include <charconv>

namespace tilewright {
namespace detail {

void retain(Backend* backend) noexcept { backend->owners.fetch_add(1, std::memory_order_relaxed); }
void release(Backend* backend) noexcept {
  if (backend->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete backend;
}

Backend::Backend(DeviceKind device_kind, std::string device_id)
    : kind(device_kind), id(std::move(device_id)), kernels(make_memory_cache()) {}
Backend::~Backend() = default;

}  // namespace detail

Device Device::open(std::string_view name, SourceLoc at) {
  if (name.starts_with("emu:")) {
    return Device(detail::open_emulator(ptx::parse_target(name.substr(4), at)));
  }
  if (name.starts_with("cuda:")) {
    std::string_view number = name.substr(5);
    int ordinal = -1;
    auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), ordinal);
    if (error == std::errc() && end == number.data() + number.size() && ordinal >= 0) {
      return Device(detail::open_cuda(ordinal, at));
    }
  }
  throw Error(ErrorKind::user,
              "unknown device '" + std::string(name) +
                  "'; a device is cuda:N with the number of a GPU, or emu:sm_90a with a target",
              at);
}

Device Device::from_current_context(SourceLoc at) {
  return Device(detail::open_current_cuda_context(at));
}

int Device::cuda_count() {
  const cuda::Driver& driver = cuda::driver();
  int count = 0;
  if (driver.problem.empty()) driver.device_count(&count);
  return count;
}

std::string Device::why_no_cuda() { return cuda::driver().problem; }

DeviceKind Device::kind() const { return backend_->kind; }
const std::string& Device::id() const { return backend_->id; }
const DeviceProperties& Device::properties() const { return backend_->properties; }
MemoryInfo Device::memory() const { return backend_->memory(); }
void Device::synchronize() const { backend_->synchronize(SourceLoc{}); }

emu::Machine& Device::emulator(SourceLoc at) const {
  return detail::as_emulator(*backend_, "emulator", at).machine;
}

void Device::set_options(const emu::Options& options) const {
  if (kind() != DeviceKind::emulated) return;
  detail::as_emulator(*backend_, "set_options", {}).options = options;
}

const emu::Options& Device::options(SourceLoc at) const {
  return detail::as_emulator(*backend_, "options", at).options;
}

const emu::LaunchReport& Device::last_report(SourceLoc at) const {
  return detail::as_emulator(*backend_, "last_report", at).last_report;
}

const std::vector<emu::Diagnostic>& Device::findings() const {
  static const std::vector<emu::Diagnostic> none;
  if (kind() != DeviceKind::emulated) return none;
  return detail::as_emulator(*backend_, "findings", {}).findings;
}

std::vector<emu::Diagnostic> Device::take_findings() const {
  if (kind() != DeviceKind::emulated) return {};
  return std::exchange(detail::as_emulator(*backend_, "take_findings", {}).findings, {});
}

}  // namespace tilewright
