// SPDX-License-Identifier: Apache-2.0
// From a view to the tensor map that describes it.
#include "tilewright/tensor_map_arg.h"

#include <algorithm>
#include <string>

namespace tilewright {
namespace {

[[noreturn]] void refuse(const View& view, const std::string& why, SourceLoc at) {
  throw Error(ErrorKind::user, "tensor map of " + to_string(view) + ": " + why, at);
}

void require_fitting(const TensorMapArg& arg, const View& view, SourceLoc at) {
  if (view.type != arg.type || view.rank != rank(arg)) {
    refuse(view,
           "the kernel was made for rank " + std::to_string(rank(arg)) + " and type " +
               std::string(name(arg.type)) + "; make another specialisation for such arguments",
           at);
  }
  auto last = static_cast<std::size_t>(view.rank - 1);
  if (view.stride[last] != 1 && view.shape[last] > 1) {
    refuse(view, "the last mode must be contiguous; order the modes so", at);
  }
  for (std::size_t i = 0; i < last; ++i) {
    if (view.stride[i] >= 0 || view.shape[i] <= 1) continue;
    refuse(view, "stride " + std::to_string(i) + " is negative; the copy engine goes forwards", at);
  }
}

}  // namespace

int rank(const TensorMapArg& arg) {
  return static_cast<int>(std::find(arg.box.begin(), arg.box.end(), 0) - arg.box.begin());
}

TensorMapArg im2col_arg(Type type, int rank, const Im2col& how, TensorSwizzle swizzle) {
  TensorMapArg arg{type, {static_cast<int>(how.channels)}, swizzle, TensorFill::zeros, how};
  for (int i = 1; i < std::min(rank, 5); ++i)
    arg.box[static_cast<std::size_t>(i)] = 1;
  return arg;
}

int box_bytes(const TensorMapArg& arg) {
  int size = bytes(arg.type) * (arg.im2col ? static_cast<int>(arg.im2col->pixels) : 1);
  for (int i = 0; i < rank(arg); ++i)
    size *= arg.box[static_cast<std::size_t>(i)];
  return size;
}

TensorMap tensor_map(const TensorMapArg& arg, const View& view, SourceLoc at) {
  require_fitting(arg, view, at);
  TensorMap map{.type = arg.type, .rank = view.rank, .address = view.address};
  map.swizzle = arg.swizzle;
  map.fill = arg.fill;
  map.im2col = arg.im2col;
  auto rank = static_cast<std::size_t>(view.rank);
  for (std::size_t i = 0; i < rank; ++i) {
    std::size_t mode = rank - 1 - i;
    map.extents[i] = static_cast<std::uint64_t>(view.shape[mode]);
    map.box[i] = static_cast<std::uint32_t>(arg.box[i]);
    if (i == 0) continue;
    // The stride of a single element is never walked; the engine wants a legal one all the same.
    auto stride_bytes = static_cast<std::uint64_t>(view.stride[mode]) *
                        static_cast<std::uint64_t>(bytes(view.type));
    map.strides[i - 1] = view.shape[mode] == 1 ? 16 : stride_bytes;
  }
  try {
    check_tensor_map(map, at);
  } catch (const Error& error) {
    refuse(view, error.message().substr(std::string("tensor map: ").size()), at);
  }
  return map;
}

}  // namespace tilewright
