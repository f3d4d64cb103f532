// SPDX-License-Identifier: Apache-2.0
// Peer access of GPUs, and emulated devices of one fabric.
#include "tilewright/peers.h"

#include "runtime/cuda_backend.h"
#include "runtime/emu_backend.h"

namespace tilewright {
namespace {

void enable_access(const Device& from, const Device& to, SourceLoc at) {
  auto& backend = static_cast<detail::CudaBackend&>(from.backend());
  auto& peer = static_cast<detail::CudaBackend&>(to.backend());
  const cuda::Driver& driver = backend.driver();
  int can = 0;
  cuda::check(driver.can_access_peer(&can, backend.ordinal(), peer.ordinal()),
              "cuDeviceCanAccessPeer", from.id() + ", " + to.id(), at);
  if (can == 0) {
    throw Error(ErrorKind::unsupported,
                "open_peers: kernels of " + from.id() + " cannot reach memory of " + to.id() +
                    "; nvidia-smi topo -m shows which GPUs are connected",
                at);
  }
  cuda::Scope current(driver, backend.context());
  cuda::Result result = driver.enable_peer_access(peer.context(), 0);
  if (result == cuda::kErrorPeerAlreadyEnabled) return;
  cuda::check(result, "cuCtxEnablePeerAccess", from.id() + ", " + to.id(), at);
}

[[noreturn]] void refuse(const std::string& message, SourceLoc at) {
  throw Error(ErrorKind::user, message, at);
}

}  // namespace

std::vector<Device> open_peers(std::span<const std::string> names, SourceLoc at) {
  auto emulated = [](const std::string& name) { return name.starts_with("emu:"); };
  auto shared = std::make_shared<detail::EmuShared>();
  std::vector<Device> devices;
  for (const std::string& name : names) {
    if (emulated(name) != emulated(names[0]))
      refuse("open_peers: '" + names[0] + "' and '" + name + "' are not of one kind", at);
    if (!emulated(name)) {
      devices.push_back(Device::open(name, at));
    } else {
      devices.emplace_back(detail::open_emulator(ptx::parse_target(name.substr(4), at), shared));
    }
  }
  if (names.empty() || emulated(names[0])) return devices;
  for (const Device& from : devices) {
    for (const Device& to : devices) {
      if (from.id() != to.id()) enable_access(from, to, at);
    }
  }
  return devices;
}

void launch_together(std::span<const PeerLaunch> launches, SourceLoc at) {
  for (std::size_t i = 0; i < launches.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      const Device& device = launches[i].launch.kernel().device();
      if (device == launches[k].launch.kernel().device()) {
        refuse("launch_together: two launches are for " + device.id() +
                   "; kernels that wait for one another run on different devices",
               at);
      }
    }
  }
  if (launches.empty()) return;
  if (launches[0].launch.kernel().device().kind() == DeviceKind::emulated) {
    std::vector<detail::EmuBackend::Together> work;
    for (const PeerLaunch& one : launches)
      work.push_back({&one.launch.state(), one.stream.handle()});
    detail::EmuBackend::launch_together(work, at);
    return;
  }
  for (const PeerLaunch& one : launches)
    one.launch.launch(one.stream, at);
}

}  // namespace tilewright
