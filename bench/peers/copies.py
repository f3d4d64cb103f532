#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lookups in tables, gathered rows, transposition and rotary embedding, beside PyTorch, Triton and FlashInfer.

    python3 bench/peers/copies.py [--json OUT] [--tokens 1,64,4096] [--only transpose]
"""
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

import flashinfer_kernels
import measure
import triton_rows
from norms import HEADS, POSITIONS, heads_of, random, rotated
from tilewright import ops

VOCABULARIES = ((151936, 4096), (129280, 7168))  # Qwen3-8B, DeepSeek-V3
SOURCE_ROWS = 65536


@triton.jit
def gather_kernel(table, ids, out, H: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    from_row = tl.load(ids + row)
    tl.store(out + row * H + column, tl.load(table + from_row * H + column, mask=column < H), mask=column < H)


@triton.jit
def transpose_kernel(src, dst, M, N, TM: tl.constexpr, TN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * TM + tl.arange(0, TM)
    column = tl.program_id(1).to(tl.int64) * TN + tl.arange(0, TN)
    inside = (row < M)[:, None] & (column < N)[None, :]
    tile = tl.load(src + row[:, None] * N + column[None, :], mask=inside)
    tl.store(dst + column[:, None] * M + row[None, :], tl.trans(tile), mask=tl.trans(inside))


def gathers(t, h):
    def variant(block, warps):
        grid = (t, triton.cdiv(h, block))
        return lambda table, ids, out: gather_kernel[grid](table, ids, out, h, block, num_warps=warps)
    return [variant(*each) for each in ((256, 1), (512, 2), (1024, 4), (2048, 4), (4096, 8), (8192, 8))]


def lookup(name, problem, t, table, function, ours):
    rows, h = table.shape

    def make():
        return (table, torch.randint(rows, (t,), device="cuda"),
                torch.empty(t, h, device="cuda", dtype=torch.bfloat16))

    case = measure.Case(name, problem, make, 1, function, bytes_=4 * t * h)
    case.ways[measure.OURS] = ours
    case.ways["triton"] = gathers(t, h)
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
        return (q, k, torch.randint(POSITIONS, (t,), device="cuda"), table, *outputs)

    def function(q, k, positions, table):
        cos, sin = table[positions].unsqueeze(1).chunk(2, -1)
        return rotated(q, cos, sin), rotated(k, cos, sin)

    case = measure.Case("rope", f"T={t},HQ={hq},HK={hk},D={d},P={POSITIONS},R={d},q=bf16,k=bf16,positions=s64,cos_sin=f32",
                        make, 2, function)
    case.ways[measure.OURS] = lambda q, k, positions, table, qo, ko: ops.rope(q, k, positions, table, q_out=qo, k_out=ko)
    case.ways["triton"] = [lambda q, k, positions, table, qo, ko, run=run: run(q, k, None, None, positions, table, qo, ko)
                           for run in triton_rows.qk_ropes(t, hq, hk, d, 0.0, norm=False)]
    if flashinfer_kernels.AVAILABLE:
        case.ways["flashinfer"] = lambda q, k, positions, table, qo, ko: flashinfer_kernels.call(
            "rope", q, k, qo, ko, table, positions, t, hq, hk, d)
    return case


def cases(tokens):
    yield from embeddings(tokens)
    yield from gathered_rows(tokens)
    yield from (rope(t, *heads) for heads, t in measure.at_ends(HEADS[:1], HEADS[1:2], tokens))
    for shape in ((4096, 4096), (8192, 8192), (8191, 8190), (16384, 7168)):
        yield transpose(*shape, torch.float16)
    yield transpose(8192, 8192, torch.float32)


if __name__ == "__main__":
    measure.main(__doc__, cases)
