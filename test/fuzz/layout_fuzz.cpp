// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as an expression of the layout algebra.
#include "tilewright/layout_eval.h"

#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tilewright::evaluate_layout_expression(
        std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const tilewright::Error& error) {
    if (error.kind() == tilewright::ErrorKind::internal) __builtin_trap();
  }
  return 0;
}
