// SPDX-License-Identifier: Apache-2.0
// Warp-wide instructions besides shuffles and votes: reductions, matches, election, register
// budgets.
#pragma once

#include "tilewright/value.h"

namespace tilewright {

/// Combines `value` over all 32 lanes in one instruction (redux.sync, sm_80): every lane gets the
/// result. add, min and max take s32 and u32; and, or, xor any type of 32 bits. For others see
/// warp_reduce().
Value redux_add(const Arg& value);
Value redux_min(const Arg& value);
Value redux_max(const Arg& value);
Value redux_and(const Arg& value);
Value redux_or(const Arg& value);
Value redux_xor(const Arg& value);

/// The lanes that hold the same bits as this one (u32), for types of 32 or 64 bits.
Value match_any(const Arg& value);
/// Whether all lanes hold the same bits.
Value match_all(const Arg& value);
/// The lanes that execute this together right now (u32). They may be any that the hardware chose.
Value activemask(SourceLoc at = SourceLoc::here());
/// True in exactly one lane of the warp, always the same one (elect.sync): who begins a bulk copy.
Value elect_one(SourceLoc at = SourceLoc::here());

/// Raises or lowers the registers of this warp's threads to `count`, a multiple of 8 from 24 to
/// 256 (setmaxnreg); all warps of the warpgroup do the same. Pre: TraceOptions has the block, and
/// min_blocks_per_sm or max_registers; else the assembler ignores it.
void increase_registers(int count, SourceLoc at = SourceLoc::here());
void decrease_registers(int count, SourceLoc at = SourceLoc::here());

}  // namespace tilewright
