// SPDX-License-Identifier: Apache-2.0
// Stores to bit-fields, as unoptimised code makes them.
#pragma once

#include "tilewright/module.h"

#include <unordered_set>

namespace tilewright::emu::detail {

/// The `and`s that keep the other bits of a word while one bit-field of it is stored: ld, and with
/// a constant, or, st. The first such store meets bits that nothing has written yet, rightly so:
/// whether they are defined is known by the register only, not by the bit, so these count as
/// defined.
std::unordered_set<const ptx::Instr*> bit_field_masks(const ptx::Function& function);

}  // namespace tilewright::emu::detail
