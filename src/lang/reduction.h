// SPDX-License-Identifier: Apache-2.0
// Which types an atomic, bulk or multicast reduction takes, and how PTX spells them.
#pragma once

#include "tilewright/type.h"

#include <cstdint>
#include <string>

namespace tilewright::lang {

/// By operation: add; min and max; and, or, xor, exch; inc and dec.
enum class Operands : std::uint8_t { sum, order, bits, word };

/// ".u64", ".noftz.f16"; "" if the operation does not exist for the type.
std::string operand_word(Operands operands, Type type);
/// "it takes integers of 32 or 64 bits, f16, bf16, f32 and f64".
const char* operands_text(Operands operands);

/// The same for the copy engine, which also takes the least and greatest of f16 and bf16.
std::string engine_word(Operands operands, Type type);
std::string engine_text(Operands operands);

}  // namespace tilewright::lang
