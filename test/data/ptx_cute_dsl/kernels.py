# SPDX-License-Identifier: Apache-2.0
"""CuTe DSL kernels whose PTX for sm_90a lies beside this file; run it to compile them anew (no GPU needed)."""
import os

os.environ.setdefault("CUTE_DSL_ARCH", "sm_90a")
os.environ.setdefault("CUTE_DSL_KEEP_PTX", "1")

import cutlass
import cutlass.cute as cute
import cutlass.pipeline as pipeline
import cutlass.utils.hopper_helpers as hopper
from cutlass.cute.nvgpu import cpasync, warpgroup
from cutlass.cute.runtime import make_fake_compact_tensor


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32):
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        y[i] = x[i] * factor


@cute.jit
def scale(x: cute.Tensor, y: cute.Tensor, factor: cutlass.Float32):
    scale_kernel(x, y, factor).launch(grid=[cute.ceil_div(cute.size(x), 128), 1, 1], block=[128, 1, 1])


@cute.kernel
def reverse_kernel(x: cute.Tensor, y: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    smem = cutlass.memory.SmemAllocator()
    tile = smem.allocate_tensor(cutlass.Float32, cute.make_layout(128), 16)
    tile[t] = x[cute.arch.block_idx()[0] * 128 + t]
    cute.arch.sync_threads()
    y[cute.arch.block_idx()[0] * 128 + t] = tile[127 - t]


@cute.jit
def reverse(x: cute.Tensor, y: cute.Tensor):
    reverse_kernel(x, y).launch(grid=[4, 1, 1], block=[128, 1, 1])


@cute.kernel
def row_norms_kernel(x: cute.Tensor, y: cute.Tensor, copy: cute.TiledCopy):
    """Rows of 1,024 numbers come by cp.async, 128 threads sum their squares, thread 0 writes the root."""
    t = cute.arch.thread_idx()[0]
    row = cute.arch.block_idx()[0]
    smem = cutlass.memory.SmemAllocator()
    tile = smem.allocate_tensor(cutlass.Float32, cute.make_layout((1, 1024), stride=(1024, 1)), 16)
    parts = smem.allocate_tensor(cutlass.Float32, cute.make_layout(4), 16)
    part = copy.get_slice(t)
    source = cute.local_tile(x, (1, 1024), (row, 0))
    to = part.partition_D(tile)
    cute.copy(copy, part.partition_S(source), to)
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    own = to.load()
    total = (own * own).reduce(cute.ReductionOp.ADD, 0.0, 0)
    for i in cutlass.range_constexpr(5):
        total += cute.arch.shuffle_sync_bfly(total, 1 << i)
    if t % 32 == 0:
        parts[t // 32] = total
    cute.arch.sync_threads()
    if t == 0:
        y[row] = cute.math.sqrt(parts[0] + parts[1] + parts[2] + parts[3])


@cute.jit
def row_norms(x: cute.Tensor, y: cute.Tensor):
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cutlass.Float32, num_bits_per_copy=128)
    copy = cute.make_tiled_copy_tv(atom, cute.make_layout((1, 128), stride=(128, 1)), cute.make_layout((1, 4), stride=(4, 1)))
    row_norms_kernel(x, y, copy).launch(grid=[cute.size(y), 1, 1], block=[128, 1, 1])


TILE = (64, 64, 64)
STAGES = 2


@cute.kernel
def multiply_kernel(mma: cute.TiledMma, load_a: cute.CopyAtom, a: cute.Tensor, load_b: cute.CopyAtom, b: cute.Tensor, c: cute.Tensor,
                    layout_a: cute.ComposedLayout, layout_b: cute.ComposedLayout):
    t, _, _ = cute.arch.thread_idx()
    m, n, _ = cute.arch.block_idx()
    warp = cute.arch.make_warp_uniform(cute.arch.warp_idx())
    smem = cutlass.memory.SmemAllocator()
    bars = smem.allocate_array(cutlass.Int64, 2 * STAGES)
    sa = smem.allocate_tensor(cutlass.Float16, layout_a.outer, 1024, swizzle=layout_a.inner)
    sb = smem.allocate_tensor(cutlass.Float16, layout_b.outer, 1024, swizzle=layout_b.inner)
    stage_bytes = cute.size_in_bytes(cutlass.Float16, cute.slice_(layout_a, (None, None, 0))) + cute.size_in_bytes(cutlass.Float16, cute.slice_(layout_b, (None, None, 0)))
    pipe = pipeline.PipelineTmaAsync.create(
        barrier_storage=bars, num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4),
        tx_count=stage_bytes)
    ga = cute.local_tile(a, (TILE[0], TILE[2]), (m, None))
    gb = cute.local_tile(b, (TILE[1], TILE[2]), (n, None))
    gc = cute.local_tile(c, (TILE[0], TILE[1]), (m, n))
    ta, tga = cpasync.tma_partition(load_a, 0, cute.make_layout(1), cute.group_modes(sa, 0, 2), cute.group_modes(ga, 0, 2))
    tb, tgb = cpasync.tma_partition(load_b, 0, cute.make_layout(1), cute.group_modes(sb, 0, 2), cute.group_modes(gb, 0, 2))
    part = mma.get_slice(t)
    fa = mma.make_fragment_A(part.partition_A(sa))
    fb = mma.make_fragment_B(part.partition_B(sb))
    tc = part.partition_C(gc)
    acc = cute.make_rmem_tensor(tc.shape, cutlass.Float32)
    count = cute.size(ga, mode=[2])
    put = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
    get = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
    free = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
    if warp == 0:
        for k in cutlass.range(cutlass.min(count, STAGES), unroll=1):
            pipe.producer_acquire(put)
            cute.copy(load_a, tga[None, k], ta[None, put.index], tma_bar_ptr=pipe.producer_get_barrier(put))
            cute.copy(load_b, tgb[None, k], tb[None, put.index], tma_bar_ptr=pipe.producer_get_barrier(put))
            pipe.producer_commit(put)
            put.advance()
    mma.set(warpgroup.Field.ACCUMULATE, False)
    for k in cutlass.range(count, unroll=1):
        pipe.consumer_wait(get)
        warpgroup.fence()
        for i in cutlass.range_constexpr(cute.size(fa, mode=[2])):
            cute.gemm(mma, acc, fa[None, None, i, get.index], fb[None, None, i, get.index], acc)
            mma.set(warpgroup.Field.ACCUMULATE, True)
        warpgroup.commit_group()
        warpgroup.wait_group(0)
        pipe.consumer_release(free)
        get.advance()
        free.advance()
        if warp == 0:
            if k + STAGES < count:
                pipe.producer_acquire(put)
                cute.copy(load_a, tga[None, k + STAGES], ta[None, put.index], tma_bar_ptr=pipe.producer_get_barrier(put))
                cute.copy(load_b, tgb[None, k + STAGES], tb[None, put.index], tma_bar_ptr=pipe.producer_get_barrier(put))
                pipe.producer_commit(put)
                put.advance()
    cute.autovec_copy(acc, tc)


