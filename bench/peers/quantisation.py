#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Quantisation to fp8 by token, block and tensor, and to MXFP8, alone, in a norm and in an activation, beside PyTorch and Triton.

    python3 bench/peers/quantisation.py [--json OUT] [--tokens 1,64,4096]
"""
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

import measure
import triton_rows
from tilewright import ops

LARGEST = 448.0
FLOOR = 1e-10
EPS = 1e-6


@triton.jit(do_not_specialize=["rows"])
def groups_kernel(x, given, q, scales, rows, W: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
                  KIND: tl.constexpr):
    """Rows of W elements that share a scale; by tensor, the scale is given."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    at = row[:, None] * W + column[None, :]
    inside = (row < rows)[:, None]
    if BLOCK != W:
        inside = inside & (column < W)[None, :]
    value = tl.load(x + at, mask=inside, other=0).to(tl.float32)
    if KIND == "tensor":
        scaled = value / tl.load(given)
    elif KIND == "mx":
        largest = tl.max(tl.abs(value), 1)
        bits = (largest / 448.0).to(tl.int32, bitcast=True)
        exponent = ((bits >> 23) & 0xFF) + ((bits & 0x7FFFFF) != 0).to(tl.int32)
        tl.store(scales + row, exponent.to(tl.uint8), mask=row < rows)
        scaled = value * ((254 - exponent) << 23).to(tl.float32, bitcast=True)[:, None]
    else:
        scale = tl.maximum(tl.max(tl.abs(value), 1), 1e-10) / 448.0
        tl.store(scales + row, scale, mask=row < rows)
        scaled = value / scale[:, None]
    tl.store(q + at, scaled.to(q.dtype.element_ty), mask=inside)


