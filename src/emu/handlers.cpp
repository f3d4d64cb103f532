// SPDX-License-Identifier: Apache-2.0
// The handler of each effect.
#include "emu/handlers.h"

namespace tilewright::emu::detail {

Handler handler_of(ptx::Effect effect) {
  using ptx::Effect;
  switch (effect) {
    case Effect::lane:
      return exec_unsupported;  // a lane form without a meaning
    case Effect::load:
      return exec_load;
    case Effect::store:
      return exec_store;
    case Effect::prefetch:
      return exec_prefetch;
    case Effect::atomic:
    case Effect::reduction:
    case Effect::vector_atomic:
      return exec_atomic;
    case Effect::branch:
      return exec_branch;
    case Effect::branch_indexed:
      return exec_branch_indexed;
    case Effect::call:
      return exec_call;
    case Effect::ret:
      return exec_ret;
    case Effect::exit:
      return exec_exit;
    case Effect::trap:
      return exec_trap;
    case Effect::brkpt:
      return exec_nothing;
    case Effect::barrier:
      return exec_barrier;
    case Effect::barrier_warp:
      return exec_barrier_warp;
    case Effect::barrier_cluster:
      return exec_barrier_cluster;
    case Effect::fence:
      return exec_fence;
    case Effect::shuffle:
      return exec_shuffle;
    case Effect::vote:
      return exec_vote;
    case Effect::match:
      return exec_match;
    case Effect::redux:
      return exec_redux;
    case Effect::elect:
      return exec_elect;
    case Effect::activemask:
      return exec_activemask;
    case Effect::nanosleep:
      return exec_nanosleep;
    case Effect::special_register:
    case Effect::address_of:
      return exec_unsupported;
    case Effect::convert_address:
      return exec_convert_address;
    case Effect::is_space:
      return exec_is_space;
    case Effect::map_address:
      return exec_map_address;
    case Effect::stack:
      return exec_stack;
    case Effect::griddepcontrol:
      return exec_griddepcontrol;
    case Effect::setmaxnreg:
      return exec_nothing;
    case Effect::cp_async:
      return exec_cp_async;
    case Effect::cp_async_group:
      return exec_cp_async_group;
    case Effect::cp_async_mbarrier:
      return exec_cp_async_mbarrier;
    case Effect::mbarrier:
      return exec_mbarrier;
    case Effect::bulk_copy:
    case Effect::bulk_reduce:
      return exec_bulk_copy;
    case Effect::bulk_group:
      return exec_bulk_group;
    case Effect::tensor_copy:
    case Effect::tensor_reduce:
      return exec_tensor_copy;
    case Effect::tensor_prefetch:
      return exec_nothing;
    case Effect::tensormap:
      return exec_tensormap;
    case Effect::store_async:
    case Effect::reduction_async:
      return exec_store_async;
    case Effect::ldmatrix:
      return exec_ldmatrix;
    case Effect::stmatrix:
      return exec_stmatrix;
    case Effect::movmatrix:
      return exec_movmatrix;
    case Effect::mma:
      return exec_mma;
    case Effect::wmma:
      return exec_wmma;
    case Effect::wgmma:
      return exec_wgmma;
    case Effect::wgmma_sync:
      return exec_wgmma_sync;
    case Effect::multimem:
      return exec_multimem;
    case Effect::none:
      return exec_unsupported;
  }
  return exec_unsupported;
}

}  // namespace tilewright::emu::detail
