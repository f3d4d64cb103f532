// SPDX-License-Identifier: Apache-2.0
// Calls whose tensors are in host memory: copied to a device, run there, copied back.
#pragma once

#include "tilewright/device.h"
#include "tilewright/diagnostic.h"
#include "tilewright/operator.h"

#include <span>
#include <string_view>
#include <vector>

namespace tilewright::detail {

/// One tensor of a call.
struct HostTensor {
  std::string_view name;
  Role role = Role::input;
  View view;  ///< its address is the host's
};

/// Runs the operator on copies of the tensors, which overlap as the tensors do, and copies back
/// what it writes. Returns what the emulator found, advice apart.
std::vector<emu::Diagnostic> run_on_copies(const Device& device, const Operator& op,
                                           Arguments arguments,
                                           std::span<const HostTensor> tensors);

}  // namespace tilewright::detail
