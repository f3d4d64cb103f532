// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as PTX; what parses must print, and the print must parse to the same
// print.
#include "tilewright/error.h"
#include "tilewright/module.h"

#include <cstdint>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tilewright;
  ptx::Module module;
  try {
    module = ptx::parse(std::string_view(reinterpret_cast<const char*>(data), size), "fuzz.ptx");
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) __builtin_trap();
    return 0;
  }
  const std::string once = ptx::print(module);
  ptx::Module again = ptx::parse(once, "printed.ptx");  // throws if the print is no PTX
  if (ptx::print(again) != once) __builtin_trap();
  return 0;
}
