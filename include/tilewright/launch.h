// SPDX-License-Identifier: Apache-2.0
// How a kernel is launched: its grid, its attributes and its packed parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace tilewright {

/// Extents of a grid, cluster or block.
struct Dim3 {
  int x = 1;
  int y = 1;
  int z = 1;
  friend bool operator==(const Dim3&, const Dim3&) = default;
};
std::int64_t count(const Dim3& extents);
std::string to_string(const Dim3& extents);  ///< "(1,2,3)"

struct LaunchConfig {
  Dim3 grid{};
  Dim3 block{};
  Dim3 cluster{};  ///< (1,1,1): none
  std::int64_t dynamic_smem_bytes = 0;
  bool cooperative = false;  ///< all blocks are resident: grid barriers work
  bool dependent = false;    ///< may start before its predecessor ends (griddepcontrol)
  friend bool operator==(const LaunchConfig&, const LaunchConfig&) = default;
};

/// Kernel parameters packed as PTX lays them out: each at its natural alignment.
class Parameters {
 public:
  template <typename T>
  Parameters& add(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>, "a kernel parameter is copied as bytes");
    return add_bytes(std::as_bytes(std::span<const T, 1>(&value, 1)), alignof(T));
  }
  /// `alignment` is a power of two: 64 for a tensor map.
  Parameters& add_bytes(std::span<const std::byte> bytes, std::size_t alignment);

  std::span<const std::byte> bytes() const { return bytes_; }
  /// One parameter among the bytes.
  struct Slot {
    std::size_t offset_bytes, size_bytes, alignment;
  };
  const std::vector<Slot>& slots() const { return slots_; }
  /// Overwrites a parameter that is already there: a cheap change between launches.
  template <typename T>
  void set(std::size_t offset_bytes, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>, "a kernel parameter is copied as bytes");
    set_bytes(offset_bytes, std::as_bytes(std::span<const T, 1>(&value, 1)));
  }
  void set_bytes(std::size_t offset_bytes, std::span<const std::byte> bytes);

 private:
  std::vector<std::byte> bytes_;
  std::vector<Slot> slots_;
};

}  // namespace tilewright
