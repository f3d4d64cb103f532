#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times what PyTorch and Triton make of routing, dispatch and combine of a mixture of experts.

    python3 bench/peers/moe.py [--json OUT] [--no-compile] [--only moe_topk]

Each way is captured into a graph of launches on rotating tensors, more than four times the L2 cache in
all, and replayed behind a flushed cache, as `tilewright bench` does; figures are medians. Rows of the
JSON are named as those of `tilewright bench`, with the way in "peer".
"""
import argparse
import datetime
import json
import statistics

import torch
import triton
import triton.language as tl

REPLAYS = 15
L2_BYTES = 60 << 20
ROTATING_BYTES = 4 * L2_BYTES


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


def columns_block(h):
    return min(triton.next_power_of_2(h), 1024)


class Topk:
    name = "moe_topk"

    def __init__(self, t, e, k):
        self.t, self.e, self.k = t, e, k
        self.problem = f"T={t},E={e},k={k},logits=bf16"

    def make(self):
        return [torch.randn(self.t, self.e, device="cuda", dtype=torch.bfloat16),
                torch.empty(self.t, self.k, device="cuda", dtype=torch.int32),
                torch.empty(self.t, self.k, device="cuda", dtype=torch.float32)]

    def torch(self, logits, ids, weights):
        value, index = torch.topk(logits.float(), self.k, dim=1)
        ids.copy_(index)
        weights.copy_(torch.softmax(value, 1))

    def triton(self, logits, ids, weights):
        topk_kernel[(self.t,)](logits, ids, weights, self.e, triton.next_power_of_2(self.e), self.k,
                               num_warps=1)

    def check(self, tensors):
        logits, ids, weights = tensors
        value, _ = torch.topk(logits.float(), self.k, dim=1)
        torch.testing.assert_close(torch.gather(logits.float(), 1, ids.long()), value)
        torch.testing.assert_close(weights, torch.softmax(value, 1))


class Dispatch:
    name = "moe_dispatch"
    BLOCK = 128

    def __init__(self, t, k, e, h):
        self.t, self.k, self.e, self.h = t, k, e, h
        self.problem = f"T={t},K={k},H={h},x=bf16,experts={e}"
        self.blocks = triton.cdiv(t * k, self.BLOCK)

    def make(self):
        integers = dict(device="cuda", dtype=torch.int32)
        ids = torch.rand(self.t, self.e, device="cuda").topk(self.k, 1).indices.int()
        return [torch.randn(self.t, self.h, device="cuda", dtype=torch.bfloat16), ids,
                torch.empty(self.t * self.k, self.h, device="cuda", dtype=torch.bfloat16),
                torch.empty(self.t * self.k, **integers), torch.empty(self.e, **integers),
                torch.empty(self.e, **integers), torch.empty(self.blocks, self.e, **integers)]

    def torch(self, x, ids, x_perm, slot, counts, offsets, _):
        flat = ids.view(-1).long()
        order = torch.argsort(flat, stable=True)
        slot.scatter_(0, order, torch.arange(flat.numel(), device="cuda", dtype=torch.int32))
        counts.copy_(torch.zeros(self.e, device="cuda", dtype=torch.int32).scatter_add_(
            0, flat, torch.ones_like(flat, dtype=torch.int32)))
        offsets.copy_(counts.cumsum(0) - counts)
        torch.index_select(x, 0, order // self.k, out=x_perm)

    def triton(self, x, ids, x_perm, slot, counts, offsets, table):
        n = self.t * self.k
        count_kernel[(self.blocks,)](ids, table, n, self.e, self.BLOCK)
        scan_kernel[(1,)](table, counts, offsets, self.blocks, self.e)
        place_kernel[(self.blocks,)](ids, table, offsets, slot, n, self.e, self.BLOCK)
        block = columns_block(self.h)
        copy_kernel[(self.t, triton.cdiv(self.h, block))](x, slot, x_perm, self.h, self.k, block)

    def check(self, tensors):
        x, ids, x_perm, slot, counts, _, _ = tensors
        order = torch.argsort(ids.view(-1), stable=True)
        torch.testing.assert_close(slot[order].long(), torch.arange(order.numel(), device="cuda"))
        torch.testing.assert_close(x_perm, x[order // self.k], rtol=0, atol=0)
        torch.testing.assert_close(counts.long(), torch.bincount(ids.view(-1), minlength=self.e))


class Combine:
    name = "moe_combine"

    def __init__(self, t, k, h):
        self.t, self.k, self.h = t, k, h
        self.problem = f"T={t},K={k},M={t * k},H={h},y=bf16"

    def make(self):
        return [torch.randn(self.t * self.k, self.h, device="cuda", dtype=torch.bfloat16),
                torch.randperm(self.t * self.k, device="cuda").int(),
                torch.rand(self.t, self.k, device="cuda"),
                torch.empty(self.t, self.h, device="cuda", dtype=torch.bfloat16)]

    def torch(self, y, slot, weights, out):
        rows = y[slot.long()].view(self.t, self.k, self.h)
        out.copy_((rows.float() * weights[:, :, None]).sum(1))

    def triton(self, y, slot, weights, out):
        block = columns_block(self.h)
        combine_kernel[(self.t, triton.cdiv(self.h, block))](y, slot, weights, out, self.h, self.k, block)

    def check(self, tensors):
        y, slot, weights, out = tensors
        rows = y[slot.long()].view(self.t, self.k, self.h).float()
        torch.testing.assert_close(out.float(), (rows * weights[:, :, None]).sum(1), rtol=1e-2, atol=1e-2)


def measure(run, make):
    first = make()
    size = sum(each.numel() * each.element_size() for each in first)
    copies = [first]
    while len(copies) * size < ROTATING_BYTES and len(copies) < 200:
        copies.append(make())
    launches = max(20, len(copies))
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(2):
            run(*first)
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            for i in range(launches):
                run(*copies[i % len(copies)])
        flush = torch.empty(ROTATING_BYTES, device="cuda", dtype=torch.uint8)
        times = []
        for _ in range(REPLAYS + 1):
            flush.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record(stream)
            graph.replay()
            end.record(stream)
            end.synchronize()
            times.append(start.elapsed_time(end) * 1000 / launches)
    return first, statistics.median(times[1:])


def problems():
    for t, e, k in ((1, 128, 8), (64, 128, 8), (4096, 128, 8)):
        yield Topk(t, e, k)
    for t, k, e, h in ((1, 8, 128, 7168), (32, 8, 128, 7168), (128, 8, 128, 7168), (512, 8, 128, 7168),
                       (4096, 8, 128, 7168), (64, 8, 128, 2048), (8192, 8, 128, 2048), (8192, 8, 128, 4096),
                       (4096, 4, 128, 2880)):
        yield Dispatch(t, k, e, h)
        yield Combine(t, k, h)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write Google Benchmark's format there")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--only", help="one operator")
    parser.add_argument("--commit", default="unknown", help="named in the JSON as what was measured")
    arguments = parser.parse_args()
    rows = []
    for problem in problems():
        if arguments.only not in (None, problem.name):
            continue
        ways = {"triton": problem.triton, "torch": problem.torch}
        if not arguments.no_compile:
            torch._dynamo.reset()
            ways["torch.compile"] = torch.compile(problem.torch, dynamic=False)
        for way, run in ways.items():
            tensors, us = measure(run, problem.make)
            problem.check(tensors)
            rows.append({"name": f"{problem.name} {problem.problem}", "peer": way, "real_time": us,
                         "time_unit": "us"})
            print(f"{rows[-1]['name']}: {way} {us:.2f} us", flush=True)
            if arguments.json:
                write(arguments.json, rows, arguments.commit)


def write(path, rows, commit):
    context = {"date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
               "device": torch.cuda.get_device_name(), "driver": f"CUDA {torch.version.cuda}",
               "assembler": f"Triton {triton.__version__}, PyTorch {torch.__version__}", "commit": commit}
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"context": context, "benchmarks": rows}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
