// SPDX-License-Identifier: Apache-2.0
// Calls whose tensors are in host memory: copied to an emulated device, run with checks, copied
// back.
#pragma once

#include "runtime/host_call.h"
#include "tilewright/emulator.h"
#include "tilewright/operator.h"

#include <string>
#include <vector>

namespace tilewright::python {

/// The device that such calls run on, and how. For all calls from here on.
void set_emulator(const std::string& target, const emu::Options& options);

/// With a keep_going that ends a launch when a handler of Python's raises, for Ctrl-C. The launch
/// is to run without the GIL, and throw_if_interrupted() to follow with it.
emu::Options interruptible(emu::Options options);
void throw_if_interrupted();

/// Runs the operator on copies of the tensors and copies back what it writes. One call at a time;
/// returns what the emulator found, advice apart. Needs no GIL.
std::vector<emu::Diagnostic> run_in_emulator(const Operator& op, const Arguments& arguments,
                                             const std::vector<detail::HostTensor>& tensors);

}  // namespace tilewright::python
