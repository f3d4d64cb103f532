// SPDX-License-Identifier: Apache-2.0
// Boxes of tile mode and columns of im2col mode (PTX ISA, "Tensor data movement").
#include "emu/tensor_box.h"

#include "tilewright/type.h"

namespace tilewright::emu::detail {

namespace {

std::array<std::uint32_t, 5> box_counts(const TensorMap& map) {
  std::array<std::uint32_t, 5> count{1, 1, 1, 1, 1};
  for (std::size_t i = 0; i < static_cast<std::size_t>(map.rank); ++i) {
    count[i] = (map.box[i] + map.element_strides[i] - 1) / map.element_strides[i];
  }
  return count;
}

bool within(const TensorMap& map, std::size_t dimension, std::int64_t at) {
  return at >= 0 && static_cast<std::uint64_t>(at) < map.extents[dimension];
}

/// Adds one element to the run that it continues, or begins a run.
void append(std::vector<Segment>& out, const Segment& element, bool first_of_row) {
  const bool joins = !out.empty() && !first_of_row && out.back().inside == element.inside &&
                     (!element.inside || out.back().global + out.back().bytes == element.global);
  if (joins) {
    out.back().bytes += element.bytes;
  } else {
    out.push_back(element);
  }
}

}  // namespace

std::uint64_t box_bytes(const TensorMap& map) {
  auto bytes = static_cast<std::uint64_t>(tilewright::bytes(map.type));
  if (map.im2col) return bytes * map.im2col->channels * map.im2col->pixels;
  for (const std::uint32_t count : box_counts(map))
    bytes *= count;
  return bytes;
}

std::vector<Segment> tile_segments(const TensorMap& map, const TensorCoord& at) {
  std::vector<Segment> out;
  const auto size = static_cast<std::uint32_t>(bytes(map.type));
  const std::array<std::uint32_t, 5> count = box_counts(map);
  std::uint32_t shared = 0;
  const std::uint64_t rows = std::uint64_t{count[1]} * count[2] * count[3] * count[4];
  for (std::uint64_t row = 0; row < rows; ++row) {
    std::uint64_t rest = row;
    bool inside = true;
    std::uint64_t base = map.address;
    for (std::size_t d = 1; d < static_cast<std::size_t>(map.rank); ++d) {
      const std::int64_t c =
          at[d] + static_cast<std::int64_t>(rest % count[d]) * map.element_strides[d];
      rest /= count[d];
      inside &= within(map, d, c);
      base += static_cast<std::uint64_t>(c) * map.strides[d - 1];
    }
    for (std::uint32_t e = 0; e < count[0]; ++e, shared += size) {
      const std::int64_t c = at[0] + std::int64_t{e} * map.element_strides[0];
      const std::uint64_t global = base + static_cast<std::uint64_t>(c) * size;
      append(out, {global, shared, size, inside && within(map, 0, c)}, e == 0);
    }
  }
  return out;
}

std::vector<Segment> im2col_segments(const TensorMap& map, const TensorCoord& at,
                                     const std::array<std::int64_t, 3>& offsets) {
  std::vector<Segment> out;
  const auto size = static_cast<std::uint32_t>(bytes(map.type));
  const auto batch = static_cast<std::size_t>(map.rank - 1);
  TensorCoord pixel = at;
  std::uint32_t shared = 0;
  for (std::uint32_t p = 0; p < map.im2col->pixels; ++p) {
    bool inside = within(map, batch, pixel[batch]);
    std::uint64_t base =
        map.address + static_cast<std::uint64_t>(pixel[batch]) * map.strides[batch - 1];
    for (std::size_t d = 1; d < batch; ++d) {
      const std::int64_t c = pixel[d] + offsets[d - 1];
      inside &= within(map, d, c);
      base += static_cast<std::uint64_t>(c) * map.strides[d - 1];
    }
    for (std::uint32_t e = 0; e < map.im2col->channels; ++e, shared += size) {
      const std::int64_t c = at[0] + e;
      const std::uint64_t global = base + static_cast<std::uint64_t>(c) * size;
      append(out, {global, shared, size, inside && within(map, 0, c)}, e == 0);
    }
    // The next pixel of the bounding box; behind its last one, the next image.
    for (std::size_t d = 1; d <= batch; ++d) {
      pixel[d] += d == batch ? 1 : map.element_strides[d];
      if (d == batch) break;
      const auto last = static_cast<std::int64_t>(map.extents[d]) - 1 + map.im2col->upper[d - 1];
      if (pixel[d] <= last) break;
      pixel[d] = map.im2col->lower[d - 1];
    }
  }
  return out;
}

}  // namespace tilewright::emu::detail
