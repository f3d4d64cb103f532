// SPDX-License-Identifier: Apache-2.0
// The table of the f32 maths functions: traced, on the host bit for bit, and what bounds their
// error.
#pragma once

#include "tilewright/math.h"

#include <span>
#include <string_view>

namespace tilewright {

/// How far a GPU's result may be from the host's.
enum class HostAgreement : std::uint8_t {
  bits,         ///< the same bits: only correctly rounded operations
  approximate,  ///< contains a PTX `.approx` instruction, whose host model is the nearest f32
};

/// One function of math.h. Where `arguments` is 1, the second one is ignored.
struct MathFunction {
  std::string_view name;
  int arguments;
  Value (*traced)(const Arg&, const Arg&);
  /// The operations of the traced function on the host: a reference for tests of kernels.
  float (*host)(float, float);
  /// What the error is measured against.
  double (*exact)(double, double);
  /// The error is at most this many units in the last place of the exact result (f32, of the
  /// smallest normal number's below it).
  double bound_ulp;
  /// What CUDA documents for its function, in f32 numbers between the result and the correctly
  /// rounded one (CUDA C++ Programming Guide, Mathematical Functions); -1: it has no such function.
  int cuda_steps;
  HostAgreement agreement;
};

/// In alphabetical order.
std::span<const MathFunction> math_functions();

}  // namespace tilewright
