// SPDX-License-Identifier: Apache-2.0
// GPUs that host plans can be made for without having one.
#include "tilewright/offline_compiler.h"

namespace tilewright {
namespace {

struct KnownGpu {
  const char* name;
  ptx::Target target;
  int sm_count;
  int smem_per_block_bytes;
  int smem_per_sm_bytes;
  std::int64_t l2_mib;
  std::int64_t memory_gib;
};

// Whitepapers of the A100, H100 and H200 GPUs; CUDA Programming Guide, technical specifications per
// compute capability. The names are those that the driver gives.
constexpr KnownGpu kGpus[] = {
    {"NVIDIA A100-SXM4-80GB", {80, '\0'}, 108, 166'912, 167'936, 40, 80},
    {"NVIDIA H100 80GB HBM3", {90, 'a'}, 132, 232'448, 233'472, 50, 80},
    {"NVIDIA H200", {90, 'a'}, 132, 232'448, 233'472, 60, 141},
};

}  // namespace

DeviceProperties known_gpu(std::string_view name, SourceLoc at) {
  std::string names;
  for (const KnownGpu& gpu : kGpus) {
    if (gpu.name == name) {
      return {.name = gpu.name,
              .target = gpu.target,
              .sm_count = gpu.sm_count,
              .driver_version = 0,
              .max_threads_per_sm = 2048,
              .smem_per_block_bytes = gpu.smem_per_block_bytes,
              .smem_per_sm_bytes = gpu.smem_per_sm_bytes,
              .registers_per_sm = 65'536,
              .l2_bytes = gpu.l2_mib << 20,
              .memory_bytes = gpu.memory_gib << 30,
              .memory_clock_khz = 0,
              .memory_bus_bits = 0};
    }
    names += (names.empty() ? "" : ", ") + std::string(gpu.name);
  }
  throw Error(ErrorKind::user,
              "no GPU is known as '" + std::string(name) + "'; known are " + names +
                  "; on a machine with one take its properties from cuda:N",
              at);
}

std::vector<std::string> known_gpus() {
  std::vector<std::string> names;
  for (const KnownGpu& gpu : kGpus)
    names.emplace_back(gpu.name);
  return names;
}

}  // namespace tilewright
