// SPDX-License-Identifier: Apache-2.0
// Which elements of a tensor a tensor copy moves, and where they lie in shared memory.
#pragma once

#include "tilewright/tensor_map.h"

#include <array>
#include <cstdint>
#include <vector>

namespace tilewright::emu::detail {

/// One run of consecutive elements: inside the tensor, or filled.
struct Segment {
  std::uint64_t global = 0;
  std::uint32_t shared = 0;  ///< offset in what is copied
  std::uint32_t bytes = 0;
  bool inside = false;
};

using TensorCoord = std::array<std::int64_t, 5>;

/// The bytes that a copy moves. Pre: check_tensor_map accepts the map.
std::uint64_t box_bytes(const TensorMap& map);
/// Tile mode: the box whose first element is at `at`.
std::vector<Segment> tile_segments(const TensorMap& map, const TensorCoord& at);
/// im2col mode: pixels from `at` on, each moved by `offsets` (of w, h, d).
std::vector<Segment> im2col_segments(const TensorMap& map, const TensorCoord& at,
                                     const std::array<std::int64_t, 3>& offsets);

}  // namespace tilewright::emu::detail
