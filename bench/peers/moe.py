#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Routing, dispatch and combine of a mixture of experts, beside what PyTorch and Triton make of them.

    python3 bench/peers/moe.py [--json OUT] [--tokens 1,64,4096] [--only moe_topk]
"""
import torch
import triton
import triton.language as tl

import measure
from tilewright import ops

EXPERTS, CHOICES = 128, 8
BLOCK = 128  # choices that a program of Triton's counts and places


# Triton: one program a token for routing; counting, scanning and placing choices, then a copy of rows.

@triton.jit
def topk_kernel(logits, ids, weights, E: tl.constexpr, E_POWER: tl.constexpr, K: tl.constexpr):
    token = tl.program_id(0)
    expert = tl.arange(0, E_POWER)
    score = tl.load(logits + token * E + expert, mask=expert < E, other=float("-inf")).to(tl.float32)
    choice = tl.arange(0, K)
    best = tl.zeros([K], tl.float32)
    chosen = tl.zeros([K], tl.int32)
    for k in tl.static_range(K):
        largest = tl.max(score, 0)
        winner = tl.min(tl.where(score == largest, expert, E_POWER), 0)
        best = tl.where(choice == k, largest, best)
        chosen = tl.where(choice == k, winner, chosen)
        score = tl.where(expert == winner, float("-inf"), score)
    power = tl.exp(best - tl.max(best, 0))
    tl.store(ids + token * K + choice, chosen)
    tl.store(weights + token * K + choice, power / tl.sum(power, 0))


@triton.jit
def count_kernel(ids, table, n, E: tl.constexpr, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    expert = tl.arange(0, E)
    mine = tl.load(ids + at, mask=at < n, other=-1)
    tl.store(table + block * E + expert, tl.sum((mine[:, None] == expert[None, :]).to(tl.int32), 0))


@triton.jit
def scan_kernel(table, counts, offsets, blocks, E: tl.constexpr):
    expert = tl.arange(0, E)
    total = tl.zeros([E], tl.int32)
    for block in range(blocks):
        count = tl.load(table + block * E + expert)
        tl.store(table + block * E + expert, total)
        total += count
    tl.store(counts + expert, total)
    tl.store(offsets + expert, tl.cumsum(total, 0) - total)


@triton.jit
def place_kernel(ids, table, offsets, slot, n, E: tl.constexpr, BLOCK: tl.constexpr):
    block = tl.program_id(0)
    at = block * BLOCK + tl.arange(0, BLOCK)
    expert = tl.arange(0, E)
    mine = tl.load(ids + at, mask=at < n, other=-1)
    here = (mine[:, None] == expert[None, :]).to(tl.int32)
    first = tl.load(table + block * E + expert) + tl.load(offsets + expert)
    row = tl.sum(here * (tl.cumsum(here, 0) - here + first[None, :]), 1)
    tl.store(slot + at, row, mask=at < n)


@triton.jit
def copy_kernel(x, slot, x_perm, H: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = tl.load(x + token.to(tl.int64) * H + column, mask=column < H)
    for k in tl.static_range(K):
        to = tl.load(slot + token * K + k).to(tl.int64)
        tl.store(x_perm + to * H + column, row, mask=column < H)


@triton.jit
def combine_kernel(y, slot, weights, out, H: tl.constexpr, K: tl.constexpr, BLOCK: tl.constexpr):
    token = tl.program_id(0)
    column = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for k in tl.static_range(K):
        row = tl.load(slot + token * K + k).to(tl.int64)
        weight = tl.load(weights + token * K + k)
        total += weight * tl.load(y + row * H + column, mask=column < H, other=0).to(tl.float32)
    tl.store(out + token.to(tl.int64) * H + column, total.to(out.dtype.element_ty), mask=column < H)


def integers(*shape):
    return torch.empty(*shape, device="cuda", dtype=torch.int32)


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def topk(t, e, k):
    def function(logits):
        value, index = torch.topk(logits.float(), k, dim=1)
        return index.int(), torch.softmax(value, 1)

    def make():  # no two logits of a token are equal: whichever came first would be right
        logits = torch.rand(t, e, device="cuda").argsort(1) / 16
        return logits.bfloat16(), integers(t, k), torch.empty(t, k, device="cuda")

    case = measure.Case("moe_topk", f"T={t},E={e},k={k},logits=bf16", make, 2, function)
    case.ways[measure.OURS] = lambda logits, ids, weights: ops.moe_topk(logits, ids=ids, weights=weights, k=k)
    case.ways["triton"] = lambda logits, ids, weights: topk_kernel[(t,)](
        logits, ids, weights, e, triton.next_power_of_2(e), k, num_warps=1)
    return case


def dispatch(t, k, e, h):
    blocks = triton.cdiv(t * k, BLOCK)

    def make():
        ids = torch.rand(t, e, device="cuda").topk(k, 1).indices.int()
        return random(t, h), ids, integers(blocks, e), integers(e + 1), random(t * k, h), integers(t * k), integers(e)

    def function(x, ids, table, offsets):
        flat = ids.view(-1).long()
        order = torch.argsort(flat, stable=True)
        slot = torch.empty_like(ids.view(-1)).scatter_(
            0, order, torch.arange(flat.numel(), device=x.device, dtype=torch.int32))
        counts = torch.zeros(e, device=x.device, dtype=torch.int32).scatter_add_(
            0, flat, torch.ones_like(flat, dtype=torch.int32))
        return x.index_select(0, order // k), slot, counts, (counts.cumsum(0) - counts).int()

    def by_triton(x, ids, table, offsets, x_perm, slot, counts):
        n, block = t * k, min(triton.next_power_of_2(h), 1024)
        count_kernel[(blocks,)](ids, table, n, e, BLOCK)
        scan_kernel[(1,)](table, counts, offsets, blocks, e)
        place_kernel[(blocks,)](ids, table, offsets, slot, n, e, BLOCK)
        copy_kernel[(t, triton.cdiv(h, block))](x, slot, x_perm, h, k, block)

    rows = integers(1)

    def ours(x, ids, table, offsets, x_perm, slot, counts):
        ops.moe_dispatch(x, ids, x_perm=x_perm, slot=slot, counts=counts, offsets=offsets, total_rows=rows, experts=e)

    # Not counted: the tables of the Triton kernels.
    case = measure.Case("moe_dispatch", f"T={t},K={k},H={h},x=bf16,experts={e}", make, 3, function,
                        bytes_=2 * t * h + 4 * t * k + 2 * t * k * h + 4 * t * k + 8 * e)
    case.ways[measure.OURS] = ours
    case.ways["triton"] = by_triton
    return case


def combine(t, k, h):
    def make():
        return (random(t * k, h), torch.randperm(t * k, device="cuda").int(), torch.rand(t, k, device="cuda"),
                random(t, h))

    def function(y, slot, weights):
        rows = y[slot.long()].view(t, k, h)
        return (rows.float() * weights[:, :, None]).sum(1).to(y.dtype)

    block = min(triton.next_power_of_2(h), 1024)
    case = measure.Case("moe_combine", f"T={t},K={k},M={t * k},H={h},y=bf16", make, 1, function)
    case.ways[measure.OURS] = lambda y, slot, weights, out: ops.moe_combine(y, slot, weights, out=out)
    case.ways["triton"] = lambda y, slot, weights, out: combine_kernel[(t, triton.cdiv(h, block))](
        y, slot, weights, out, h, k, block)
    return case


def cases(tokens):
    yield from (topk(t, EXPERTS, CHOICES) for t in tokens)
    # DeepSeek-V3's width, Qwen3-30B-A3B's, and gpt-oss with its four choices.
    shapes = ((CHOICES, 7168), (CHOICES, 2048), (4, 2880))
    for operator in (lambda t, k, h: dispatch(t, k, EXPERTS, h), combine):
        yield from (operator(t, *shape) for shape, t in measure.at_ends(shapes[:2], shapes[2:], tokens))


if __name__ == "__main__":
    measure.main(__doc__, cases)
