// SPDX-License-Identifier: Apache-2.0
// What every device refuses of a tensor map (CUDA driver API, cuTensorMapEncodeTiled).
#include "tilewright/tensor_map.h"

#include <string>

namespace tilewright {
namespace {

constexpr std::uint64_t kMaxExtent = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxStrideBytes = std::uint64_t{1} << 40;

[[noreturn]] void refuse(const std::string& message, SourceLoc at) {
  throw Error(ErrorKind::user, "tensor map: " + message, at);
}

void check_dimension(const TensorMap& map, std::size_t i, SourceLoc at) {
  const std::string which = " of dimension " + std::to_string(i);
  if (map.extents[i] < 1 || map.extents[i] > kMaxExtent) {
    refuse("extent " + std::to_string(map.extents[i]) + which + "; use 1 to 2^32", at);
  }
  if (!map.im2col && (map.box[i] < 1 || map.box[i] > 256)) {
    refuse("box " + std::to_string(map.box[i]) + which + "; use 1 to 256", at);
  }
  if (map.element_strides[i] < 1 || map.element_strides[i] > 8) {
    refuse("element stride " + std::to_string(map.element_strides[i]) + which + "; use 1 to 8", at);
  }
  if (i > 0 && (map.strides[i - 1] % 16 != 0 || map.strides[i - 1] >= kMaxStrideBytes)) {
    refuse("stride of " + std::to_string(map.strides[i - 1]) + " bytes" + which +
               "; use a multiple of 16 below 2^40",
           at);
  }
}

/// cuTensorMapEncodeIm2col: the corners have 16, 8 or 5 bits for one to three dimensions.
void check_im2col(const TensorMap& map, SourceLoc at) {
  const Im2col& mode = *map.im2col;
  if (map.rank < 3) refuse("im2col mode and rank " + std::to_string(map.rank) + "; use 3 to 5", at);
  if (mode.channels < 1 || mode.channels > 256) {
    refuse(std::to_string(mode.channels) + " channels of a pixel; use 1 to 256", at);
  }
  if (mode.pixels < 1 || mode.pixels > 1024) {
    refuse(std::to_string(mode.pixels) + " pixels of a copy; use 1 to 1024", at);
  }
  const int limit = map.rank == 3 ? 1 << 15 : map.rank == 4 ? 1 << 7 : 1 << 4;
  for (std::size_t i = 0; i + 2 < static_cast<std::size_t>(map.rank); ++i) {
    for (const int corner : {mode.lower[i], mode.upper[i]}) {
      if (corner >= -limit && corner < limit) continue;
      refuse("corner " + std::to_string(corner) + " of dimension " + std::to_string(i + 1) +
                 "; use " + std::to_string(-limit) + " to " + std::to_string(limit - 1),
             at);
    }
  }
}

bool copies(Type type) {
  return type != Type::none && type != Type::pred && !is_packed(type) && bits(type) >= 8 &&
         bits(type) % 8 == 0 && bits(type) <= 64;
}

}  // namespace

int swizzle_bytes(TensorSwizzle swizzle) { return 16 << static_cast<int>(swizzle); }

void check_tensor_map(const TensorMap& map, SourceLoc at) {
  if (!copies(map.type)) {
    refuse("elements of type " + std::string(name(map.type)) + "; use one of 8 to 64 bits", at);
  }
  if (map.rank < 1 || map.rank > 5) refuse("rank " + std::to_string(map.rank) + "; use 1 to 5", at);
  if (map.address % 16 != 0) refuse("the address is no multiple of 16", at);
  for (int i = 0; i < map.rank; ++i)
    check_dimension(map, static_cast<std::size_t>(i), at);
  if (map.im2col) check_im2col(map, at);
  const std::uint64_t inner = std::uint64_t{map.im2col ? map.im2col->channels : map.box[0]} *
                              static_cast<std::uint64_t>(bytes(map.type));
  const std::string has = "the box's inner dimension has " + std::to_string(inner) + " bytes; ";
  if (inner % 16 != 0) refuse(has + "use a multiple of 16", at);
  if (map.swizzle != TensorSwizzle::none &&
      inner > static_cast<std::uint64_t>(swizzle_bytes(map.swizzle))) {
    refuse(has + "the swizzle allows " + std::to_string(swizzle_bytes(map.swizzle)), at);
  }
  if (map.fill == TensorFill::nan && (!is_float(map.type) || bits(map.type) < 16)) {
    refuse("a fill of NaN for elements of type " + std::string(name(map.type)) + "; use zeros", at);
  }
}

}  // namespace tilewright
