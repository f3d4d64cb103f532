// SPDX-License-Identifier: Apache-2.0
// Values of special registers.
#pragma once

#include "emu/warp.h"

#include <cstdint>

namespace tilewright::emu::detail {

/// The value of ptx::special_registers()[index] for a lane; those that vary in time excepted.
std::uint64_t special_value(const Warp& warp, std::uint32_t index, int component, unsigned lane);

}  // namespace tilewright::emu::detail
