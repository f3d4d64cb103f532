// SPDX-License-Identifier: Apache-2.0
// Byte addresses of elements: a shared base register plus an immediate.
#pragma once

#include "lang/tracer.h"
#include "tilewright/tensor.h"

namespace tilewright::lang {

/// An offset in elements as one in units of whole bytes: a 4-bit type's in bytes. Throws
/// Error(user) unless such an offset is known to be even.
Int addressable_offset(Type type, const Int& elements, SourceLoc at);
/// The byte address `elements` after the tensor's base, as a value (u64, or u32 for shared).
Value address_of(const Tensor& tensor, const Int& elements, SourceLoc at);
/// The same as an operand [register + immediate].
ptx::Operand address_operand(const Tensor& tensor, const Int& elements, SourceLoc at);
inline ptx::Operand address_operand(const Element& element, SourceLoc at) {
  return address_operand(element.tensor(), element.offset(), at);
}
/// Alignment in bytes that is known for the element's address.
std::int64_t known_alignment(const Element& element);
/// As PTX spells the space: "global", "shared" or "shared::cluster".
const char* space_word(MemorySpace space);
/// The address of a shared-memory symbol, as u32.
Value shared_symbol(Tracer& tracer, ptx::SymbolId id, int alignment_bytes, SourceLoc at);

}  // namespace tilewright::lang