@triton.jit
def silu_codes_kernel(x, q, scales, D: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr):
    """SiLU of one half times the other, and codes with a scale for each group (GROUP = BLOCK: for the row)."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    column = chunk * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(x + row * 2 * D + column, mask=column < D, other=0).to(tl.float32)
    up = tl.load(x + row * 2 * D + D + column, mask=column < D, other=0).to(tl.float32)
    groups = tl.reshape(gate * tl.sigmoid(gate) * up, (BLOCK // GROUP, GROUP))
    scale = tl.maximum(tl.max(tl.abs(groups), 1), 1e-10) / 448.0
    codes = tl.reshape(groups / scale[:, None], (BLOCK,))
    tl.store(q + row * D + column, codes.to(q.dtype.element_ty), mask=column < D)
    count = (D + GROUP - 1) // GROUP
    group = chunk * (BLOCK // GROUP) + tl.arange(0, BLOCK // GROUP)
    tl.store(scales + row * count + group, scale, mask=group < count)


def triton_variants(kind, rows, width):
    def variant(rows_of_program, warps):
        grid = (triton.cdiv(rows, rows_of_program),)

        def run(x, given, q, scales):
            if kind == "mx":
                scales = scales.view(torch.uint8)
            groups_kernel[grid](x, given, q, scales, rows, width, triton.next_power_of_2(width), rows_of_program, kind,
                                num_warps=warps)
        return run
    return [variant(*each) for each in triton_rows.tilings(rows, width)]


def by_group(width):
    def function(x):
        groups = x.float().unflatten(-1, (-1, width))
        scales = groups.abs().amax(-1).clamp(min=FLOOR) / LARGEST
        return (groups / scales[..., None]).flatten(-2).to(torch.float8_e4m3fn), scales
    return function


def by_token(x):
    scales = x.float().abs().amax(-1).clamp(min=FLOOR) / LARGEST
    return (x.float() / scales[:, None]).to(torch.float8_e4m3fn), scales


def mxfp8(x):
    groups = x.float().unflatten(-1, (-1, 32))
    bits = (groups.abs().amax(-1) / LARGEST).view(torch.int32)
    exponent = ((bits >> 23) & 0xFF) + ((bits & 0x7FFFFF) != 0).int()
    codes = groups * ((254 - exponent) << 23).view(torch.float32)[..., None]
    return codes.flatten(-2).to(torch.float8_e4m3fn), exponent.to(torch.uint8).view(torch.float8_e8m0fnu)


def by_tensor(x, given):
    return (x.float() / given).clamp(-LARGEST, LARGEST).to(torch.float8_e4m3fn)


FORMATS = {  # the function, elements a scale (0: all of the row), type of the scales, Triton's kind
    "fp8_token": (by_token, 0, torch.float32, "token"),
    "fp8_block": (by_group(128), 128, torch.float32, "group"),
    "mxfp8": (mxfp8, 32, torch.float8_e8m0fnu, "mx"),
}


def quantize(form, t, h):
    function, group, scale_type, kind = FORMATS[form]
    shape = (t, h // group) if group else (t,)

    def make():
        return (torch.randn(t, h, device="cuda", dtype=torch.bfloat16),
                torch.empty(t, h, device="cuda", dtype=torch.float8_e4m3fn),
                torch.empty(shape, device="cuda", dtype=scale_type))

    # A quotient that is rounded otherwise may be the next code: an eighth of the number.
    case = measure.Case("quantize", f"T={t},H={h},x=bf16,format={form}", make, 2, function, tolerance=0.13)
    case.ways[measure.OURS] = lambda x, q, scales: ops.quantize(x, q=q, scales=scales, format=form)
    case.ways["triton"] = [lambda x, q, scales, run=run: run(x, None, q, scales)
                           for run in triton_variants(kind, t * h // (group or h), group or h)]
    return case


def quantize_tensor(t, h):
    def make():
        return (torch.randn(t, h, device="cuda", dtype=torch.bfloat16), torch.full((1,), 0.02, device="cuda"),
                torch.empty(t, h, device="cuda", dtype=torch.float8_e4m3fn))

    case = measure.Case("quantize", f"T={t},H={h},x=bf16,scale=f32,format=fp8_tensor", make, 1, by_tensor, tolerance=0.13)
    case.ways[measure.OURS] = lambda x, given, q: ops.quantize(x, given, q=q, format="fp8_tensor")[0]
    case.ways["triton"] = [lambda x, given, q, run=run: run(x, given, q, given)
                           for run in triton_variants("tensor", t * h // 1024, 1024)]
    return case


def norm_quantize(form, t, h):
    quantized, group, _, _ = FORMATS[form]

    def make():
        return (torch.randn(t, h, device="cuda", dtype=torch.bfloat16),
                torch.randn(h, device="cuda", dtype=torch.bfloat16),
                torch.empty(t, h, device="cuda", dtype=torch.float8_e4m3fn),
                torch.empty((t, h // group) if group else (t,), device="cuda"))

    case = measure.Case("rms_norm", f"T={t},H={h},x=bf16,w=bf16,quant={form}", make, 2,
                        lambda x, w: quantized(F.rms_norm(x.float(), (h,), w.float(), EPS)), tolerance=0.13)
    case.ways[measure.OURS] = lambda x, w, q, scales: ops.rms_norm(x, w, q=q, scales=scales, quant=form, eps=EPS)
    case.ways["triton"] = triton_rows.norm_codes(t, h, EPS, group)
    return case


def silu_quantize(form, t, n):
    quantized, group, _, _ = FORMATS[form]
    d = n // 2

    def make():
        return (torch.randn(t, n, device="cuda", dtype=torch.bfloat16),
                torch.empty(t, d, device="cuda", dtype=torch.float8_e4m3fn),
                torch.empty((t, d // group) if group else (t,), device="cuda"))

    def function(x):
        gate, up = x.float().chunk(2, -1)
        return quantized(F.silu(gate) * up)

    def variant(block, warps):
        return lambda x, q, scales: silu_codes_kernel[(t, triton.cdiv(d, block))](
            x, q, scales, d, block, group or block, num_warps=warps)

    case = measure.Case("silu_and_mul", f"T={t},N={n},x=bf16,quant={form}", make, 2, function, tolerance=0.13)
    case.ways[measure.OURS] = lambda x, q, scales: ops.silu_and_mul(x, q=q, scales=scales, quant=form)
    whole = triton.next_power_of_2(d)
    tilings = ((512, 2), (1024, 4), (2048, 8)) if group else ((whole, 4), (whole, 8), (whole, 16))
    case.ways["triton"] = [variant(*each) for each in tilings]
    return case


def cases(tokens):
    for form in ("fp8_block", "fp8_token"):
        yield from (silu_quantize(form, t, n) for n, t in measure.at_ends((4096,), (24576,), tokens))
    yield from (norm_quantize("fp8_token", t, h) for h, t in measure.at_ends((7168,), (4096,), tokens))
    yield from (norm_quantize("fp8_block", t, h) for h, t in measure.at_ends((7168,), (4096,), tokens))
    for form in FORMATS:
        yield from (quantize(form, t, h) for h, t in measure.at_ends((7168,), (4096, 2048), tokens))
    yield from (quantize_tensor(t, h) for h, t in measure.at_ends((7168,), (4096,), tokens))


if __name__ == "__main__":
    measure.main(__doc__, cases)
