// SPDX-License-Identifier: Apache-2.0
// Packs parameters and checks launches against what every device refuses.
#include "tilewright/launch.h"

#include "runtime/backend.h"

#include <algorithm>

namespace tilewright {

std::int64_t count(const Dim3& extents) { return std::int64_t{extents.x} * extents.y * extents.z; }

std::string to_string(const Dim3& extents) {
  return "(" + std::to_string(extents.x) + "," + std::to_string(extents.y) + "," +
         std::to_string(extents.z) + ")";
}

Parameters& Parameters::add_bytes(std::span<const std::byte> bytes, std::size_t alignment) {
  bytes_.resize((bytes_.size() + alignment - 1) / alignment * alignment);
  slots_.push_back({bytes_.size(), bytes.size(), alignment});
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  return *this;
}

void Parameters::set_bytes(std::size_t offset_bytes, std::span<const std::byte> bytes) {
  if (offset_bytes > bytes_.size() || bytes.size() > bytes_.size() - offset_bytes) {
    throw Error(ErrorKind::user, "parameters: " + std::to_string(bytes.size()) +
                                     " bytes at offset " + std::to_string(offset_bytes) +
                                     " do not fit the " + std::to_string(bytes_.size()) +
                                     " bytes that were added");
  }
  std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset_bytes));
}

namespace detail {
namespace {

// CUDA Programming Guide, technical specifications per compute capability.
constexpr int kMaxGridYz = 65'535;
constexpr int kMaxClusterCtas = 16;  // 8 is portable

struct Checker {
  const std::string& kernel;
  SourceLoc at;
  /// `message` makes the text, which no launch that holds pays for.
  template <typename Message>
  void require(bool holds, const Message& message) const {
    if (!holds) throw Error(ErrorKind::user, "launch of " + kernel + ": " + message(), at);
  }
};

bool positive(const Dim3& extents) { return extents.x > 0 && extents.y > 0 && extents.z > 0; }

void check_shape(const Checker& check, const LaunchConfig& config, int max_threads) {
  const Dim3& grid = config.grid;
  const Dim3& block = config.block;
  check.require(positive(grid),
                [&] { return "grid " + to_string(grid) + " is empty; launch nothing instead"; });
  check.require(grid.y <= kMaxGridYz && grid.z <= kMaxGridYz, [&] {
    return "grid " + to_string(grid) + " has over 65535 blocks in y or z; put the long extent in x";
  });
  check.require(positive(block), [&] { return "block " + to_string(block) + " is empty"; });
  check.require(block.x <= 1024 && block.y <= 1024 && block.z <= 64 && count(block) <= max_threads,
                [&] {
                  return "block " + to_string(block) + " has over " + std::to_string(max_threads) +
                         " threads (64 in z), the most that this kernel runs with";
                });
}

void check_cluster(const Checker& check, const LaunchConfig& config) {
  const Dim3& grid = config.grid;
  const Dim3& cluster = config.cluster;
  check.require(
      positive(cluster) && cluster.x <= kMaxClusterCtas && cluster.y <= kMaxClusterCtas &&
          cluster.z <= kMaxClusterCtas && count(cluster) <= kMaxClusterCtas,
      [&] { return "cluster " + to_string(cluster) + " has not between 1 and 16 blocks"; });
  check.require(grid.x % cluster.x == 0 && grid.y % cluster.y == 0 && grid.z % cluster.z == 0, [&] {
    return "grid " + to_string(grid) + " is not a multiple of cluster " + to_string(cluster);
  });
}

}  // namespace

void check_launch(const LoadedKernel& kernel, const LaunchConfig& config, std::size_t param_bytes,
                  SourceLoc at) {
  const KernelAttributes& attributes = kernel.attributes;
  Checker check{kernel.source.entry, at};
  check_shape(check, config, attributes.max_threads_per_block);
  check_cluster(check, config);
  check.require(!attributes.resident_grid || config.cooperative, [] {
    return std::string("the kernel has a GridBarrier, which waits for all blocks; set ") +
           "LaunchConfig::cooperative, with which a grid that does not fit is refused";
  });
  std::int64_t limit = kernel.backend.properties.smem_per_block_bytes;
  std::int64_t smem = config.dynamic_smem_bytes + attributes.static_smem_bytes;
  check.require(config.dynamic_smem_bytes >= 0 && smem <= limit, [&] {
    return std::to_string(attributes.static_smem_bytes) + " static and " +
           std::to_string(config.dynamic_smem_bytes) +
           " dynamic bytes of shared memory exceed the device's " + std::to_string(limit);
  });
  check.require(attributes.parameter_bytes < 0 ||
                    static_cast<std::size_t>(attributes.parameter_bytes) == param_bytes,
                [&] {
                  return "the kernel takes " + std::to_string(attributes.parameter_bytes) +
                         " bytes of parameters, " + std::to_string(param_bytes) + " are given";
                });
}

}  // namespace detail
}  // namespace tilewright
