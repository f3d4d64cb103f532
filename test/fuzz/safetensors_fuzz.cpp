// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as a safetensors file.
#include "tilewright/safetensors.h"

#include <cstdint>
#include <span>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto header = tilewright::parse_safetensors_header(std::as_bytes(std::span(data, size)),
                                                             size, "x.safetensors");
    for (const tilewright::TensorEntry& tensor : header.tensors) {
      if (tensor.offset > size || tensor.size_bytes > size - tensor.offset) __builtin_trap();
    }
  } catch (const tilewright::Error& error) {
    if (error.kind() == tilewright::ErrorKind::internal) __builtin_trap();
  }
  return 0;
}
