// SPDX-License-Identifier: Apache-2.0
// A host-side description of a tensor in device memory: address, type, shape and strides.
#pragma once

#include "tilewright/error.h"
#include "tilewright/type.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>

namespace tilewright {

inline constexpr int kMaxViewRank = 8;

/// A tensor in the memory of a device. Strides count elements and may be zero or negative.
struct View {
  std::uint64_t address = 0;  ///< of the element whose coordinates are all zero
  Type type = Type::none;
  int rank = 0;
  std::array<std::int64_t, kMaxViewRank> shape{};
  std::array<std::int64_t, kMaxViewRank> stride{};

  friend bool operator==(const View&, const View&) = default;
};

/// A view whose last mode is contiguous. Throws Error(user) for a rank over kMaxViewRank, a
/// negative extent, or a tensor whose bytes do not fit 63 bits.
View make_view(std::uint64_t address, Type type, std::span<const std::int64_t> shape,
               SourceLoc at = SourceLoc::here());
/// The same with strides in elements, which count only where there are elements. Pre: as many
/// strides as extents.
View make_view(std::uint64_t address, Type type, std::span<const std::int64_t> shape,
               std::span<const std::int64_t> stride, SourceLoc at = SourceLoc::here());

/// Bits that an element takes in memory: a whole byte for the six-bit types, four for e2m1.
int storage_bits(Type type);

/// Number of elements; 1 for rank 0.
std::int64_t size(const View& view);
/// Bytes that the elements take without gaps (rounded up for types under eight bits).
std::int64_t size_bytes(const View& view);
bool is_row_major(
    const View& view);  ///< last mode fastest, without gaps; strides of extents 1 are free

/// The bytes that the view's elements touch; empty (begin == end) if it has none.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};
ByteRange byte_range(const View& view);
/// Whether two views share a byte. Parts of packed rows do not; where it takes long to tell, true.
bool overlap(const View& a, const View& b);
bool overlaps_itself(const View& view);  ///< whether elements of a view share a byte

/// "bf16[4,128]", with strides where they are not row-major: "bf16[4,128]:[256,1]".
std::string to_string(const View& view);

}  // namespace tilewright
