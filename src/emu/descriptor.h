// SPDX-License-Identifier: Apache-2.0
// wgmma matrix descriptors: where in shared memory an element of an operand lies.
#pragma once

#include <cstdint>

namespace tilewright::emu::detail {

/// PTX ISA, "Matrix-descriptor format" and "Shared memory matrix layout".
struct MatrixDescriptor {
  std::uint32_t start = 0;           ///< byte address, 16-byte aligned
  std::uint32_t leading = 0;         ///< leading-dimension byte offset
  std::uint32_t stride = 0;          ///< stride-dimension byte offset
  std::uint32_t base = 0;            ///< phase of the swizzle pattern
  std::uint32_t swizzle_bytes = 16;  ///< 128, 64, 32, or 16 for none

  explicit MatrixDescriptor(std::uint64_t bits);
  /// K-major: row `mn`, byte `byte` of the row.
  std::uint32_t k_major(std::uint32_t mn, std::uint32_t byte) const;
  /// MN-major: byte `byte` of column `k`.
  std::uint32_t mn_major(std::uint32_t k, std::uint32_t byte) const;

 private:
  std::uint32_t swizzled(std::uint32_t address) const;
};

}  // namespace tilewright::emu::detail
