// SPDX-License-Identifier: Apache-2.0
// Matrices of f16 for kernels that fetch tiles of them by tensor copies.
#pragma once

#include "tilewright/emulator.h"

#include <bit>
#include <cstdint>

namespace tilewright::emu::test {

/// The bits of an integer of at most 3 bits as f16.
inline std::uint16_t half(int v) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(v));
  if (v == 0) return 0;
  return static_cast<std::uint16_t>((bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) |
                                    (bits >> 13 & 0x3ff));
}

/// A 64 x 64 tile of f16 at a time, in the 128-byte swizzle.
inline EncodedTensorMap tiles_of(std::uint64_t address, std::uint64_t rows, std::uint64_t columns) {
  TensorMap map;
  map.type = Type::f16;
  map.rank = 2;
  map.address = address;
  map.extents = {columns, rows, 1, 1, 1};
  map.strides = {2 * columns};
  map.box = {64, 64, 1, 1, 1};
  map.swizzle = TensorSwizzle::b128;
  return encode_tensor_map(map);
}

}  // namespace tilewright::emu::test
