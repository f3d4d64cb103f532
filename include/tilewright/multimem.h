// SPDX-License-Identifier: Apache-2.0
// Multicast memory: one address behind which several devices keep the same bytes (multimem, sm_90).
#pragma once

#include "tilewright/fragment.h"
#include "tilewright/ordered.h"

namespace tilewright {

// Emulated devices only: emu::Fabric::multicast makes the address. The library makes none on GPUs,
// and kernels with these operations are refused there.

enum class Reduction : std::uint8_t { add, min, max, and_, or_, xor_ };

/// `order`: relaxed, or acquire for loads and release for stores and reductions.
struct MultimemOptions {
  Scope scope = Scope::sys;
  Order order = Order::relaxed;
};

/// The devices' elements combined: add takes integers of 32 and 64 bits, f32 and f64; min and max
/// such integers; and_, or_, xor_ any type of 32 or 64 bits.
Value multimem_load(Reduction reduction, const Element& cell, MultimemOptions options = {},
                    SourceLoc at = SourceLoc::here());
/// The same of neighbouring elements: 2 or 4 f32 (add), and 2, 4 or 8 f16 or bf16 (add, min, max),
/// combined in their type. The first address must be known to be aligned to all of their bytes.
Fragment multimem_load(Reduction reduction, const Element& first, int count,
                       MultimemOptions options = {}, SourceLoc at = SourceLoc::here());

/// Writes the value on every device: a type of 32 or 64 bits.
void multimem_store(const Element& cell, const Arg& value, MultimemOptions options = {});
/// 2 or 4 f32, or 2, 4 or 8 f16 or bf16.
void multimem_store(const Element& first, const Fragment& values, MultimemOptions options = {},
                    SourceLoc at = SourceLoc::here());

/// Combines the value with every device's element, atomically on each. Types as multimem_load.
void multimem_red(Reduction reduction, const Element& cell, const Arg& value,
                  MultimemOptions options = {});
void multimem_red(Reduction reduction, const Element& first, const Fragment& values,
                  MultimemOptions options = {}, SourceLoc at = SourceLoc::here());

}  // namespace tilewright
