#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Linear attention beside flash-linear-attention: Kimi Delta Attention, gated delta rule, fixed decay.

    python3 bench/peers/kda.py [--json OUT] [--tokens 1,64] [--only kda_decode]

Numbers of rows are requests of one token for the operators of decoding and tokens of one sequence for kda_prefill. 32
heads, K = V = 128, states [V, K] in f32. The draft tokens of kda_conv_verify are measured by bench/kda.
"""
import torch

import measure
from tilewright import ops

try:
    from fla.ops.gated_delta_rule.fused_recurrent import fused_recurrent_gated_delta_rule_fwd
    from fla.ops.kda import chunk_kda
    from fla.ops.kda.fused_recurrent import fused_recurrent_kda_fwd
    from fla.ops.simple_gla.fused_recurrent import fused_recurrent_simple_gla
except ImportError as error:
    print(f"not run: flash-linear-attention is not there: {error}")
    raise SystemExit(0) from None

HEADS, WIDTH = 32, 128
ROW_BYTES = 2 * HEADS * WIDTH  # of a token, in q, k, v, a and out
STATE_BYTES = 8 * HEADS * WIDTH * WIDTH  # of a request, read and written
BOUND = -5.0


def random(*shape, dtype=torch.bfloat16):
    return torch.randn(*shape, device="cuda", dtype=dtype)


def tokens_of(n, t):
    """q, k, v, the decay's and the correction's inputs, and parameters of the gate."""
    heads = (n, t, HEADS, WIDTH)
    return (random(*heads), random(*heads), random(*heads), random(*heads), random(n, t, HEADS),
            0.1 * random(HEADS, dtype=torch.float32), 0.1 * random(HEADS * WIDTH, dtype=torch.float32))


def state_of(n):
    return 0.1 * random(n, HEADS, WIDTH, WIDTH, dtype=torch.float32)


def out_of(n, t):
    return torch.empty(n, t, HEADS, WIDTH, device="cuda", dtype=torch.bfloat16)


def kda_decode(n):
    case = measure.Case("kda_decode", f"N={n},T=1,H={HEADS},K={WIDTH},HV={HEADS},V={WIDTH},S={n},A_log=f32,dt_bias=f32,"
                        "lower_bound=-5", lambda: (*tokens_of(n, 1), state_of(n), out_of(n, 1)), 1,
                        bytes_=n * (5 * ROW_BYTES + 2 * HEADS + STATE_BYTES) + 4 * HEADS * (WIDTH + 1))
    case.ways[measure.OURS] = lambda q, k, v, a, b, A_log, dt_bias, state, out: ops.kda_decode(
        q, k, v, a, b, A_log, dt_bias, state, out=out, lower_bound=BOUND)
    case.ways["fla"] = lambda q, k, v, a, b, A_log, dt_bias, state, out: fused_recurrent_kda_fwd(
        q, k, v, a, b, A_log, dt_bias, state, state_v_first=True, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True,
        use_beta_sigmoid_in_kernel=True, lower_bound=BOUND, out=out)[0]
    return case


def kda_prefill(t):
    case = measure.Case("kda_prefill", f"N=1,T={t},H={HEADS},K={WIDTH},HV={HEADS},V={WIDTH},A_log=f32,dt_bias=f32,"
                        "lower_bound=-5", lambda: (*tokens_of(1, t), out_of(1, t)), 1, tolerance=5e-2)
    case.ways[measure.OURS] = lambda q, k, v, a, b, A_log, dt_bias, out: ops.kda_prefill(
        q, k, v, a, b, A_log, dt_bias, out=out, lower_bound=BOUND)
    case.ways["fla"] = lambda q, k, v, a, b, A_log, dt_bias, out: chunk_kda(
        q, k, v, a, b, use_qk_l2norm_in_kernel=True, use_gate_in_kernel=True, use_beta_sigmoid_in_kernel=True,
        safe_gate=True, lower_bound=BOUND, A_log=A_log, dt_bias=dt_bias)[0]
    return case


def gated_delta_rule(n):
    def make():
        q, k, v, _, _, _, _ = tokens_of(n, 1)
        alpha, beta = (torch.rand(n, HEADS, device="cuda") for _ in range(2))
        return (*(each.view(n, HEADS, WIDTH) for each in (q, k, v)), alpha, alpha.log(), beta, state_of(n),
                out_of(n, 1)[:, 0])

    def peer(q, k, v, alpha, decay, beta, state, out):
        return fused_recurrent_gated_delta_rule_fwd(
            *(each[:, None] for each in (q, k, v)), g=decay[:, None], beta=beta[:, None], scale=WIDTH ** -0.5,
            initial_state=state, output_final_state=True, use_qk_l2norm_in_kernel=True, state_v_first=True)[0]

    case = measure.Case("gated_delta_rule", f"TOKENS={n},H={HEADS},K={WIDTH},HV={HEADS},V={WIDTH},S={n}", make, 1,
                        bytes_=n * (4 * ROW_BYTES + 8 * HEADS + STATE_BYTES))
    case.ways[measure.OURS] = lambda q, k, v, alpha, decay, beta, state, out: ops.gated_delta_rule(
        q, k, v, alpha, beta, state, out=out)
    case.ways["fla"] = peer
    return case


def lightning_attention(n):
    decay = 0.1 + torch.rand(HEADS, device="cuda") / 2

    def make():
        q, k, v, _, _, _, _ = tokens_of(n, 1)
        return (*(each.view(n, HEADS, WIDTH) for each in (q, k, v)), decay, state_of(n), out_of(n, 1)[:, 0])

    def peer(q, k, v, decay, state, out):
        return fused_recurrent_simple_gla(*(each[:, None] for each in (q, k, v)), g_gamma=-decay, scale=1.0,
                                          initial_state=state, output_final_state=True, state_v_first=True)[0]

    case = measure.Case("lightning_attention", f"T={n},H={HEADS},K={WIDTH},HV={HEADS},V={WIDTH},S={n},state=f32", make, 1,
                        tolerance=5e-2, bytes_=n * (4 * ROW_BYTES + STATE_BYTES) + 4 * HEADS)
    case.ways[measure.OURS] = lambda q, k, v, decay, state, out: ops.lightning_attention(q, k, v, decay, state, out=out)
    case.ways["fla"] = peer
    return case


def cases(tokens):
    for operator in (kda_decode, gated_delta_rule, lightning_attention):
        yield from (operator(n) for n in tokens if n <= 256)
    yield from (kda_prefill(t) for t in tokens if t >= 1024)


if __name__ == "__main__":
    measure.main(__doc__, cases, ("fla-core",))
