// SPDX-License-Identifier: Apache-2.0
// The meaning of an opcode that the instruction table has resolved.
#include "ptx/semantics/semantics.h"

namespace tilewright::ptx::semantics {

Meaning resolve(const Opcode& opcode) { return resolve(to_string(opcode)); }

}  // namespace tilewright::ptx::semantics
