// SPDX-License-Identifier: Apache-2.0
// Tensor maps of emulated devices: the fields of a CUtensorMap, in an encoding of our own.
#pragma once

#include "tilewright/error.h"
#include "tilewright/type.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace tilewright::emu {

/// How bytes of the box are permuted in shared memory: chunks of 16 by the 128-byte line they are
/// in.
enum class TensorSwizzle : std::uint8_t { none, b32, b64, b128 };
enum class TensorFill : std::uint8_t { zeros, nan };

/// A tiled tensor map; index 0 is the innermost dimension.
struct TensorMap {
  Type type = Type::u8;
  int rank = 1;  ///< 1 to 5
  std::uint64_t address = 0;
  std::array<std::uint64_t, 5> extents{1, 1, 1, 1, 1};  ///< elements
  std::array<std::uint64_t, 4> strides{};               ///< bytes, of dimensions 1 and up
  std::array<std::uint32_t, 5> box{1, 1, 1, 1, 1};      ///< elements, each at most 256
  std::array<std::uint32_t, 5> element_strides{1, 1, 1, 1, 1};
  TensorSwizzle swizzle = TensorSwizzle::none;
  TensorFill fill = TensorFill::zeros;
  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

using EncodedTensorMap = std::array<std::byte, 128>;

/// What a kernel for an emulated device is given where a GPU has a CUtensorMap, 64-byte aligned.
/// Throws Error(user) for what the driver refuses too: alignment, strides, box, swizzle.
EncodedTensorMap encode_tensor_map(const TensorMap& map, SourceLoc at = SourceLoc::here());

}  // namespace tilewright::emu
