#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lookups, rows by index, caches, permutation, casts, pooling and rotary embedding, beside PyTorch, Triton and others.

    python3 bench/peers/copies.py [--json OUT] [--tokens 1,64,4096] [--only transpose]

Indices of a run are all different, so that the bytes of a row count once. PyTorch pools by adding rows to their
sequence and by multiplying with a matrix of ones and zeros: the faster counts.
"""
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

import flashinfer_kernels
import measure
import triton_rows
from norms import HEADS, POSITIONS, different, heads_of, random, rotated, touched
from tilewright import ops

VOCABULARIES = ((151936, 4096), (129280, 7168))  # Qwen3-8B, DeepSeek-V3
SOURCE_ROWS = 65536
PAGE = 16  # tokens of a cache's page
EPS = 1e-6


@triton.jit
def gather_kernel(table, ids, out, H: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    from_row = tl.load(ids + row)
    tl.store(out + row * H + column, tl.load(table + from_row * H + column, mask=column < H), mask=column < H)


@triton.jit
def scatter_kernel(src, ids, dst, H: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    to_row = tl.load(ids + row)
    tl.store(dst + to_row * H + column, tl.load(src + row * H + column, mask=column < H), mask=column < H)


@triton.jit
def gather_norm_kernel(table, ids, w, out, eps, H: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.arange(0, BLOCK)
    weight = tl.load(w + column, mask=column < H, other=0).to(tl.float32)
    from_row = tl.load(ids + row)
    value = tl.load(table + from_row * H + column, mask=column < H, other=0).to(tl.float32)
    value = value * tl.rsqrt(tl.sum(value * value, 0) / H + eps) * weight
    tl.store(out + row * H + column, value.to(out.dtype.element_ty), mask=column < H)


@triton.jit
def cache_kernel(key, value, slots, k_scale, v_scale, key_cache, value_cache, W: tl.constexpr, BLOCK: tl.constexpr,
                 SCALED: tl.constexpr):
    """A piece of a token's keys and values a program."""
    token = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    slot = tl.load(slots + token)
    keys = tl.load(key + token * W + column, mask=column < W)
    values = tl.load(value + token * W + column, mask=column < W)
    if SCALED:
        keys = keys.to(tl.float32) / tl.load(k_scale)
        values = values.to(tl.float32) / tl.load(v_scale)
    inside = (column < W) & (slot >= 0)
    tl.store(key_cache + slot * W + column, keys.to(key_cache.dtype.element_ty), mask=inside)
    tl.store(value_cache + slot * W + column, values.to(value_cache.dtype.element_ty), mask=inside)


@triton.jit
def swap_kernel(src, dst, S, D: tl.constexpr, H: tl.constexpr, ROWS: tl.constexpr, rows):
    """[B, H, S, D] to [B, S, H, D], several rows of D a program in the order of dst."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, D)
    token, head = row // H, row % H
    from_row = (token // S * H + head) * S + token % S
    inside = (row < rows)[:, None]
    value = tl.load(src + from_row[:, None] * D + column[None, :], mask=inside)
    tl.store(dst + row[:, None] * D + column[None, :], value, mask=inside)


@triton.jit
def cast_kernel(src, dst, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst + at, tl.load(src + at, mask=at < n).to(dst.dtype.element_ty), mask=at < n)


@triton.jit
def mean_kernel(hidden, starts, out, H: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Some columns of a sequence a program."""
    sequence = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    first, end = tl.load(starts + sequence), tl.load(starts + sequence + 1)
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for row in range(first, end, ROWS):
        at = row + tl.arange(0, ROWS)
        inside = (at < end)[:, None] & (column < H)[None, :]
        total += tl.load(hidden + at.to(tl.int64)[:, None] * H + column[None, :], mask=inside, other=0).to(tl.float32)
    tl.store(out + sequence * H + column, tl.sum(total, 0) / tl.maximum(end - first, 1), mask=column < H)


@triton.jit
def last_kernel(hidden, starts, out, H: tl.constexpr, BLOCK: tl.constexpr):
    """The last row of a sequence over its length."""
    sequence = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    row = tl.load(starts + sequence + 1).to(tl.int64) - 1
    value = tl.load(hidden + row * H + column, mask=column < H, other=0).to(tl.float32)
    length = tl.maximum(tl.sqrt(tl.sum(value * value, 0)), 1e-12)
    tl.store(out + sequence * H + column, value / length, mask=column < H)


