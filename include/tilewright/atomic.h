// SPDX-License-Identifier: Apache-2.0
// Atomic operations on elements in memory, with and without the old value.
#pragma once

#include "tilewright/fragment.h"
#include "tilewright/ordered.h"

namespace tilewright {

/// Among whom an operation is atomic, and what it orders besides.
struct AtomicOptions {
  Scope scope = Scope::gpu;
  Order order = Order::relaxed;
};

// Each replaces the element by a function of it and `value`, and gives what was there before.
/// Integers of 32 and 64 bits, f16, bf16, f64, and f32, whose subnormals become 0 in global memory
/// (PTX ISA, atom).
Value atomic_add(const Element& cell, const Arg& value, AtomicOptions options = {});
/// Integers of 32 and 64 bits.
Value atomic_min(const Element& cell, const Arg& value, AtomicOptions options = {});
Value atomic_max(const Element& cell, const Arg& value, AtomicOptions options = {});
Value atomic_and(const Element& cell, const Arg& value, AtomicOptions options = {});
Value atomic_or(const Element& cell, const Arg& value, AtomicOptions options = {});
Value atomic_xor(const Element& cell, const Arg& value, AtomicOptions options = {});
/// u32: old >= value ? 0 : old + 1.
Value atomic_inc(const Element& cell, const Arg& value, AtomicOptions options = {});
/// u32: old == 0 || old > value ? value : old - 1.
Value atomic_dec(const Element& cell, const Arg& value, AtomicOptions options = {});
/// Any type of 32 or 64 bits.
Value atomic_exch(const Element& cell, const Arg& value, AtomicOptions options = {});
/// Writes `value` where the element's bits are those of `expected`: any type of 16, 32 or 64 bits.
Value atomic_cas(const Element& cell, const Arg& expected, const Arg& value,
                 AtomicOptions options = {});

// The same without the old value (red): the thread does not wait for it. Order relaxed or release.
void red_add(const Element& cell, const Arg& value, AtomicOptions options = {});
void red_min(const Element& cell, const Arg& value, AtomicOptions options = {});
void red_max(const Element& cell, const Arg& value, AtomicOptions options = {});
void red_and(const Element& cell, const Arg& value, AtomicOptions options = {});
void red_or(const Element& cell, const Arg& value, AtomicOptions options = {});
void red_xor(const Element& cell, const Arg& value, AtomicOptions options = {});
void red_inc(const Element& cell, const Arg& value, AtomicOptions options = {});
void red_dec(const Element& cell, const Arg& value, AtomicOptions options = {});

// Several neighbouring elements, each added atomically but not all at once: pairs of f16 or bf16
// anywhere, and in global memory 2 or 4 f32, and 4 or 8 f16 or bf16. The first element's address
// must be known to be aligned to all of their bytes.
Fragment atomic_add(const Element& first, const Fragment& values, AtomicOptions options = {},
                    SourceLoc at = SourceLoc::here());
void red_add(const Element& first, const Fragment& values, AtomicOptions options = {},
             SourceLoc at = SourceLoc::here());

}  // namespace tilewright
