// SPDX-License-Identifier: Apache-2.0
// Tensor maps in the encoding of the CUDA driver.
#include "runtime/cuda_backend.h"

#include <cstring>

namespace tilewright::detail {
namespace {

/// CUtensorMapDataType. Types that the engine only moves are numbers of their width.
int data_type(Type type) {
  constexpr int kUint8 = 0, kUint16 = 1, kUint32 = 2, kInt32 = 3, kUint64 = 4, kInt64 = 5;
  constexpr int kFloat16 = 6, kFloat32 = 7, kFloat64 = 8, kBfloat16 = 9, kTfloat32 = 11;
  if (type == f16) return kFloat16;
  if (type == bf16) return kBfloat16;
  if (type == f32) return kFloat32;
  if (type == tf32) return kTfloat32;
  if (type == f64) return kFloat64;
  if (type == s32) return kInt32;
  if (type == s64) return kInt64;
  if (bits(type) == 8) return kUint8;
  if (bits(type) == 16) return kUint16;
  return bits(type) == 32 ? kUint32 : kUint64;
}

}  // namespace

EncodedTensorMap CudaBackend::encode(const TensorMap& map, SourceLoc at) {
  cuda::Scope current = scope();
  cuda::TensorMap made;
  void* address = nullptr;
  std::memcpy(&address, &map.address, sizeof address);
  int type = data_type(map.type);
  auto rank = static_cast<unsigned>(map.rank);
  int swizzle = static_cast<int>(map.swizzle);
  int fill = static_cast<int>(map.fill);
  cuda::Result result = 0;
  if (map.im2col) {
    result = driver_.tensor_map_im2col(&made, type, rank, address, map.extents.data(),
                                       map.strides.data(), map.im2col->lower.data(),
                                       map.im2col->upper.data(), map.im2col->channels,
                                       map.im2col->pixels, map.element_strides.data(),
                                       cuda::kInterleaveNone, swizzle, cuda::kL2Promotion128, fill);
  } else {
    result = driver_.tensor_map(&made, type, rank, address, map.extents.data(), map.strides.data(),
                                map.box.data(), map.element_strides.data(), cuda::kInterleaveNone,
                                swizzle, cuda::kL2Promotion128, fill);
  }
  cuda::check(result, map.im2col ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled",
              "a tensor of " + std::string(name(map.type)), at);
  EncodedTensorMap out{};
  std::memcpy(out.data(), made.bytes, out.size());
  return out;
}

}  // namespace tilewright::detail
