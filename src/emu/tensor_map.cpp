// SPDX-License-Identifier: Apache-2.0
// Tensor maps of emulated devices: an encoding of our own in 128 bytes.
#include "emu/tensor_map.h"

#include "tilewright/emulator.h"

#include <cstring>

namespace tilewright::emu {

namespace detail {

namespace {

constexpr std::uint32_t kMagic = 0x504d5754;  // "TWMP"

struct Packed {
  std::uint32_t magic;
  std::uint8_t type, rank, swizzle, fill;
  std::uint64_t address;
  std::uint64_t extents[5];
  std::uint64_t strides[4];
  std::uint16_t box[5];
  std::uint8_t element_strides[5];
  std::uint8_t im2col;  ///< 1: the fields below, with channels in box[0]
  std::int16_t lower[3], upper[3];
  std::uint16_t pixels;
};
static_assert(sizeof(Packed) <= 128);

/// PTX ISA, tensormap.replace: the values of .elemtype.
constexpr Type kElementTypes[] = {Type::u8,   Type::u16,  Type::u32, Type::s32, Type::u64,
                                  Type::s64,  Type::f16,  Type::f32, Type::f32, Type::f64,
                                  Type::bf16, Type::tf32, Type::tf32};

}  // namespace

EncodedTensorMap pack_tensor_map(const TensorMap& map) {
  Packed p{};
  p.magic = kMagic;
  p.type = static_cast<std::uint8_t>(map.type);
  p.rank = static_cast<std::uint8_t>(map.rank);
  p.swizzle = static_cast<std::uint8_t>(map.swizzle);
  p.fill = static_cast<std::uint8_t>(map.fill);
  p.address = map.address;
  for (std::size_t i = 0; i < 5; ++i) {
    p.extents[i] = map.extents[i];
    p.box[i] = static_cast<std::uint16_t>(map.box[i]);
    p.element_strides[i] = static_cast<std::uint8_t>(map.element_strides[i]);
    if (i < 4) p.strides[i] = map.strides[i];
  }
  if (map.im2col) {
    p.im2col = 1;
    p.box[0] = static_cast<std::uint16_t>(map.im2col->channels);
    p.pixels = static_cast<std::uint16_t>(map.im2col->pixels);
    for (std::size_t i = 0; i < 3; ++i) {
      p.lower[i] = static_cast<std::int16_t>(map.im2col->lower[i]);
      p.upper[i] = static_cast<std::int16_t>(map.im2col->upper[i]);
    }
  }
  EncodedTensorMap out{};
  std::memcpy(out.data(), &p, sizeof p);
  return out;
}

std::optional<TensorMap> decode_tensor_map(const EncodedTensorMap& bytes) {
  Packed p{};
  std::memcpy(&p, bytes.data(), sizeof p);
  const bool known = p.type <= static_cast<std::uint8_t>(Type::e5m2x4);
  if (p.magic != kMagic || p.rank < 1 || p.rank > 5 || !known) return std::nullopt;
  TensorMap map;
  map.type = static_cast<Type>(p.type);
  map.rank = p.rank;
  map.swizzle = static_cast<TensorSwizzle>(p.swizzle & 3);
  map.fill = static_cast<TensorFill>(p.fill & 1);
  map.address = p.address;
  for (std::size_t i = 0; i < 5; ++i) {
    map.extents[i] = p.extents[i];
    map.box[i] = p.box[i];
    map.element_strides[i] = p.element_strides[i];
    if (i < 4) map.strides[i] = p.strides[i];
  }
  if (p.im2col != 0) {
    map.im2col = Im2col{{p.lower[0], p.lower[1], p.lower[2]},
                        {p.upper[0], p.upper[1], p.upper[2]},
                        p.box[0],
                        p.pixels};
  }
  return map;
}

bool replace_field(TensorMap& map, std::string_view field, int ordinal, std::uint64_t value) {
  const auto i = static_cast<std::size_t>(ordinal);
  if (field == "global_address") {
    map.address = value;
  } else if (field == "rank") {
    if (value > 4) return false;
    map.rank = static_cast<int>(value) + 1;
  } else if (field == "box_dim") {
    if (value < 1 || value > 256 || i > 4) return false;
    map.box[i] = static_cast<std::uint32_t>(value);
  } else if (field == "global_dim") {
    if (i > 4) return false;
    map.extents[i] = value;
  } else if (field == "global_stride") {
    if (i > 3) return false;
    map.strides[i] = value;
  } else if (field == "element_stride") {
    if (value < 1 || value > 8 || i > 4) return false;
    map.element_strides[i] = static_cast<std::uint32_t>(value);
  } else if (field == "elemtype") {
    if (value >= std::size(kElementTypes)) return false;
    map.type = kElementTypes[value];
  } else if (field == "swizzle_mode") {
    if (value > 3) return false;
    map.swizzle = static_cast<TensorSwizzle>(value);
  } else if (field == "fill_mode") {
    if (value > 1) return false;
    map.fill = static_cast<TensorFill>(value);
  } else {
    return field == "interleave_layout" && value == 0;
  }
  return true;
}

}  // namespace detail

EncodedTensorMap encode_tensor_map(const TensorMap& map, SourceLoc at) {
  check_tensor_map(map, at);
  return detail::pack_tensor_map(map);
}

}  // namespace tilewright::emu
