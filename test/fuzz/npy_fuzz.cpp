// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as a .npy file.
#include "tilewright/npy.h"

#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    tilewright::parse_npy(std::as_bytes(std::span(data, size)), "x.npy", tilewright::Type::bf16);
  } catch (const tilewright::Error& error) {
    if (error.kind() == tilewright::ErrorKind::internal) __builtin_trap();
  }
  return 0;
}
