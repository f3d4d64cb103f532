// SPDX-License-Identifier: Apache-2.0
// Functions that the device runtime provides: vprintf, assertions, malloc and free.
#pragma once

#include "emu/grid.h"

namespace tilewright::emu::detail {

Flow call_builtin(Exec& x, const Inst& in, std::uint32_t number);
/// Formats as printf does. `argument(bytes, alignment)` reads the next one from the buffer; `text`
/// reads a string of the device. Bad conversions are printed as they stand.
struct PrintSource {
  virtual ~PrintSource() = default;
  virtual std::uint64_t argument(int bytes) = 0;
  virtual std::string text(std::uint64_t address) = 0;
};
std::string format_print(const std::string& format, PrintSource& source);
/// A zero-terminated string anywhere in device memory, at most `limit` bytes.
std::string read_text(Exec& x, unsigned lane, std::uint64_t generic, std::size_t limit);

}  // namespace tilewright::emu::detail
