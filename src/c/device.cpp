// SPDX-License-Identifier: Apache-2.0
// Devices and their memory, and where kernels come from, in C.
#include "c/handle.h"
#include "c/status.h"
#include "runtime/backend.h"
#include "tilewright/bundle.h"
#include "tilewright/cache.h"
#include "tilewright/dependent_launches.h"

#include <optional>
#include <span>

using tilewright::Device;
using tilewright::Error;
using tilewright::ErrorKind;
using tilewright::SourceLoc;
using tilewright::c::guarded;
using tilewright::c::require;

namespace {

std::size_t checked_bytes(std::int64_t bytes, const char* what) {
  if (bytes >= 0) return static_cast<std::size_t>(bytes);
  throw Error(ErrorKind::user,
              std::string(what) + ": " + std::to_string(bytes) + " bytes are below zero");
}

}  // namespace

tw_status tw_device_open(const char* name, tw_device** device) {
  return guarded([&] {
    require(device, "tw_device_open");
    *device = nullptr;
    *device = new tw_device{name == nullptr ? Device::from_current_context(SourceLoc{})
                                            : Device::open(name, SourceLoc{})};
  });
}

void tw_device_close(tw_device* device) { delete device; }

tw_status tw_device_synchronize(tw_device* device) {
  return guarded([&] {
    require(device, "tw_device_synchronize");
    device->device.synchronize();
  });
}

tw_status tw_allocate(tw_device* device, int64_t bytes, uint64_t* address) {
  return guarded([&] {
    require(device, "tw_allocate");
    require(address, "tw_allocate");
    checked_bytes(bytes, "tw_allocate");
    *address = bytes == 0 ? 0 : device->device.backend().allocate(bytes, SourceLoc{});
  });
}

tw_status tw_free(tw_device* device, uint64_t address) {
  return guarded([&] {
    require(device, "tw_free");
    if (address != 0) device->device.backend().free(address);
  });
}

tw_status tw_copy_in(tw_device* device, uint64_t to, const void* from, int64_t bytes) {
  return guarded([&] {
    require(device, "tw_copy_in");
    require(from, "tw_copy_in");
    std::span source(static_cast<const std::byte*>(from), checked_bytes(bytes, "tw_copy_in"));
    device->device.backend().upload(to, source, SourceLoc{});
  });
}

tw_status tw_copy_out(tw_device* device, void* to, uint64_t from, int64_t bytes) {
  return guarded([&] {
    require(device, "tw_copy_out");
    require(to, "tw_copy_out");
    std::span target(static_cast<std::byte*>(to), checked_bytes(bytes, "tw_copy_out"));
    device->device.backend().download(target, from, SourceLoc{});
  });
}

tw_status tw_set_dependent_launches(int wanted) {
  return guarded([&] {
    thread_local std::optional<tilewright::DependentLaunches> launches;
    if (wanted == 0) {
      launches.reset();
    } else if (!launches) {
      launches.emplace();
    }
  });
}

tw_status tw_get_counters(tw_counters* counters) {
  return guarded([&] {
    require(counters, "tw_get_counters");
    const tilewright::CacheCounters found = tilewright::KernelCache::global().counters();
    *counters = {.memory_hits = found.memory_hits,
                 .bundle_hits = found.bundle_hits,
                 .disk_hits = found.front_hits + found.ptx_hits,
                 .compiles = found.assembled};
  });
}

tw_status tw_add_bundle(const char* path) {
  return guarded([&] {
    require(path, "tw_add_bundle");
    tilewright::KernelCache::global().add(tilewright::Bundle::open(path, SourceLoc{}));
  });
}
