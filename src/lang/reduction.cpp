// SPDX-License-Identifier: Apache-2.0
// Types of reductions.
#include "lang/reduction.h"

namespace tilewright::lang {

std::string operand_word(Operands operands, Type type) {
  bool word = bits(type) == 32 || bits(type) == 64;
  std::string exact = std::string(".") + std::string(name(type));
  switch (operands) {
    case Operands::sum:
      if (type == f16 || type == bf16) return ".noftz" + exact;
      if (type == s64) return ".u64";  // the same bits; PTX has no add.s64
      return word && (is_integer(type) || type == f32 || type == f64) ? exact : "";
    case Operands::order:
      return word && is_integer(type) ? exact : "";
    case Operands::bits:
      return word && !is_packed(type) ? ".b" + std::to_string(bits(type)) : "";
    case Operands::word:
      return type == u32 ? exact : "";
  }
  return "";
}

const char* operands_text(Operands operands) {
  switch (operands) {
    case Operands::sum:
      return "it takes integers of 32 or 64 bits, f16, bf16, f32 and f64";
    case Operands::order:
      return "it takes integers of 32 or 64 bits";
    case Operands::bits:
      return "it takes types of 32 or 64 bits";
    case Operands::word:
      return "it takes u32";
  }
  return "";
}

std::string engine_word(Operands operands, Type type) {
  bool half = type == f16 || type == bf16;
  if (operands == Operands::order && half) return "." + std::string(name(type));
  return operand_word(operands, type);
}

std::string engine_text(Operands operands) {
  return operands_text(operands) + std::string(operands == Operands::order ? ", f16 and bf16" : "");
}

}  // namespace tilewright::lang
