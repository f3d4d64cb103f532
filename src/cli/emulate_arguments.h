// SPDX-License-Identifier: Apache-2.0
// Kernel arguments of `tilewright emulate`: `@file.npy`, `out:f32:64`, `i32:5`.
#pragma once

#include "tilewright/array.h"
#include "tilewright/emulator.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::cli {

/// One argument: a buffer with its first contents, or the bytes of a number.
struct KernelArgument {
  std::string text;             ///< as it was written
  std::optional<Array> buffer;  ///< its address is passed
  std::vector<std::byte> scalar;
  bool printed = false;  ///< an `out:` buffer
  std::string save;      ///< file for its contents after the launch; empty: it is printed
};

/// "@FILE[:TYPE]", "out:TYPE:N[=FILE]" (zeros), "iota:TYPE:N" (0, 1, 2, ...), "TYPE:NUMBER".
/// Throws Error(user) that lists the forms.
KernelArgument parse_kernel_argument(const std::string& text);

/// The arguments on a machine: buffers are allocated and filled, parameters packed.
struct PlacedArguments {
  std::vector<std::byte> params;
  std::vector<std::uint64_t> addresses;  ///< one an argument; 0 for numbers
};
/// Throws Error(user) where numbers or sizes do not fit the entry's parameters.
PlacedArguments place(emu::Machine& machine, const std::vector<emu::ParamSlot>& slots,
                      const std::vector<KernelArgument>& arguments, const std::string& entry);

/// The first values of a buffer for people: "out[0..3] = 1 2 3 4".
std::string preview(const Array& array, std::size_t most);

}  // namespace tilewright::cli
