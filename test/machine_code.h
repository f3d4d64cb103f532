// SPDX-License-Identifier: Apache-2.0
// Reads the machine code of a cubin: which instructions stand in it, in order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace tilewright::test {

/// The lowest 12 bits of every instruction in the .text sections of a cubin for sm_70 or newer, 16
/// bytes each, without the no-operations that fill the last line.
std::vector<unsigned> opcodes_in(std::span<const std::byte> cubin);

}  // namespace tilewright::test
