// SPDX-License-Identifier: Apache-2.0
// What a tensor map says (the fields of a CUtensorMap): a tensor in global memory and the box that
// a tensor copy moves.
#pragma once

#include "tilewright/error.h"
#include "tilewright/type.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace tilewright {

/// How bytes of the box are permuted in shared memory: chunks of 16 by the 128-byte line they are
/// in.
enum class TensorSwizzle : std::uint8_t { none, b32, b64, b128 };
/// What a load gives for elements outside of the tensor; NaN for floating point only.
enum class TensorFill : std::uint8_t { zeros, nan };

/// im2col mode, for convolutions: a copy moves pixels (the dimensions between the channels and the
/// batch, innermost first), one after another within a bounding box, instead of a box.
struct Im2col {
  std::array<int, 3> lower{};  ///< the box's first pixel
  std::array<int, 3> upper{};  ///< its last pixel, from the tensor's last one
  std::uint32_t channels = 1;  ///< of a pixel, each at most 256
  std::uint32_t pixels = 1;    ///< of a copy, at most 1024
  friend bool operator==(const Im2col&, const Im2col&) = default;
};

/// A tensor map; index 0 is the innermost dimension.
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
  std::optional<Im2col> im2col = {};  ///< instead of `box`; rank 3 to 5
  friend bool operator==(const TensorMap&, const TensorMap&) = default;
};

/// Bytes of the box's innermost dimension that the swizzle permutes together: 16 (none) to 128.
int swizzle_bytes(TensorSwizzle swizzle);

/// What a kernel gets: 128 bytes, aligned to 64, in the encoding of its device.
using EncodedTensorMap = std::array<std::byte, 128>;

/// Throws Error(user) for what the copy engine cannot do: type, alignment, strides, box, swizzle.
void check_tensor_map(const TensorMap& map, SourceLoc at = SourceLoc::here());

}  // namespace tilewright
