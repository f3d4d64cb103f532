#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gated activations beside PyTorch, Triton, Liger and FlashInfer.

    python3 bench/peers/activations.py [--json OUT] [--tokens 1,64,4096] [--only silu_and_mul]

Widths are those of Qwen3, Llama 3, DeepSeek-V3 and gpt-oss, and one whose half is odd. Liger, where its package is
there, takes gate and up as two tensors.
"""
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

import flashinfer_kernels
import measure
from tilewright import ops

try:
    from liger_kernel.ops.geglu import geglu_forward
    from liger_kernel.ops.relu_squared import relu_squared_forward
    from liger_kernel.ops.swiglu import swiglu_forward
    LIGER = {"silu_and_mul": swiglu_forward, "gelu_tanh_and_mul": geglu_forward}
except ImportError:
    LIGER = {}

ALPHA, LIMIT = 1.702, 7.0
ODD_WIDTH = 2 * 4097


@triton.jit
def activation_kernel(x, y, D: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, KIND: tl.constexpr, rows):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = (row < rows)[:, None]
    if D % BLOCK != 0:
        inside = inside & (column < D)[None, :]
    if KIND == "relu2":
        gate = tl.load(x + row[:, None] * D + column[None, :], mask=inside, other=0).to(tl.float32)
        gate = tl.maximum(gate, 0)
        out = gate * gate
    elif KIND == "swigluoai":
        at = row[:, None, None] * (2 * D) + (2 * column[None, :, None] + tl.arange(0, 2)[None, None, :])
        pair = tl.load(x + at, mask=inside[:, :, None], other=0).to(tl.float32)
        gate, up = tl.split(pair)
        gate = tl.minimum(gate, 7.0)
        up = tl.minimum(tl.maximum(up, -7.0), 7.0)
        out = (up + 1) * gate * tl.sigmoid(1.702 * gate)
    else:
        at = row[:, None] * (2 * D) + column[None, :]
        gate = tl.load(x + at, mask=inside, other=0).to(tl.float32)
        up = tl.load(x + at + D, mask=inside, other=0).to(tl.float32)
        if KIND == "silu":
            out = gate * tl.sigmoid(gate) * up
        elif KIND == "gelu":
            out = 0.5 * gate * (1 + tl.erf(gate * 0.7071067811865476)) * up
        else:
            out = gate * tl.sigmoid(1.5957691216057308 * (gate + 0.044715 * gate * gate * gate)) * up
    tl.store(y + row[:, None] * D + column[None, :], out.to(y.dtype.element_ty), mask=inside)


def triton_variants(kind, t, d):
    def variant(rows, block, warps):
        grid = (triton.cdiv(t, rows), triton.cdiv(d, block))
        return lambda x, y: activation_kernel[grid](x, y, d, block, rows, kind, t, num_warps=warps)
    tilings = ((1, 256, 1), (1, 512, 2), (1, 1024, 4), (1, 2048, 4), (1, 2048, 8), (1, 4096, 8), (4, 512, 4))
    return [variant(*each) for each in tilings if each[0] <= t and each[1] <= triton.next_power_of_2(d)]


def swigluoai(x):
    gate, up = x.float().unflatten(-1, (-1, 2)).unbind(-1)
    gate, up = gate.clamp(max=LIMIT), up.clamp(-LIMIT, LIMIT)
    return ((up + 1) * gate * torch.sigmoid(ALPHA * gate)).to(x.dtype)


def gated(activation):
    def function(x):
        gate, up = x.chunk(2, -1)
        return activation(gate) * up
    return function


FUNCTIONS = {
    "silu_and_mul": ("silu", gated(F.silu), {}),
    "gelu_and_mul": ("gelu", gated(F.gelu), {}),
    "gelu_tanh_and_mul": ("gelu_tanh", gated(lambda x: F.gelu(x, approximate="tanh")), {}),
    "relu2": ("relu2", lambda x: F.relu(x).square(), {}),
    "swigluoai_and_mul": ("swigluoai", swigluoai, {"layout": "interleaved"}),
}


def activation(name, t, n):
    kind, function, options = FUNCTIONS[name]
    d = n if name == "relu2" else n // 2
    problem = f"T={t},N={n},x=bf16" + "".join(f",{key}={value}" for key, value in options.items())

    def make():
        return (torch.randn(t, n, device="cuda", dtype=torch.bfloat16),
                torch.empty(t, d, device="cuda", dtype=torch.bfloat16))

    # PyTorch rounds gate and product apart.
    case = measure.Case(name, problem, make, 1, function, tolerance=4e-2)
    operator = getattr(ops, name)
    case.ways[measure.OURS] = lambda x, y: operator(x, y=y, **options)
    case.ways["triton"] = triton_variants(kind, t, d)
    if name in LIGER:
        forward = LIGER[name]
        case.ways["liger"] = lambda x, y: forward(*x.view(2, t, d))[2]  # the same bytes, as two tensors
        case.unchecked.add("liger")
    if name == "silu_and_mul" and d % 8 == 0 and flashinfer_kernels.AVAILABLE:
        case.ways["flashinfer"] = lambda x, y: flashinfer_kernels.call("silu_and_mul", x, y, t, d)
    if name == "relu2" and LIGER:
        case.ways["liger"] = lambda x, y: relu_squared_forward(x)
    return case


def cases(tokens):
    widths = {"silu_and_mul": ((24576, 4096), (1536, 28672, 51200, ODD_WIDTH)), "swigluoai_and_mul": ((5760,), ()),
              "gelu_tanh_and_mul": ((24576,), (4096,)), "gelu_and_mul": ((24576,), (4096,)), "relu2": ((12288,), ())}
    for name, (first, others) in widths.items():
        yield from (activation(name, t, n) for n, t in measure.at_ends(first, others, tokens))


if __name__ == "__main__":
    measure.main(__doc__, cases, ("liger_kernel",))
