// SPDX-License-Identifier: Apache-2.0
// Names of spaces and memory objects for reports.
#pragma once

#include "emu/race.h"

#include <string>

namespace tilewright::emu::detail {

std::string space_name(Space space);
/// "shared address 0x410", "0x100000000200"
std::string describe_address(const Exec& x, const ShadowTarget& target, std::uint64_t address);
/// "variable s + 16", "allocation of 4096 bytes at 0x..., label, + 128"
std::string object_name(const Exec& x, const ShadowTarget& target, std::uint64_t address);
std::string shared_object(const Grid& grid, std::uint32_t address);
std::string global_object(const Memory& memory, std::uint64_t address);

}  // namespace tilewright::emu::detail
