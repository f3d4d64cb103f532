# SPDX-License-Identifier: Apache-2.0
"""Triton kernels whose PTX for sm_90a lies beside this file; run it to compile them anew (Triton 3.9, no GPU needed)."""
import os

os.environ["TRITON_DISABLE_LINE_INFO"] = "1"

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * n
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row + at, mask=at < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row + at, e / tl.sum(e, 0), mask=at < n)


@triton.jit
def scan_and_count(x, out, counts, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(out + at, tl.cumsum(v, 0))
    tl.atomic_add(counts + (v & 7), 1)


@triton.jit
def multiply(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sum = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        sum = tl.dot(tl.load(a + m[:, None] * K + (at + k)[None, :]), tl.load(b + (at + k)[:, None] * N + n[None, :]), sum)
    tl.store(c + m[:, None] * N + n[None, :], sum)


@triton.jit
def multiply_tma(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM
    n = tl.program_id(1) * BN
    sum = tl.zeros((BM, BN), tl.float32)
    for at in range(0, K, BK):
        sum = tl.dot(a.load([m, at]), b.load([at, n]), sum)
    c.store([m, n], sum.to(tl.float16))


@triton.jit
def attention(q, k, v, out, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    d = tl.arange(0, D)
    queries = tl.load(q + m[:, None] * D + d[None, :])
    most = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    sum = tl.zeros((BM, D), tl.float32)
    for at in range(0, n, BN):
        keys = at + tl.arange(0, BN)
        scores = tl.dot(queries, tl.trans(tl.load(k + keys[:, None] * D + d[None, :]))) * scale
        scores = tl.where(keys[None, :] <= m[:, None], scores, -float("inf"))
        now = tl.maximum(most, tl.max(scores, 1))
        e = tl.exp(scores - now[:, None])
        shrink = tl.exp(most - now)
        total = total * shrink + tl.sum(e, 1)
        sum = sum * shrink[:, None]
        sum = tl.dot(e.to(tl.float16), tl.load(v + keys[:, None] * D + d[None, :]), sum)
        most = now
    tl.store(out + m[:, None] * D + d[None, :], sum / total[:, None])


@triton.jit
def sort_rows(x, out, N: tl.constexpr):
    at = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def multiply_bytes(a, b, c, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    sum = tl.zeros((BM, BN), tl.int32)
    for at in range(0, K, BK):
        sum = tl.dot(tl.load(a + m[:, None] * K + (at + k)[None, :]), tl.load(b + n[None, :] * K + (at + k)[:, None]), sum)
    tl.store(c + m[:, None] * N + n[None, :], sum)


def compile_to(name, kernel, arguments, constants, **options):
    signature = arguments | {c: "constexpr" for c in constants}
    source = ASTSource(kernel, signature=signature, constexprs=constants)
    ptx = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, name + ".ptx"), "w") as file:
        file.write(ptx.asm["ptx"])
    print(name, "shared", ptx.metadata.shared, "warps", ptx.metadata.num_warps)


if __name__ == "__main__":
    compile_to("add", add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 256})
    compile_to("softmax", softmax, {"x": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 512})
    compile_to("scan_and_count", scan_and_count, {"x": "*i32", "out": "*i32", "counts": "*i32"}, {"BLOCK": 256})
    tile = {"BM": 64, "BN": 64, "BK": 32}
    matrices = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "N": "i32", "K": "i32"}
    compile_to("multiply", multiply, matrices, tile, num_stages=3)
    descriptors = {each: "tensordesc<fp16[64,64]>" for each in "abc"} | {"K": "i32"}
    compile_to("multiply_tma", multiply_tma, descriptors, tile | {"BK": 64}, num_stages=3)
    tensors = {each: "*fp16" for each in "qkv"} | {"out": "*fp32", "n": "i32", "scale": "fp32"}
    compile_to("attention", attention, tensors, {"BM": 64, "BN": 32, "D": 64}, num_stages=2)
    compile_to("sort_rows", sort_rows, {"x": "*i32", "out": "*i32"}, {"N": 256})
    bytes = {"a": "*i8", "b": "*i8", "c": "*i32", "N": "i32", "K": "i32"}
    compile_to("multiply_bytes", multiply_bytes, bytes, {"BM": 64, "BN": 64, "BK": 64}, num_stages=3)
