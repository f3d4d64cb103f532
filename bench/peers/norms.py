#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Norms of rows and of heads, with and without rotary embedding, beside PyTorch, Triton, Liger and FlashInfer.

    python3 bench/peers/norms.py [--json OUT] [--tokens 1,64,4096] [--only rms_norm,qk_norm]

Shapes are those of Qwen3, Llama 3, DeepSeek-V3 and gpt-oss, heads of 256 those of Gemma 2; rows as short as heads and
an odd width come on top. Liger is measured where its package is there, FlashInfer where flashinfer_kernels.py finds
it. Beside qk_norm the way "general" is two calls of our own rms_norm, which is no peer; Liger's way is two calls
of its rms_norm, too, FlashInfer's two calls of a kernel for heads.
"""
import torch
import torch.nn.functional as F

import flashinfer_kernels
import measure
import triton_rows
from tilewright import ops

try:
    from liger_kernel.ops.fused_add_rms_norm import fused_add_rms_norm_forward
    from liger_kernel.ops.layer_norm import layer_norm_forward
    from liger_kernel.ops.rms_norm import rms_norm_forward
    LIGER = True
except ImportError:
    LIGER = False

EPS = 1e-6
WIDTHS = (4096, 7168, 2048, 2880, 5120, 8192)
SHORT_WIDTHS, ODD_WIDTH = (64, 128, 256), 4097
HEADS = ((32, 8, 128), (64, 8, 64), (32, 4, 128), (16, 8, 256))  # of queries, of keys, width
POSITIONS = 40960


def random(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16)


def different(t, rows):
    """Indices of t rows, all different where there are enough."""
    return torch.randperm(rows, device="cuda")[torch.arange(t, device="cuda") % rows]


def touched(t, rows, bytes_of_row):
    """Bytes of as many indices and of the rows that they name."""
    return 8 * t + min(t, rows) * bytes_of_row


def liger_rms_norm(x, w):
    return rms_norm_forward(x, w, EPS, 0.0, "llama", False)[0]


def rms_norm(t, h):
    case = measure.Case("rms_norm", f"T={t},H={h},x=bf16,w=bf16", lambda: (random(t, h), random(h), random(t, h)), 1,
                        lambda x, w: F.rms_norm(x, (h,), w, EPS))
    case.ways[measure.OURS] = lambda x, w, y: ops.rms_norm(x, w, y=y)
    case.ways["triton"] = [lambda x, w, y, run=run: run(x, None, w, None, y, None)
                           for run in triton_rows.row_norms(t, h, EPS)]
    if LIGER:
        case.ways["liger"] = lambda x, w, y: liger_rms_norm(x, w)
    if flashinfer_kernels.AVAILABLE:
        case.ways["flashinfer"] = lambda x, w, y: flashinfer_kernels.call("rms_norm", x, w, y, t, h, EPS)
    return case


def fused_add_rms_norm(t, h):
    def add_norm(x, residual, w):
        total = x + residual
        return F.rms_norm(total, (h,), w, EPS), total

    case = measure.Case("fused_add_rms_norm", f"T={t},H={h},x=bf16,residual=bf16,w=bf16",
                        lambda: (random(t, h), random(t, h), random(h), random(t, h), random(t, h)), 2, add_norm)
    case.ways[measure.OURS] = lambda x, r, w, y, out: ops.fused_add_rms_norm(x, r, w, y=y, residual_out=out)
    case.ways["triton"] = [lambda x, r, w, y, out, run=run: run(x, r, w, None, y, out)
                           for run in triton_rows.row_norms(t, h, EPS, add=True)]
    if LIGER:
        case.ways["liger"] = lambda x, r, w, y, out: fused_add_rms_norm_forward(x, r, w, EPS, 0.0, "llama")[:2]
    if flashinfer_kernels.AVAILABLE:
        def in_place(x, r, w, y, out):
            flashinfer_kernels.call("fused_add_rms_norm", x, r, w, t, h, EPS)
            return x, r
        case.ways["flashinfer"] = in_place
    return case


def layer_norm(t, h):
    case = measure.Case("layer_norm", f"T={t},H={h},x=bf16,w=bf16,bias=bf16",
                        lambda: (random(t, h), random(h), random(h), random(t, h)), 1,
                        lambda x, w, bias: F.layer_norm(x, (h,), w, bias, EPS))
    case.ways[measure.OURS] = lambda x, w, bias, y: ops.layer_norm(x, w, bias, y=y, eps=EPS)
    case.ways["triton"] = [lambda x, w, bias, y, run=run: run(x, None, w, bias, y, None)
                           for run in triton_rows.row_norms(t, h, EPS, centre=True)]
    if LIGER:
        case.ways["liger"] = lambda x, w, bias, y: layer_norm_forward(x, w, bias, EPS)[0]
    return case


def heads_of(t, hq, hk, d):
    """Queries, keys, their weights, and more memory for queries and keys."""
    return [random(t, hq, d), random(t, hk, d), random(d), random(d)], [random(t, hq, d), random(t, hk, d)]


def qk_norm(t, hq, hk, d):
    def make():
        inputs, outputs = heads_of(t, hq, hk, d)
        return (*inputs, *outputs)

    case = measure.Case("qk_norm", f"T={t},HQ={hq},HK={hk},D={d},q=bf16,k=bf16,q_weight=bf16,k_weight=bf16", make, 2,
                        lambda q, k, qw, kw: (F.rms_norm(q, (d,), qw, EPS), F.rms_norm(k, (d,), kw, EPS)))
    case.ways[measure.OURS] = lambda q, k, qw, kw, qo, ko: ops.qk_norm(q, k, qw, kw, q_out=qo, k_out=ko)

    def general(q, k, qw, kw, qo, ko):
        ops.rms_norm(q, qw, y=qo)
        ops.rms_norm(k, kw, y=ko)

    case.ways[measure.GENERAL] = general
    case.ways["triton"] = triton_rows.qk_norms(t, hq, hk, d, EPS)
    if LIGER:
        case.ways["liger"] = lambda q, k, qw, kw, qo, ko: (liger_rms_norm(q, qw), liger_rms_norm(k, kw))
    if flashinfer_kernels.AVAILABLE:
        def one_by_one(q, k, qw, kw, qo, ko):
            flashinfer_kernels.call("head_norm", q, qw, qo, t, hq, d, EPS)
            flashinfer_kernels.call("head_norm", k, kw, ko, t, hk, d, EPS)
        case.ways["flashinfer"] = one_by_one
    return case


def rotated(x, cos, sin):
    first, second = x.float().chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1).to(x.dtype)


def qk_norm_rope(t, hq, hk, d):
    angles = torch.rand(POSITIONS, d // 2, device="cuda") * 6
    table = torch.cat((angles.cos(), angles.sin()), 1)

    def make():
        inputs, outputs = heads_of(t, hq, hk, d)
        return (*inputs, different(t, POSITIONS), table, *outputs)

    def norm_rope(q, k, qw, kw, positions, table):
        cos, sin = table[positions].unsqueeze(1).chunk(2, -1)
        return rotated(F.rms_norm(q, (d,), qw, EPS), cos, sin), rotated(F.rms_norm(k, (d,), kw, EPS), cos, sin)

    # PyTorch rounds between norm and rotation: two values of up to 4 that are half a unit of bf16 off.
    case = measure.Case("qk_norm_rope", f"T={t},HQ={hq},HK={hk},D={d},P={POSITIONS},R={d},q=bf16,k=bf16,q_weight=bf16,"
                        "k_weight=bf16,positions=s64,cos_sin=f32", make, 2, norm_rope, tolerance=4e-2,
                        bytes_=touched(t, POSITIONS, 4 * d) + 4 * t * (hq + hk) * d + 4 * d)
    case.ways[measure.OURS] = lambda q, k, qw, kw, positions, table, qo, ko: ops.qk_norm_rope(
        q, k, qw, kw, positions, table, q_out=qo, k_out=ko)
    case.ways["triton"] = triton_rows.qk_ropes(t, hq, hk, d, EPS)
    return case


def cases(tokens):
    yield from (rms_norm(t, h) for h, t in measure.at_ends(WIDTHS[:2], (*WIDTHS[2:], ODD_WIDTH), tokens))
    yield from (rms_norm(65536, h) for h in SHORT_WIDTHS)
    yield from (fused_add_rms_norm(t, h) for h, t in measure.at_ends(WIDTHS[:2], WIDTHS[2:4], tokens))
    yield from (qk_norm(t, *heads) for heads, t in measure.at_ends(HEADS[:2], HEADS[2:], tokens))
    yield from (qk_norm_rope(t, *heads) for heads, t in measure.at_ends(HEADS[:1], HEADS[1:2], tokens))
    yield from (layer_norm(t, h) for h, t in measure.at_ends(WIDTHS[:1], WIDTHS[3:4], tokens))


if __name__ == "__main__":
    measure.main(__doc__, cases, ("liger_kernel",))