@cute.jit
def multiply(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    mma = hopper.make_trivial_tiled_mma(cutlass.Float16, cutlass.Float16, cute.nvgpu.OperandMajorMode.K, cute.nvgpu.OperandMajorMode.K,
                                        cutlass.Float32, (1, 1, 1), (TILE[0], TILE[1]))
    la = hopper.make_smem_layout_a(cutlass.tensor_utils.LayoutEnum.ROW_MAJOR, TILE, cutlass.Float16, STAGES)
    lb = hopper.make_smem_layout_b(cutlass.tensor_utils.LayoutEnum.ROW_MAJOR, TILE, cutlass.Float16, STAGES)
    op = cpasync.CopyBulkTensorTileG2SOp()
    load_a, ta = cpasync.make_tiled_tma_atom(op, a, cute.slice_(la, (None, None, 0)), (TILE[0], TILE[2]))
    load_b, tb = cpasync.make_tiled_tma_atom(op, b, cute.slice_(lb, (None, None, 0)), (TILE[1], TILE[2]))
    multiply_kernel(mma, load_a, ta, load_b, tb, c, la, lb).launch(grid=[cute.ceil_div(cute.size(c, mode=[0]), TILE[0]), cute.ceil_div(cute.size(c, mode=[1]), TILE[1]), 1], block=[128, 1, 1])


if __name__ == "__main__":
    tensor = lambda *shape, of=cutlass.Float32, align=16: make_fake_compact_tensor(
        of, shape, stride_order=tuple(reversed(range(len(shape)))), assumed_align=align)
    cute.compile(scale, tensor(512), tensor(512), cutlass.Float32(2))
    cute.compile(reverse, tensor(512), tensor(512))
    cute.compile(row_norms, tensor(3, 1024), tensor(3, align=4))
    cute.compile(multiply, tensor(64, 192, of=cutlass.Float16), tensor(128, 192, of=cutlass.Float16), tensor(64, 128))
