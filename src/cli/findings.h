// SPDX-License-Identifier: Apache-2.0
// What the emulator found and counted, as text and JSON.
#pragma once

#include "cli/json.h"
#include "cli/program.h"
#include "tilewright/emulator.h"

#include <string>
#include <vector>

namespace tilewright::cli {

/// Exit::findings if one is an error or undefined behaviour; advice alone is right.
Exit exit_of(const std::vector<emu::Diagnostic>& findings);
std::string text_of(const std::vector<emu::Diagnostic>& findings);  ///< a line or more each
Json json_of(const emu::Diagnostic& finding);
Json json_of(const std::vector<emu::Diagnostic>& findings);

std::string totals_text(const emu::Counters& counters, std::uint64_t steps);
/// A table with one row for each instruction.
std::string counters_text(const emu::Counters& counters);
Json json_of(const emu::Counters& counters);

}  // namespace tilewright::cli
