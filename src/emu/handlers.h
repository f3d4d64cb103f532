// SPDX-License-Identifier: Apache-2.0
// The handlers that decoding chooses among; each is described where it is defined.
#pragma once

#include "emu/code.h"

#include <span>

namespace tilewright::emu::detail {

Flow exec_lane(Exec& x, const Inst& in);
Handler lane_handler(std::span<const Slot> slots, unsigned dsts);
Flow exec_lane_negated(Exec& x, const Inst& in);  ///< some predicate source is negated
Flow exec_lane_carry(Exec& x, const Inst& in);
Flow exec_copy128(Exec& x, const Inst& in);
Flow exec_clock(Exec& x, const Inst& in);
Flow exec_unsupported(Exec& x, const Inst& in);
Flow exec_nothing(Exec& x, const Inst& in);

Flow exec_load(Exec& x, const Inst& in);
Flow exec_load_param(Exec& x, const Inst& in);
Flow exec_store(Exec& x, const Inst& in);
Flow exec_prefetch(Exec& x, const Inst& in);
Flow exec_atomic(Exec& x, const Inst& in);
Flow exec_multimem(Exec& x, const Inst& in);

Flow exec_branch(Exec& x, const Inst& in);
Flow exec_branch_indexed(Exec& x, const Inst& in);
Flow exec_call(Exec& x, const Inst& in);
Flow exec_ret(Exec& x, const Inst& in);
Flow exec_exit(Exec& x, const Inst& in);
Flow exec_trap(Exec& x, const Inst& in);
Flow exec_nanosleep(Exec& x, const Inst& in);

Flow exec_barrier(Exec& x, const Inst& in);
Flow exec_barrier_warp(Exec& x, const Inst& in);
Flow exec_barrier_cluster(Exec& x, const Inst& in);
Flow exec_fence(Exec& x, const Inst& in);

Flow exec_shuffle(Exec& x, const Inst& in);
Flow exec_vote(Exec& x, const Inst& in);
Flow exec_match(Exec& x, const Inst& in);
Flow exec_redux(Exec& x, const Inst& in);
Flow exec_elect(Exec& x, const Inst& in);
Flow exec_activemask(Exec& x, const Inst& in);

Flow exec_convert_address(Exec& x, const Inst& in);
Flow exec_is_space(Exec& x, const Inst& in);
Flow exec_map_address(Exec& x, const Inst& in);
Flow exec_stack(Exec& x, const Inst& in);
Flow exec_griddepcontrol(Exec& x, const Inst& in);

Flow exec_cp_async(Exec& x, const Inst& in);
Flow exec_cp_async_group(Exec& x, const Inst& in);
Flow exec_cp_async_mbarrier(Exec& x, const Inst& in);
Flow exec_mbarrier(Exec& x, const Inst& in);
Flow exec_bulk_copy(Exec& x, const Inst& in);
Flow exec_bulk_group(Exec& x, const Inst& in);
Flow exec_tensor_copy(Exec& x, const Inst& in);
Flow exec_tensormap(Exec& x, const Inst& in);
Flow exec_store_async(Exec& x, const Inst& in);

Flow exec_ldmatrix(Exec& x, const Inst& in);
Flow exec_stmatrix(Exec& x, const Inst& in);
Flow exec_movmatrix(Exec& x, const Inst& in);
Flow exec_mma(Exec& x, const Inst& in);
Flow exec_wmma(Exec& x, const Inst& in);
Flow exec_wgmma(Exec& x, const Inst& in);
Flow exec_wgmma_sync(Exec& x, const Inst& in);

/// The handler of an effect other than `lane`.
Handler handler_of(ptx::Effect effect);

}  // namespace tilewright::emu::detail
