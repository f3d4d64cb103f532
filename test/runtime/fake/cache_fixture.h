// SPDX-License-Identifier: Apache-2.0
// A kernel cache in a directory of its own, over the fake driver and the fake assembler.
#pragma once

#include "runtime/fake/fake_assembler.h"
#include "runtime/fake/fake_driver.h"
#include "runtime/process.h"
#include "tilewright/cache.h"

#include <string>

namespace tilewright::test {

class CacheTest : public FakeDriver {
 protected:
  std::string path(const char* name = "cache") const { return directory_.file(name); }
  CacheOptions options() const { return {.directory = path(), .verify_hits = true}; }

  KernelSource source() {
    ++traces_;
    return {.ptx = ptx_, .entry = "scale", .metadata = "recipes"};
  }
  /// Asks a cache and a device that have never been used: what a new process does.
  Kernel get_afresh(const std::string& key = "scale v1", const CacheOptions* with = nullptr) {
    KernelCache cache(with == nullptr ? options() : *with);
    Kernel kernel = get(cache, Device::open("cuda:0"), key);
    counters_ = cache.counters();
    warnings_ = cache.warnings();
    return kernel;
  }
  Kernel get(KernelCache& cache, const Device& device, const std::string& key = "scale v1",
             const AssembleOptions& with = {}) {
    return cache.get(
        device, key, [&](ptx::LineInfo) { return source(); }, with);
  }

  FakeAssembler assembler_;
  detail::TemporaryDirectory directory_;
  std::string ptx_ = ".version 8.0\n.target sm_90a\n";
  int traces_ = 0;
  CacheCounters counters_;
  std::vector<std::string> warnings_;
};

}  // namespace tilewright::test