@triton.jit
def transpose_kernel(src, dst, M, N, TM: tl.constexpr, TN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * TM + tl.arange(0, TM)
    column = tl.program_id(1).to(tl.int64) * TN + tl.arange(0, TN)
    inside = (row < M)[:, None] & (column < N)[None, :]
    tile = tl.load(src + row[:, None] * N + column[None, :], mask=inside)
    tl.store(dst + column[:, None] * M + row[None, :], tl.trans(tile), mask=tl.trans(inside))


def row_copies(kernel, t, h):
    """Variants of a function of (rows, indices, rows)."""
    def variant(block, warps):
        grid = (t, triton.cdiv(h, block))
        return lambda src, ids, dst: kernel[grid](src, ids, dst, h, block, num_warps=warps)
    return [variant(*each) for each in ((256, 1), (512, 2), (1024, 4), (2048, 4), (4096, 8), (8192, 8))]


def lookup(name, problem, t, table, function, ours):
    rows, h = table.shape

    def make():
        return table, different(t, rows), torch.empty(t, h, device="cuda", dtype=torch.bfloat16)

    case = measure.Case(name, problem, make, 1, function, bytes_=touched(t, rows, 2 * h) + 2 * t * h)
    case.ways[measure.OURS] = ours
    case.ways["triton"] = row_copies(gather_kernel, t, h)
    return case


def embeddings(tokens):
    for vocabulary, h in VOCABULARIES:
        table = random(vocabulary, h)
        for t in tokens:
            yield lookup("embedding", f"T={t},V={vocabulary},H={h},table=bf16", t, table,
                         lambda table, ids: F.embedding(ids, table), lambda table, ids, out: ops.embedding(ids, table, out=out))


def gathered_rows(tokens):
    source = random(SOURCE_ROWS, 4096)
    for t in tokens:
        yield lookup("gather_rows", f"T={t},V={SOURCE_ROWS},H=4096,src=bf16", t, source,
                     lambda source, ids: source.index_select(0, ids),
                     lambda source, ids, out: ops.gather_rows(source, ids, dst=out))


def embedding_norms(tokens):
    vocabulary, h = VOCABULARIES[0]
    table = random(vocabulary, h)
    for _, t in measure.at_ends((), (h,), tokens):
        def make(t=t):
            return table, different(t, vocabulary), random(h), torch.empty(t, h, device="cuda", dtype=torch.bfloat16)

        case = measure.Case("embedding", f"T={t},V={vocabulary},H={h},table=bf16,w=bf16,norm=true", make, 1,
                            lambda table, ids, w: F.rms_norm(F.embedding(ids, table), (h,), w, EPS),
                            bytes_=touched(t, vocabulary, 2 * h) + 2 * h + 2 * t * h)
        case.ways[measure.OURS] = lambda table, ids, w, out: ops.embedding(ids, table, w=w, out=out, norm=True, eps=EPS)
        case.ways["triton"] = [lambda *tensors, t=t, warps=warps: gather_norm_kernel[(t,)](
            *tensors, EPS, h, triton.next_power_of_2(h), num_warps=warps) for warps in (4, 8, 16)]
        yield case


def scattered_rows(tokens):
    destination = random(SOURCE_ROWS, 4096)
    for h, t in measure.at_ends((), (4096,), tokens):
        def make(t=t):
            return random(t, h), different(t, SOURCE_ROWS), destination

        def function(src, ids, dst):
            dst.index_copy_(0, ids, src)

        case = measure.Case("scatter_rows", f"T={t},V={SOURCE_ROWS},H={h},src=bf16", make, 1, function, in_place=True,
                            bytes_=touched(t, SOURCE_ROWS, 2 * h) + 2 * t * h)
        case.ways[measure.OURS] = lambda src, ids, dst: ops.scatter_rows(src, ids, dst)
        case.ways["triton"] = row_copies(scatter_kernel, t, h)
        yield case


def reshape_and_cache(t, hk, d, dtype):
    """Into pages of a cache of bf16, or of e4m3 with scales."""
    scaled = dtype != torch.bfloat16
    width = hk * d
    scale = [torch.full((1,), 0.02, device="cuda") for _ in range(2)] if scaled else []
    caches = [torch.zeros(SOURCE_ROWS // PAGE, PAGE, hk, d, device="cuda", dtype=dtype) for _ in range(2)]

    def make():
        return random(t, hk, d), random(t, hk, d), different(t, SOURCE_ROWS), *scale, *caches

    def function(key, value, slots, *others):
        caches = others[-2:]
        rows = [key, value]
        if scaled:  # bytes, as there is no indexing of e4m3
            rows = [(row.float() / by).clamp(-448, 448).to(dtype).view(torch.uint8) for row, by in zip(rows, others)]
            caches = [cache.view(torch.uint8) for cache in caches]
        for cache, row in zip(caches, rows):
            cache.view(-1, hk, d).index_copy_(0, slots, row)

    def ours(key, value, slots, *others):
        ops.reshape_and_cache(key, value, slots, *(others[:2] if scaled else (None, None)), *others[-2:])

    def variant(block, warps):
        grid = (t, triton.cdiv(width, block))
        return lambda key, value, slots, *others: cache_kernel[grid](
            key, value, slots, *(others[:2] if scaled else (None, None)), *others[-2:], width, block, scaled,
            num_warps=warps)

    name = {torch.bfloat16: "bf16", torch.float8_e4m3fn: "e4m3"}[dtype]
    scales = "k_scale=f32,v_scale=f32," if scaled else ""
    case = measure.Case("reshape_and_cache", f"T={t},N={t},HK={hk},D={d},DV={d},key=bf16,value=bf16,{scales}"
                        f"key_cache={name},value_cache={name}", make, 2, function, in_place=True, tolerance=0.13,
                        bytes_=touched(t, SOURCE_ROWS, 2 * width * caches[0].element_size()) + 4 * t * width)
    case.ways[measure.OURS] = ours
    case.ways["triton"] = [variant(*each) for each in ((256, 1), (512, 2), (512, 1), (1024, 4), (1024, 2))]
    return case


def swapped(b, h, s, d):
    def make():
        return (random(b, h, s, d).transpose(1, 2), torch.empty(b, s, h, d, device="cuda", dtype=torch.bfloat16))

    def variant(rows, warps):
        grid = (triton.cdiv(b * s * h, rows),)
        return lambda src, dst: swap_kernel[grid](src, dst, s, d, h, rows, b * s * h, num_warps=warps)

    case = measure.Case("strided_copy", f"B={b},T={s},H={h},D={d},src=bf16,order=BHTD", make, 1,
                        lambda src: src.clone(memory_format=torch.contiguous_format))
    case.ways[measure.OURS] = lambda src, dst: ops.strided_copy(src, dst=dst)
    case.ways["triton"] = [variant(*each) for each in triton_rows.tilings(b * s * h, d)]
    return case


def cast(t, h, src, dst):
    def make():
        return torch.randn(t, h, device="cuda").to(src), torch.empty(t, h, device="cuda", dtype=dst)

    def variant(block, warps):
        grid = (triton.cdiv(t * h, block),)
        return lambda src, dst: cast_kernel[grid](src, dst, t * h, block, num_warps=warps)

    names = {torch.bfloat16: "bf16", torch.float32: "f32"}
    case = measure.Case("strided_copy", f"T={t},D={h},src={names[src]},out_type={names[dst]}", make, 1,
                        lambda src: src.to(dst))
    case.ways[measure.OURS] = lambda src, dst: ops.strided_copy(src, dst=dst, out_type=names[dst.dtype])
    case.ways["triton"] = [variant(*each) for each in ((512, 2), (1024, 4), (2048, 4), (2048, 8), (4096, 4), (4096, 8))]
    return case


def starts_of(t):
    """Where sequences of 128 and 384 rows, in turn, begin, and the end; of few rows one sequence."""
    ends, length = [0], 128
    while ends[-1] < t:
        ends.append(min(t, ends[-1] + length))
        length = 512 - length
    return torch.tensor(ends, device="cuda", dtype=torch.int32)


def mean_pooling(t, h):
    starts = starts_of(t)
    b = len(starts) - 1
    sequence = torch.repeat_interleave(torch.arange(b, device="cuda"), starts.diff())  # PyTorch need not find it

    def by_adding(hidden, starts):
        total = torch.zeros(b, h, device=hidden.device).index_add_(0, sequence, hidden.float())
        return total / starts.diff()[:, None]

    def by_matrix(hidden, starts):
        row = torch.arange(t, device=hidden.device)
        mine = (row >= starts[:-1, None]) & (row < starts[1:, None])
        return (mine.to(hidden.dtype) @ hidden).float() / starts.diff()[:, None]

    def variant(rows, block, warps):
        grid = (b, triton.cdiv(h, block))
        return lambda hidden, starts, out: mean_kernel[grid](hidden, starts, out, h, rows, block, num_warps=warps)

    case = measure.Case("pooling", f"T={t},B={b},H={h},hidden=bf16", lambda: (
        random(t, h), starts, torch.empty(b, h, device="cuda")), 1, by_adding)
    case.add_function(by_matrix)
    case.ways[measure.OURS] = lambda hidden, starts, out: ops.pooling(hidden, starts, out=out)
    case.ways["triton"] = [variant(*each) for each in ((4, 256, 4), (8, 128, 4), (8, 256, 8), (16, 64, 4), (16, 128, 8),
                                                       (32, 64, 8), (32, 32, 4))]
    return case


def last_pooling(t, h):
    starts = starts_of(t)
    b = len(starts) - 1
    case = measure.Case("pooling", f"T={t},B={b},H={h},hidden=bf16,mode=last,normalize=true", lambda: (
        random(t, h), starts, torch.empty(b, h, device="cuda")), 1,
                        lambda hidden, starts: F.normalize(hidden[starts[1:] - 1].float(), dim=-1, eps=1e-12),
                        bytes_=4 * (b + 1) + 6 * b * h)
    case.ways[measure.OURS] = lambda hidden, starts, out: ops.pooling(hidden, starts, out=out, mode="last", normalize=True)
    case.ways["triton"] = [lambda hidden, starts, out, warps=warps: last_kernel[(b,)](
        hidden, starts, out, h, triton.next_power_of_2(h), num_warps=warps) for warps in (2, 4, 8, 16)]
    return case


def transpose(m, n, dtype):
    def make():
        return torch.randn(m, n, device="cuda").to(dtype), torch.empty(n, m, device="cuda", dtype=dtype)

    def variant(tm, tn, warps):
        grid = (triton.cdiv(m, tm), triton.cdiv(n, tn))
        return lambda src, dst: transpose_kernel[grid](src, dst, m, n, tm, tn, num_warps=warps)

    case = measure.Case("transpose", f"M={m},N={n},src={'f16' if dtype == torch.float16 else 'f32'}", make, 1,
                        lambda src: src.t().contiguous())
    case.ways[measure.OURS] = lambda src, dst: ops.transpose(src, dst=dst)
    case.ways["triton"] = [variant(*each) for each in ((32, 32, 4), (64, 64, 4), (64, 64, 8), (128, 64, 8), (64, 128, 8),
                                                       (128, 128, 8))]
    return case


def rope(t, hq, hk, d):
    angles = torch.rand(POSITIONS, d // 2, device="cuda") * 6
    table = torch.cat((angles.cos(), angles.sin()), 1)

    def make():
        (q, k, _, _), outputs = heads_of(t, hq, hk, d)
        return (q, k, different(t, POSITIONS), table, *outputs)

    def function(q, k, positions, table):
        cos, sin = table[positions].unsqueeze(1).chunk(2, -1)
        return rotated(q, cos, sin), rotated(k, cos, sin)

    case = measure.Case("rope", f"T={t},HQ={hq},HK={hk},D={d},P={POSITIONS},R={d},q=bf16,k=bf16,positions=s64,cos_sin=f32",
                        make, 2, function, bytes_=touched(t, POSITIONS, 4 * d) + 4 * t * (hq + hk) * d)
    case.ways[measure.OURS] = lambda q, k, positions, table, qo, ko: ops.rope(q, k, positions, table, q_out=qo, k_out=ko)
    case.ways["triton"] = [lambda q, k, positions, table, qo, ko, run=run: run(q, k, None, None, positions, table, qo, ko)
                           for run in triton_rows.qk_ropes(t, hq, hk, d, 0.0, norm=False)]
    if flashinfer_kernels.AVAILABLE:
        case.ways["flashinfer"] = lambda q, k, positions, table, qo, ko: flashinfer_kernels.call(
            "rope", q, k, qo, ko, table, positions, t, hq, hk, d)
    return case


def cases(tokens):
    yield from embeddings(tokens)
    yield from embedding_norms(tokens)
    yield from gathered_rows(tokens)
    yield from scattered_rows(tokens)
    for dtype in (torch.bfloat16, torch.float8_e4m3fn):
        yield from (reshape_and_cache(t, *shape, dtype) for shape, t in measure.at_ends((), ((8, 128),), tokens))
    yield from (rope(t, *heads) for heads, t in measure.at_ends(HEADS[:1], HEADS[1:2], tokens))
    yield from (mean_pooling(t, h) for h, t in measure.at_ends((), (4096,), tokens))
    yield from (last_pooling(t, h) for h, t in measure.at_ends((), (4096,), tokens))
    yield from (swapped(1, 32, t, 128) for _, t in measure.at_ends((), (128,), tokens))
    for types in ((torch.bfloat16, torch.float32), (torch.float32, torch.bfloat16)):
        yield from (cast(t, h, *types) for h, t in measure.at_ends((), (4096,), tokens))
    for shape in ((4096, 4096), (8192, 8192), (8191, 8190), (16384, 7168)):
        yield transpose(*shape, torch.float16)
    yield transpose(8192, 8192, torch.float32)


if __name__ == "__main__":
    measure.main(__doc__, cases)
