// SPDX-License-Identifier: Apache-2.0
// Calls whose tensors are in host memory: copied to an emulated device, run with checks, copied
// back.
#pragma once

#include "tilewright/emulator.h"
#include "tilewright/operator.h"

#include <string>
#include <vector>

namespace tilewright::python {

/// The device that such calls run on, and how. For all calls from here on.
void set_emulator(const std::string& target, const emu::Options& options);

/// One tensor of a call.
struct HostTensor {
  std::string_view name;
  Role role = Role::input;
  View view;  ///< its address is the host's
};

/// Runs the operator on copies of the tensors and copies back what it writes. One call at a time;
/// returns what the emulator found, advice apart. Needs no GIL.
std::vector<emu::Diagnostic> run_in_emulator(const Operator& op, Arguments arguments,
                                             const std::vector<HostTensor>& tensors);

}  // namespace tilewright::python
