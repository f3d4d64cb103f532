// SPDX-License-Identifier: Apache-2.0
// wgmma in flight: each warp does its 16 rows; registers and shared memory are taken until the
// wait.
#pragma once

#include "emu/grid.h"

namespace tilewright::emu::detail {

/// Reports an instruction that touches registers of a wgmma in flight, and notes register writes
/// for the check of wgmma.fence. Called before each instruction of kernels that have wgmma.
void check_wgmma_registers(Exec& x, const Inst& in);

}  // namespace tilewright::emu::detail
