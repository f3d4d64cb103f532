# SPDX-License-Identifier: Apache-2.0
"""Norms over rows in Triton, as well tuned as it gets: rows a program and warps are chosen by measuring."""
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["rows"])
def row_norm_kernel(x, residual, w, bias, y, residual_out, rows, eps, H: tl.constexpr, BLOCK: tl.constexpr,
                    ROWS: tl.constexpr, ADD: tl.constexpr, CENTRE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, BLOCK)
    at = row[:, None] * H + column[None, :]
    inside = (row < rows)[:, None]
    if BLOCK != H:
        inside = inside & (column < H)[None, :]
    value = tl.load(x + at, mask=inside, other=0).to(tl.float32)
    weight = tl.load(w + column, mask=column < H, other=0).to(tl.float32)
    if ADD:
        value += tl.load(residual + at, mask=inside, other=0).to(tl.float32)
        rounded = value.to(residual_out.dtype.element_ty)
        tl.store(residual_out + at, rounded, mask=inside)
        value = rounded.to(tl.float32)
    if CENTRE:
        mean = tl.sum(value, 1) / H
        value = tl.where(inside, value - mean[:, None], 0)
    rstd = tl.rsqrt(tl.sum(value * value, 1) / H + eps)
    out = value * rstd[:, None] * weight[None, :]
    if CENTRE:
        out += tl.load(bias + column, mask=column < H, other=0).to(tl.float32)[None, :]
    tl.store(y + at, out.to(y.dtype.element_ty), mask=inside)


@triton.jit
def head_norm(x, w, y, block, rows, eps, D: tl.constexpr, ROWS: tl.constexpr):
    row = block.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, D)
    at = row[:, None] * D + column[None, :]
    inside = (row < rows)[:, None]
    value = tl.load(x + at, mask=inside, other=0).to(tl.float32)
    weight = tl.load(w + column).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(value * value, 1) / D + eps)
    tl.store(y + at, (value * rstd[:, None] * weight[None, :]).to(y.dtype.element_ty), mask=inside)


@triton.jit(do_not_specialize=["q_rows", "k_rows", "q_blocks"])
def qk_norm_kernel(q, k, q_weight, k_weight, q_out, k_out, q_rows, k_rows, q_blocks, eps, D: tl.constexpr,
                   ROWS: tl.constexpr):
    block = tl.program_id(0)
    if block < q_blocks:
        head_norm(q, q_weight, q_out, block, q_rows, eps, D, ROWS)
    else:
        head_norm(k, k_weight, k_out, block - q_blocks, k_rows, eps, D, ROWS)


@triton.jit
def head_rope(x, w, positions, cos_sin, y, block, rows, eps, HEADS: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
              NORM: tl.constexpr):
    row = block.to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, D // 2)
    at = row[:, None] * D + column[None, :]
    inside = row < rows
    position = tl.load(positions + row // HEADS, mask=inside, other=0)
    first = tl.load(x + at, mask=inside[:, None], other=0).to(tl.float32)
    second = tl.load(x + at + D // 2, mask=inside[:, None], other=0).to(tl.float32)
    if NORM:
        rstd = tl.rsqrt((tl.sum(first * first, 1) + tl.sum(second * second, 1)) / D + eps)
        first = first * rstd[:, None] * tl.load(w + column).to(tl.float32)[None, :]
        second = second * rstd[:, None] * tl.load(w + column + D // 2).to(tl.float32)[None, :]
    angle = position[:, None] * D + column[None, :]
    cos = tl.load(cos_sin + angle).to(tl.float32)
    sin = tl.load(cos_sin + angle + D // 2).to(tl.float32)
    tl.store(y + at, (first * cos - second * sin).to(y.dtype.element_ty), mask=inside[:, None])
    tl.store(y + at + D // 2, (second * cos + first * sin).to(y.dtype.element_ty), mask=inside[:, None])


@triton.jit(do_not_specialize=["q_rows", "k_rows", "q_blocks"])
def qk_rope_kernel(q, k, q_weight, k_weight, positions, cos_sin, q_out, k_out, q_rows, k_rows, q_blocks, eps,
                   HQ: tl.constexpr, HK: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, NORM: tl.constexpr):
    block = tl.program_id(0)
    if block < q_blocks:
        head_rope(q, q_weight, positions, cos_sin, q_out, block, q_rows, eps, HQ, D, ROWS, NORM)
    else:
        head_rope(k, k_weight, positions, cos_sin, k_out, block - q_blocks, k_rows, eps, HK, D, ROWS, NORM)


def tilings(rows, width):
    """(rows a program, warps) worth trying: 8 to 32 elements a thread, more rows where there are many."""
    block = triton.next_power_of_2(width)
    for rows_of_program in (1, 4, 16, 64, 256):
        if rows_of_program > max(1, rows // 132) or rows_of_program * block > 16384 and rows_of_program > 1:
            continue
        for elements in (8, 16, 32):
            warps = rows_of_program * block // (32 * elements)
            if 1 <= warps <= 32:
                yield rows_of_program, warps
        if rows_of_program * block < 256:
            yield rows_of_program, 1


def row_norms(rows, width, eps, add=False, centre=False):
    """Variants of a function of (x, residual, w, bias, y, residual_out), what is not read being None."""
    def variant(rows_of_program, warps):
        grid = (triton.cdiv(rows, rows_of_program),)

        def run(x, residual, w, bias, y, residual_out):
            row_norm_kernel[grid](x, residual, w, bias, y, residual_out, rows, eps, width,
                                  triton.next_power_of_2(width), rows_of_program, add, centre, num_warps=warps)
        return run
    return [variant(*each) for each in tilings(rows, width)]


def qk_norms(tokens, q_heads, k_heads, width, eps):
    def variant(rows, warps):
        q_blocks, k_blocks = triton.cdiv(tokens * q_heads, rows), triton.cdiv(tokens * k_heads, rows)

        def run(q, k, q_weight, k_weight, q_out, k_out):
            qk_norm_kernel[(q_blocks + k_blocks,)](q, k, q_weight, k_weight, q_out, k_out, tokens * q_heads,
                                                   tokens * k_heads, q_blocks, eps, width, rows, num_warps=warps)
        return run
    return [variant(*each) for each in tilings(tokens * (q_heads + k_heads), width)]


def qk_ropes(tokens, q_heads, k_heads, width, eps, norm=True):
    def variant(rows, warps):
        q_blocks, k_blocks = triton.cdiv(tokens * q_heads, rows), triton.cdiv(tokens * k_heads, rows)

        def run(q, k, q_weight, k_weight, positions, cos_sin, q_out, k_out):
            qk_rope_kernel[(q_blocks + k_blocks,)](
                q, k, q_weight, k_weight, positions, cos_sin, q_out, k_out, tokens * q_heads, tokens * k_heads,
                q_blocks, eps, q_heads, k_heads, width, rows, norm, num_warps=warps)
        return run
    return [variant(*each) for each in tilings(tokens * (q_heads + k_heads), width)]
