// SPDX-License-Identifier: Apache-2.0
// The emulated device of calls on host memory.
#include "python/emulation.h"

#include "tilewright/device.h"

#include <mutex>
#include <nanobind/nanobind.h>
#include <optional>

namespace tilewright::python {
namespace {

struct Emulator {
  std::mutex mutex;
  std::optional<Device> device;
};

Emulator& emulator() {
  static auto* const one = new Emulator();  // outlives what Python runs at exit
  return *one;
}

bool no_signal(void*, std::uint64_t) {
  const nanobind::gil_scoped_acquire acquired;
  return PyErr_CheckSignals() == 0;  // else its exception is set on this thread
}

}  // namespace

emu::Options interruptible(emu::Options options) {
  options.keep_going = &no_signal;
  return options;
}

void throw_if_interrupted() {
  if (PyErr_Occurred() != nullptr) throw nanobind::python_error();
}

void set_emulator(const std::string& target, const emu::Options& options) {
  Device device = Device::open("emu:" + target, SourceLoc{});
  device.set_options(interruptible(options));
  Emulator& emulator = python::emulator();
  const std::lock_guard lock(emulator.mutex);
  emulator.device = std::move(device);
}

std::vector<emu::Diagnostic> run_in_emulator(const Operator& op, const Arguments& arguments,
                                             const std::vector<detail::HostTensor>& tensors) {
  Emulator& emulator = python::emulator();
  const std::lock_guard lock(emulator.mutex);
  if (!emulator.device) {
    emulator.device = Device::open("emu:sm_90a", SourceLoc{});
    emulator.device->set_options(interruptible({}));
  }
  return detail::run_on_copies(*emulator.device, op, arguments, tensors);
}

}  // namespace tilewright::python
