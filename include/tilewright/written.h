// SPDX-License-Identifier: Apache-2.0
// What references say besides values: a rounding to few bits beside a tie goes either way, and
// where numbers cancel an element may be off by more than its size tells.
#pragma once

#include "tilewright/operator.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tilewright {

/// Operator::reference with what a launch wrote at hand. Where the errors that the contract allows
/// decide how an output is rounded, and others follow from it, a reference may take either: it
/// looks up written().
void reference_of_written(const Operator& op, const Arguments& arguments,
                          std::span<const Array> outputs, HostTensors& tensors);

/// What a launch wrote to `output`; null: nothing is known of it.
const Array* written(const HostTensors& tensors, std::string_view output);

/// By how much each element of `output` may be off besides the operator's tolerance, of its shape.
/// What is not finite allows nothing.
void set_allowance(HostTensors& tensors, std::string_view output,
                   const std::vector<std::int64_t>& shape, std::span<const double> values);
const Array* allowance(const HostTensors& tensors, std::string_view output);  ///< null: nothing

/// compare() with the output's reference in `tensors`, its allowance, the operator's tolerance and
/// its rule of NaN. Throws Error(user) if there is no reference or shapes differ.
Comparison compare_with_reference(const Operator& op, const Arguments& arguments, const Array& out,
                                  const HostTensors& tensors);

}  // namespace tilewright
