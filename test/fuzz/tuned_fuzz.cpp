// SPDX-License-Identifier: Apache-2.0
// Fuzz target: any bytes as a file of tuned configurations; what is read prints and reads again.
#include "tilewright/tune_record.h"

#include <cstdint>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace tilewright;
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const std::string printed = tune::print_records(tune::parse_records(text, "fuzz"));
    if (tune::print_records(tune::parse_records(printed, "printed")) != printed) __builtin_trap();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) __builtin_trap();
  }
  return 0;
}
