// SPDX-License-Identifier: Apache-2.0
// Tensor maps as arguments of a kernel: the recipe that each launch makes one by, and what the
// kernel's body gets.
#pragma once

#include "tilewright/tensor_map.h"
#include "tilewright/value.h"
#include "tilewright/view.h"

#include <array>
#include <optional>

namespace tilewright {

/// How a launch makes a tensor map of a view (pack(), or by hand with Parameters::add_bytes).
struct TensorMapArg {
  Type type = Type::none;    ///< of the elements
  std::array<int, 5> box{};  ///< elements that a copy moves, innermost first: one a dimension
  TensorSwizzle swizzle = TensorSwizzle::none;
  TensorFill fill = TensorFill::zeros;
  std::optional<Im2col> im2col = {};  ///< see im2col_arg()
  friend bool operator==(const TensorMapArg&, const TensorMapArg&) = default;
};
/// The same in im2col mode, for views of (batch, pixels..., channels) of 3 to 5 modes.
TensorMapArg im2col_arg(Type type, int rank, const Im2col& how,
                        TensorSwizzle swizzle = TensorSwizzle::none);
/// Dimensions of the tensor: how many extents the box has.
int rank(const TensorMapArg& arg);
/// What one copy moves: the bytes that a mbarrier must expect.
int box_bytes(const TensorMapArg& arg);

/// The map of a view: its last mode is the innermost dimension. Throws Error(user) for another type
/// or rank, and for strides or an address that the copy engine cannot take.
TensorMap tensor_map(const TensorMapArg& arg, const View& view, SourceLoc at = SourceLoc::here());

/// What the kernel's body gets for the argument: see tma.h.
class TensorMapParam {
 public:
  TensorMapParam(const TensorMapArg& arg, const Value& address) : arg_(arg), address_(address) {}
  Type type() const { return arg_.type; }
  int rank() const { return tilewright::rank(arg_); }
  const TensorMapArg& arg() const { return arg_; }
  const Value& address() const { return address_; }

 private:
  TensorMapArg arg_;
  Value address_;  // generic
};

}  // namespace tilewright
