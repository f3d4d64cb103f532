// SPDX-License-Identifier: Apache-2.0
// Element types by DLPack's codes, and views of its tensors.
#include "c/tensor.h"

#include "tilewright/error.h"

#include <span>

namespace tilewright::c {
namespace {

struct Row {
  DlType dl;
  Type type;
};
// DLDataTypeCode of dlpack.h: integers, floats, bfloat, bool; from version 1.1 on the narrow
// floats.
constexpr Row kTypes[] = {
    {{0, 8}, s8},     {{0, 16}, s16},  {{0, 32}, s32},  {{0, 64}, s64},  {{1, 8}, u8},
    {{1, 16}, u16},   {{1, 32}, u32},  {{1, 64}, u64},  {{2, 16}, f16},  {{2, 32}, f32},
    {{2, 64}, f64},   {{4, 16}, bf16}, {{6, 8}, u8},    {{10, 8}, e4m3}, {{12, 8}, e5m2},
    {{14, 8}, ue8m0}, {{15, 6}, e2m3}, {{16, 6}, e3m2}, {{17, 4}, e2m1},
};
constexpr std::int32_t kCuda = 2;          // kDLCUDA
constexpr std::int32_t kCudaManaged = 13;  // kDLCUDAManaged

}  // namespace

DlType dl_type(Type type) {
  for (const Row& row : kTypes) {
    if (row.type == type) return row.dl;
  }
  // ue4m3 is e4m3 without a sign; DLPack has only the bits.
  return {1, static_cast<std::uint8_t>(bits(type))};
}

View view_of(const tw_tensor& tensor, const std::string& name) {
  auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::user, "tensor " + name + ": " + what);
  };
  if (tensor.device_type != kCuda && tensor.device_type != kCudaManaged) {
    refuse("is in memory of DLPack's device type " + std::to_string(tensor.device_type) +
           "; it must be 2, a GPU's");
  }
  if (tensor.ndim < 0 || tensor.ndim > kMaxViewRank ||
      (tensor.ndim > 0 && tensor.shape == nullptr)) {
    refuse("has " + std::to_string(tensor.ndim) + " modes; it may have 0 to " +
           std::to_string(kMaxViewRank) + ", with a shape");
  }
  Type type = Type::none;
  for (const Row& row : kTypes) {
    if (row.dl.code == tensor.type_code && row.dl.bits == tensor.type_bits &&
        tensor.type_lanes == 1)
      type = row.type;
  }
  if (type == Type::none) {
    refuse("has DLPack type code " + std::to_string(tensor.type_code) + " of " +
           std::to_string(tensor.type_bits) + " bits and " + std::to_string(tensor.type_lanes) +
           " lanes, which is none of the library's");
  }
  const auto rank = static_cast<std::size_t>(tensor.ndim);
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(tensor.data) + tensor.byte_offset;
  std::span<const std::int64_t> shape(tensor.shape, rank);
  if (tensor.strides == nullptr) return make_view(address, type, shape, SourceLoc{});
  return make_view(address, type, shape, std::span<const std::int64_t>(tensor.strides, rank),
                   SourceLoc{});
}

}  // namespace tilewright::c
