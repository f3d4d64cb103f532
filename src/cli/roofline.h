// SPDX-License-Identifier: Apache-2.0
// The least time that a GPU needs for what the emulator counted.
#pragma once

#include "cli/json.h"
#include "tilewright/emulator.h"

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::cli {

/// One limit of a GPU, and how long it makes the kernel take at least.
struct Bound {
  const char* what;  ///< "global memory"
  const char* unit;  ///< of amount: "bytes"
  std::uint64_t amount = 0;
  double rate = 0;  ///< units a second
  double us = 0;
};

/// Bounds of a GPU that has a row in the table. Throws Error(user) that lists the names.
std::vector<Bound> bounds_of(const emu::Counters& counters, std::string_view gpu);

std::string roofline_text(const std::vector<Bound>& bounds, std::string_view gpu);
Json json_of(const std::vector<Bound>& bounds, std::string_view gpu);

}  // namespace tilewright::cli
