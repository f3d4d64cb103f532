// SPDX-License-Identifier: Apache-2.0
// The result of an atomic operation or asynchronous reduction on one element.
#pragma once

#include "emu/code.h"

namespace tilewright::emu::detail {

/// `a` is the old value, `b` the operand, both zero-extended. `flush`: f32 subnormals become zero,
/// as in global memory.
std::uint64_t combine(AtomOp op, Type type, std::uint64_t a, std::uint64_t b, bool flush);

}  // namespace tilewright::emu::detail
