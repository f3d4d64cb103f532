// SPDX-License-Identifier: Apache-2.0
// Sweeps that stay on a device: inputs, results, references and errors are all computed there.
#pragma once

#include "bench/maths/worst.h"
#include "tilewright/tilewright.h"

namespace bench {

/// Evaluates the function and its reference at all of the inputs. The error of the worst one is
/// computed again on the host, by the table's exact function.
Worst sweep_on_device(const tilewright::Device& device, const tilewright::MathFunction& function,
                      const Inputs& inputs);

}  // namespace bench
