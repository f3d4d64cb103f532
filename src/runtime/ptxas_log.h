// SPDX-License-Identifier: Apache-2.0
// What the assembler's log says: resources of each entry, and advisories C75xx.
#pragma once

#include "tilewright/assembler.h"

#include <string_view>
#include <vector>

namespace tilewright::detail {

/// From the lines that `ptxas -v` writes; entries in the order of the log.
std::vector<EntryResources> parse_resources(std::string_view log);

/// Throws Error(user) with the lines of all advisories C75xx (instructions serialised, setmaxnreg
/// ignored, and the like) whose numbers are not allowed.
void refuse_advisories(std::string_view log, const std::vector<int>& allowed, SourceLoc at);

}  // namespace tilewright::detail
