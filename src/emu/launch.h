// SPDX-License-Identifier: Apache-2.0
// Preparing a launch: what the hardware allows, parameters, residency.
#pragma once

#include "emu/grid.h"

namespace tilewright::emu::detail {

struct HardwareLimits {
  int multiprocessors = 132;
  std::int64_t shared_bytes_block = 0;  ///< largest dynamic plus static of a block
  std::int64_t shared_bytes_sm = 0;
  std::uint32_t threads_sm = 2048;
  std::uint32_t blocks_sm = 32;
};
HardwareLimits hardware_limits(ptx::Target target);
/// Throws Error(unsupported) if a machine cannot run modules of that target.
void check_target(const ptx::Module& module, ptx::Target machine);
/// Throws Error(user) if there is no such entry.
const FunctionCode& find_entry(const Code& code, std::string_view name);
/// Checks a launch and makes its grid. Throws Error(user) for one that is impossible.
std::unique_ptr<Grid> prepare(Run& run, Device& device, const Launch& launch,
                              const Options& options);
/// The report of a grid that ran.
LaunchReport finish(Grid& grid);

}  // namespace tilewright::emu::detail
