# SPDX-License-Identifier: Apache-2.0
"""Codes of eight and four bits in Triton: quantisation alone, behind a norm and behind an activation, and the way back.

KIND is fp8 (a scale in f32 for a group, or for a row as one group), tensor (one scale, given), mxfp8, mxfp4 or nvfp4.
Scales of mx are passed as bytes, fp4 codes as bytes with two of them. sm_90 has no conversion to e2m1: f32 whose
exponent is lowered by 126 has e2m1's bits in front, subnormal numbers included, and is rounded there to nearest even.
"""
import triton
import triton.language as tl

import triton_rows


@triton.jit
def e2m1_pairs(value, ROWS: tl.constexpr, WIDTH: tl.constexpr):
    """Numbers [ROWS, WIDTH] to bytes [ROWS, WIDTH / 2], the first of two in the lower half."""
    bits = (value * 1.1754943508222875e-38).to(tl.int32, bitcast=True)
    size = bits & 0x7FFFFFFF
    code = tl.minimum((size + 0x1FFFFF + ((size >> 22) & 1)) >> 22, 7) | ((bits >> 28) & 8)
    low, high = tl.split(tl.reshape(code, (ROWS, WIDTH // 2, 2)))
    return (low | (high << 4)).to(tl.uint8)


@triton.jit
def scaled(value, encode, KIND: tl.constexpr):
    """Groups [N, GROUP] over their scales, and the scales [N] as they are stored."""
    largest = tl.max(tl.abs(value), 1)
    if KIND == "fp8":
        stored = tl.maximum(largest, 1e-10) / 448.0
        value = value / stored[:, None]
    elif KIND == "nvfp4":
        stored = (largest / 6.0 * encode).to(tl.float8e4nv)
        scale = stored.to(tl.float32)
        value = value * tl.where(scale > 0, encode / scale, 0)[:, None]
    else:
        bits = largest.to(tl.int32, bitcast=True)
        if KIND == "mxfp8":  # the power of two at or above largest / 448 = largest / (1.75 * 2^8)
            exponent = (bits >> 23) - 8 + ((bits & 0x7FFFFF) > 0x600000).to(tl.int32)
        else:  # or largest / 6 = largest / (1.5 * 2^2)
            exponent = (bits >> 23) - 2 + ((bits & 0x7FFFFF) > 0x400000).to(tl.int32)
        exponent = tl.maximum(exponent, 0)
        stored = exponent.to(tl.uint8)
        value = value * ((254 - exponent) << 23).to(tl.float32, bitcast=True)[:, None]
    return value, stored


@triton.jit
def store_codes(value, encode, q, scales, row, chunk, D: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr,
                KIND: tl.constexpr):
    """Of elements chunk * BLOCK to (chunk + 1) * BLOCK of a row of D."""
    groups, stored = scaled(tl.reshape(value, (BLOCK // GROUP, GROUP)), encode, KIND)
    group = chunk * (BLOCK // GROUP) + tl.arange(0, BLOCK // GROUP)
    count = (D + GROUP - 1) // GROUP
    tl.store(scales + row * count + group, stored, mask=group < count)
    if KIND == "mxfp4" or KIND == "nvfp4":
        pair = chunk * (BLOCK // 2) + tl.arange(0, BLOCK // 2)
        codes = tl.reshape(e2m1_pairs(groups, BLOCK // GROUP, GROUP), (BLOCK // 2,))
        tl.store(q + row * (D // 2) + pair, codes, mask=pair < D // 2)
    else:
        column = chunk * BLOCK + tl.arange(0, BLOCK)
        tl.store(q + row * D + column, tl.reshape(groups, (BLOCK,)).to(q.dtype.element_ty), mask=column < D)


@triton.jit(do_not_specialize=["rows"])
def groups_kernel(x, given, q, scales, rows, W: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
                  KIND: tl.constexpr):
    """Rows of W elements that share a scale; `given` is that of the tensor, or nvfp4's encode scale."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    at = row[:, None] * W + column[None, :]
    inside = (row < rows)[:, None]
    if BLOCK != W:
        inside = inside & (column < W)[None, :]
    value = tl.load(x + at, mask=inside, other=0).to(tl.float32)
    if KIND == "tensor":
        value = value / tl.load(given)
    else:
        value, stored = scaled(value, tl.load(given) if KIND == "nvfp4" else 1.0, KIND)
        tl.store(scales + row, stored, mask=row < rows)
    if KIND == "mxfp4" or KIND == "nvfp4":
        pair = row[:, None] * (W // 2) + tl.arange(0, W // 2)[None, :]
        tl.store(q + pair, e2m1_pairs(value, ROWS, W), mask=(row < rows)[:, None])
    else:
        tl.store(q + at, value.to(q.dtype.element_ty), mask=inside)


@triton.jit
def norm_codes_kernel(x, residual, w, bias, encode, q, scales, residual_out, eps, H: tl.constexpr, BLOCK: tl.constexpr,
                      GROUP: tl.constexpr, KIND: tl.constexpr, ADD: tl.constexpr, CENTRE: tl.constexpr):
    """A row a program: its norm, and codes with a scale for the row (GROUP = BLOCK) or for each group."""
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    inside = column < H
    value = tl.load(x + row * H + column, mask=inside, other=0).to(tl.float32)
    weight = tl.load(w + column, mask=inside, other=0).to(tl.float32)
    if ADD:
        value += tl.load(residual + row * H + column, mask=inside, other=0).to(tl.float32)
        rounded = value.to(residual_out.dtype.element_ty)
        tl.store(residual_out + row * H + column, rounded, mask=inside)
        value = rounded.to(tl.float32)
    if CENTRE:
        value = tl.where(inside, value - tl.sum(value, 0) / H, 0)
    value = value * tl.rsqrt(tl.sum(value * value, 0) / H + eps) * weight
    if CENTRE:
        value += tl.load(bias + column, mask=inside, other=0).to(tl.float32)
    store_codes(value, tl.load(encode) if KIND == "nvfp4" else 1.0, q, scales, row, 0, H, BLOCK, GROUP, KIND)


@triton.jit
def silu_codes_kernel(x, encode, q, scales, D: tl.constexpr, BLOCK: tl.constexpr, GROUP: tl.constexpr,
                      KIND: tl.constexpr):
    """SiLU of one half times the other, and codes with a scale for each group (GROUP = BLOCK: for the row)."""
    row, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1)
    column = chunk * BLOCK + tl.arange(0, BLOCK)
    gate = tl.load(x + row * 2 * D + column, mask=column < D, other=0).to(tl.float32)
    up = tl.load(x + row * 2 * D + D + column, mask=column < D, other=0).to(tl.float32)
    store_codes(gate * tl.sigmoid(gate) * up, tl.load(encode) if KIND == "nvfp4" else 1.0, q, scales, row, chunk, D,
                BLOCK, GROUP, KIND)


@triton.jit
def numbers_kernel(q, scales, decode, y, n, BLOCK: tl.constexpr, GROUP: tl.constexpr, KIND: tl.constexpr):
    """Codes of n elements times the scales of their groups."""
    first = tl.program_id(0).to(tl.int64) * BLOCK
    group = first // GROUP + tl.arange(0, BLOCK // GROUP)
    scale = tl.load(scales + group, mask=group < n // GROUP)
    if KIND == "mxfp4":
        scale = tl.maximum(scale.to(tl.int32) << 23, 0x400000).to(tl.float32, bitcast=True)
    elif KIND == "nvfp4":
        scale = scale.to(tl.float32) * tl.load(decode)
    at = first + tl.arange(0, BLOCK)
    if KIND == "fp8":
        value = tl.load(q + at, mask=at < n).to(tl.float32)
    else:  # e2m1's bits are those of f16 with an exponent that is 14 less
        pair = first // 2 + tl.arange(0, BLOCK // 2)
        byte = tl.load(q + pair, mask=pair < n // 2).to(tl.int32)
        bits = tl.reshape(tl.join(byte & 0xF, byte >> 4), (BLOCK,))
        value = (((bits & 7) << 9) | ((bits & 8) << 12)).to(tl.int16).to(tl.float16, bitcast=True).to(tl.float32) * 16384.0
    value = tl.reshape(tl.reshape(value, (BLOCK // GROUP, GROUP)) * scale[:, None], (BLOCK,))
    tl.store(y + at, value.to(y.dtype.element_ty), mask=at < n)


def groups(kind, rows, width):
    """Variants of a function of (x, given, q, scales), for rows that share a scale."""
    def variant(rows_of_program, warps):
        return lambda x, given, q, scales: groups_kernel[(triton.cdiv(rows, rows_of_program),)](
            x, given, q, scales, rows, width, triton.next_power_of_2(width), rows_of_program, kind, num_warps=warps)
    return [variant(*each) for each in triton_rows.tilings(rows, width)]


def norms(kind, rows, width, eps, group, add=False, centre=False):
    """Variants of a function of (x, residual, w, bias, encode, q, scales, residual_out), what is not read being None."""
    block = triton.next_power_of_2(width)
    return [lambda *tensors, warps=warps: norm_codes_kernel[(rows,)](
        *tensors, eps, width, block, group or block, kind, add, centre, num_warps=warps) for warps in (4, 8, 16)]


def silus(kind, rows, width, group):
    """Variants of a function of (x, encode, q, scales)."""
    whole = triton.next_power_of_2(width)

    def variant(block, warps):
        return lambda *tensors: silu_codes_kernel[(rows, triton.cdiv(width, block))](
            *tensors, width, block, group or block, kind, num_warps=warps)
    tilings = ((512, 2), (1024, 2), (1024, 4), (2048, 8)) if group else ((whole, 4), (whole, 8), (whole, 16))
    return [variant(*each) for each in tilings]


def numbers(kind, n, group):
    """Variants of a function of (q, scales, decode, y)."""
    def variant(block, warps):
        return lambda *tensors: numbers_kernel[(triton.cdiv(n, block),)](*tensors, n, block, group, kind, num_warps=warps)
    return [variant(*each) for each in ((512, 1), (1024, 2), (1024, 4), (2048, 4), (4096, 4), (4096, 8), (8192, 8))]
