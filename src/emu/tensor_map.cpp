// SPDX-License-Identifier: Apache-2.0
// Tensor maps: checks as the driver makes them, and an encoding in 128 bytes.
#include "emu/tensor_map.h"

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
  std::uint8_t rest[9];
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
  EncodedTensorMap out{};
  std::memcpy(out.data(), &p, sizeof p);
  return out;
}

std::optional<TensorMap> decode_tensor_map(const EncodedTensorMap& bytes) {
  Packed p{};
  std::memcpy(&p, bytes.data(), sizeof p);
  if (p.magic != kMagic || p.rank < 1 || p.rank > 5) return std::nullopt;
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

namespace {

[[noreturn]] void refuse(const std::string& message, SourceLoc at) {
  throw Error(ErrorKind::user, "tensor map: " + message, at);
}

void check_dimensions(const TensorMap& map, SourceLoc at) {
  for (int d = 0; d < map.rank; ++d) {
    const auto i = static_cast<std::size_t>(d);
    const std::string which = " of dimension " + std::to_string(d);
    if (map.extents[i] < 1 || map.extents[i] > (std::uint64_t{1} << 32)) {
      refuse("extent " + std::to_string(map.extents[i]) + which + "; use 1 to 2^32", at);
    }
    if (map.box[i] < 1 || map.box[i] > 256) {
      refuse("box " + std::to_string(map.box[i]) + which + "; use 1 to 256", at);
    }
    if (map.element_strides[i] < 1 || map.element_strides[i] > 8) {
      refuse("element stride " + std::to_string(map.element_strides[i]) + which + "; use 1 to 8",
             at);
    }
    if (d > 0 && (map.strides[i - 1] % 16 != 0 || map.strides[i - 1] >= (std::uint64_t{1} << 40))) {
      refuse("stride of " + std::to_string(map.strides[i - 1]) + " bytes" + which +
                 "; use a multiple of 16 below 2^40",
             at);
    }
  }
}

}  // namespace

EncodedTensorMap encode_tensor_map(const TensorMap& map, SourceLoc at) {
  if (map.rank < 1 || map.rank > 5) {
    refuse("rank " + std::to_string(map.rank) + "; use 1 to 5", at);
  }
  if (map.address % 16 != 0) refuse("the address is no multiple of 16", at);
  check_dimensions(map, at);
  const std::uint64_t inner =
      std::uint64_t{map.box[0]} * static_cast<std::uint64_t>(bytes(map.type));
  if (inner % 16 != 0) {
    refuse(
        "the box's inner dimension has " + std::to_string(inner) + " bytes; use a multiple of 16",
        at);
  }
  constexpr std::uint64_t kSpan[] = {~std::uint64_t{0}, 32, 64, 128};
  if (inner > kSpan[static_cast<int>(map.swizzle)]) {
    refuse("the box's inner dimension has " + std::to_string(inner) +
               " bytes; the swizzle allows " + std::to_string(kSpan[static_cast<int>(map.swizzle)]),
           at);
  }
  return detail::pack_tensor_map(map);
}

}  // namespace tilewright::emu
