// SPDX-License-Identifier: Apache-2.0
// wgmma matrix descriptors: where in shared memory an element of an operand lies.
#include "emu/descriptor.h"

namespace tilewright::emu::detail {

MatrixDescriptor::MatrixDescriptor(std::uint64_t bits)
    : start(static_cast<std::uint32_t>(bits & 0x3fff) << 4),
      leading(static_cast<std::uint32_t>(bits >> 16 & 0x3fff) << 4),
      stride(static_cast<std::uint32_t>(bits >> 32 & 0x3fff) << 4),
      base(static_cast<std::uint32_t>(bits >> 49 & 7)) {
  const auto mode = static_cast<unsigned>(bits >> 62);
  swizzle_bytes = mode == 1 ? 128 : mode == 2 ? 64 : mode == 3 ? 32 : 16;
}

std::uint32_t MatrixDescriptor::swizzled(std::uint32_t address) const {
  // Chunks of 16 bytes are permuted by the 128-byte line they lie in.
  const std::uint32_t chunks = swizzle_bytes / 16;
  const std::uint32_t line = (address >> 7) - base;
  return address ^ (line & (chunks - 1)) << 4;
}

std::uint32_t MatrixDescriptor::k_major(std::uint32_t mn, std::uint32_t byte) const {
  if (swizzle_bytes == 16) {
    return start + mn / 8 * stride + mn % 8 * 16 + byte / 16 * leading + byte % 16;
  }
  return swizzled(start + mn / 8 * stride + mn % 8 * swizzle_bytes + byte);
}

std::uint32_t MatrixDescriptor::mn_major(std::uint32_t k, std::uint32_t byte) const {
  if (swizzle_bytes == 16) {
    return start + byte / 16 * stride + k % 8 * 16 + k / 8 * leading + byte % 16;
  }
  return swizzled(start + byte / swizzle_bytes * leading + byte % swizzle_bytes +
                  k % 8 * swizzle_bytes + k / 8 * stride);
}

}  // namespace tilewright::emu::detail
