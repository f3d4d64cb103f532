# SPDX-License-Identifier: Apache-2.0
"""CuTe DSL kernels whose PTX for sm_90a lies beside this file; run it to compile them anew (no GPU needed)."""
import os

os.environ.setdefault("CUTE_DSL_ARCH", "sm_90a")
os.environ.setdefault("CUTE_DSL_KEEP_PTX", "1")

import cutlass
import cutlass.cute as cute
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


if __name__ == "__main__":
    tensor = lambda: make_fake_compact_tensor(cutlass.Float32, (512,), stride_order=(0,), assumed_align=16)
    cute.compile(scale, tensor(), tensor(), cutlass.Float32(2))
    cute.compile(reverse, tensor(), tensor())
