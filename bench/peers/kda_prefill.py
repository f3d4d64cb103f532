#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whole sequences of Kimi Delta Attention beside flash-linear-attention's Triton kernels.

    python3 bench/peers/kda_prefill.py --tokens 1600,8192,65536 [--json OUT]

Needs the package fla-core. Both get raw gates and strengths, normalise q and k, begin with a state and end with one.
"""
import torch

import measure
from fla.ops.kda import chunk_kda
from tilewright import ops

HEADS = (32, 4)  # of Kimi Linear, and of one of eight devices
WIDTH = 128
LOWER_BOUND = -5.0


def case_of(tokens, heads):
    def random(*shape, scale=1.0, dtype=torch.bfloat16):
        return (torch.randn(*shape, device="cuda") * scale).to(dtype)

    def make():
        vector, state = (1, tokens, heads, WIDTH), (1, heads, WIDTH, WIDTH)
        return (random(*vector), random(*vector), random(*vector), random(*vector, scale=0.5), random(1, tokens, heads),
                random(heads, dtype=torch.float32), random(heads, WIDTH, scale=0.1, dtype=torch.float32),
                random(*state, dtype=torch.float32), torch.empty(vector, device="cuda", dtype=torch.bfloat16),
                torch.empty(state, device="cuda", dtype=torch.float32))

    def fla(q, k, v, a, b, a_log, dt_bias, initial_state):
        return chunk_kda(q=q, k=k, v=v, g=a, beta=b, A_log=a_log, dt_bias=dt_bias.view(-1), initial_state=initial_state,
                         output_final_state=True, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True,
                         use_beta_sigmoid_in_kernel=True, safe_gate=True, lower_bound=LOWER_BOUND)

    def ours(q, k, v, a, b, a_log, dt_bias, initial_state, out, final_state):
        ops.kda_prefill(q, k, v, a, b, a_log, dt_bias, initial_state=initial_state, out=out, final_state=final_state,
                        lower_bound=LOWER_BOUND, state_layout="kv")

    problem = f"N=1,T={tokens},H={heads},K={WIDTH},HV={heads},V={WIDTH},A_log=f32,dt_bias=f32,initial_state=f32,lower_bound=-5"
    case = measure.Case("kda_prefill", problem, make, 2, fla)
    case.ways = {measure.OURS: ours, "fla": lambda *tensors: fla(*tensors[:-2])}
    return case


def cases(tokens):
    for heads in HEADS:
        yield from (case_of(t, heads) for t in tokens)


if __name__ == "__main__":
    measure.main(__doc__, cases, packages=("fla-core",))
