# SPDX-License-Identifier: Apache-2.0
"""Operators on PyTorch's tensors: on the CPU in the emulator, on a GPU where there is one."""
import functools

import pytest

torch = pytest.importorskip("torch")

import tilewright
import tilewright.torch_ops

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
on_every_device = pytest.mark.parametrize("device", DEVICES)
on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def inputs(device, rows=3, width=256, dtype=torch.bfloat16):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, width, generator=generator).to(dtype).to(device)
    return x, torch.randn(width, generator=generator).to(dtype).to(device)


def rms_norm(x, w, eps=1e-6):
    x, w = x.double(), w.double()
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * w


def assert_rounded_once(y, right):
    # bf16 has eight bits: half a unit is 2^-9 to 2^-8 of the number.
    torch.testing.assert_close(y.double(), right, rtol=2**-8, atol=0)


@on_every_device
def test_outputs_are_tensors_of_the_first_ones_device(device):
    x, w = inputs(device)
    y = tilewright.ops.rms_norm(x, w)
    assert y.dtype == x.dtype and y.device == x.device
    assert_rounded_once(y, rms_norm(x, w))


@on_every_device
def test_fp8_codes_are_torch_dtypes(device):
    codes, scales = tilewright.ops.quantize(inputs(device)[0], format="fp8_block")
    assert codes.dtype == torch.float8_e4m3fn and scales.shape == (3, 2)


@on_every_device
@pytest.mark.skipif(not hasattr(torch, "float4_e2m1fn_x2"), reason="a PyTorch without fp4")
def test_fp4_codes_are_pairs(device):
    # Magnitudes that e2m1 has, the largest 6 in each group of 32: scales of 1, and codes without rounding.
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6] * 4)
    x = torch.stack((values, values.flip(0))).to(device)
    codes, scales = tilewright.ops.quantize(x, format="mxfp4")
    assert codes.dtype == torch.float4_e2m1fn_x2 and codes.shape == (2, 32) and scales.shape == (2, 2)
    assert codes.view(torch.uint8)[0, :8].tolist() == [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe]
    back = tilewright.ops.dequantize(codes, scales, format="mxfp4", out_type="f32")
    torch.testing.assert_close(back, x.float(), rtol=0, atol=0)
    made, _ = torch.ops.tilewright.quantize(x, format="mxfp4")
    assert torch.equal(made.view(torch.uint8), codes.view(torch.uint8))


@on_every_device
def test_options_ask_for_optional_outputs(device):
    x, w = inputs(device)
    right = tilewright.ops.rms_norm(x, w)
    codes, scales = tilewright.ops.rms_norm(x, w, quant="fp8_token", quant_from="via_x_dtype")
    of_y, scales_of_y = tilewright.ops.quantize(right, format="fp8_token")
    assert torch.equal(codes.view(torch.uint8), of_y.view(torch.uint8)) and torch.equal(scales, scales_of_y)
    y, again, _ = tilewright.ops.rms_norm(x, w, quant="fp8_token", quant_from="via_x_dtype", y=True)
    assert torch.equal(y, right) and torch.equal(again.view(torch.uint8), of_y.view(torch.uint8))


@on_every_device
def test_a_given_output_is_returned_itself(device):
    x, w = inputs(device)
    y = torch.empty_like(x)
    assert tilewright.ops.rms_norm(x, w, y=y) is y
    assert_rounded_once(y, rms_norm(x, w))


@on_every_device
def test_outputs_are_contiguous_whatever_the_input_is(device):
    x, _ = inputs(device, 6, 64)
    rows = x[::2]  # not contiguous
    y = tilewright.ops.rms_norm(rows)
    assert y.is_contiguous() and y.shape == rows.shape
    torch.testing.assert_close(y, tilewright.ops.rms_norm(rows.contiguous()), rtol=0, atol=0)


@on_every_device
def test_attributes_read_what_the_exchange_api_reads(device):
    from tilewright._frameworks import adapter_of
    x = inputs(device)[0].t()
    address, name, shape, stride, read_only, index = adapter_of(torch.Tensor).describe(x)
    assert (address, name, shape, stride) == (x.data_ptr(), "bf16", (256, 3), (1, 256))
    assert not read_only and index == (0 if device == "cuda" else -1)


@on_every_device
@pytest.mark.parametrize("name, make", [
    ("rms_norm", lambda x, w: ((x, w), {"eps": 1e-5})),
    ("rms_norm", lambda x, w: ((x, w), {"quant": "fp8_token"})),
    ("fused_add_rms_norm", lambda x, w: ((x, x.clone(), w), {})),
    ("quantize", lambda x, w: ((x,), {"format": "fp8_token"})),
    ("quantize", lambda x, w: ((x,), {"format": "mxfp4"})),
    ("qk_norm", lambda x, w: ((x.view(3, 2, 128).clone(), x.view(3, 2, 128)[:, :1].clone()), {})),
    ("moe_topk", lambda x, w: ((x[:, :8].float(),), {"k": 2})),
    ("moe_combine", lambda x, w: ((x, x.new_tensor([2, 0, 1], dtype=torch.int32), x[:, :1].float()),
                                  {"accumulate": True, "out": x.clone()})),
    ("lightning_attention", lambda x, w: ((*[x[:, None, :64].contiguous()] * 3, w[:1].float().abs()),
                                          {"state": x.new_zeros(3, 1, 64, 64, dtype=torch.float32)})),
    ("gated_delta_rule", lambda x, w: ((*[x[:, None, :64].contiguous()] * 3, *[x[:, :1].float().sigmoid()] * 2,
                                        x.new_zeros(3, 1, 64, 64, dtype=torch.float32)), {"mode_": "decode"})),
    ("reshape_and_cache", lambda x, w: ((*[x[:, None, :64].contiguous()] * 2, torch.arange(3, device=x.device), None, None,
                                         *(x.new_zeros(2, 2, 1, 64) for _ in range(2))), {})),
    ("rope_table", lambda x, w: ((x.new_empty(16, 64, dtype=torch.float32),), {"max_position": 16, "rotary_dim": 64})),
])
def test_registration_is_sound(device, name, make):
    args, options = make(*inputs(device))
    checks = ("test_schema", "test_faketensor", "test_aot_dispatch_static")
    torch.library.opcheck(getattr(torch.ops.tilewright, name).default, args, options, test_utils=checks)


@on_every_device
def test_compile_keeps_operators_in_one_graph(device):
    x, w = inputs(device)
    graphs = []

    def backend(graph, _):
        graphs.append(graph)
        return graph

    @torch.compile(fullgraph=True, backend=backend)
    def layer(x, w):
        y, residual = torch.ops.tilewright.fused_add_rms_norm(x * 2, x + 1, w)
        return torch.ops.tilewright.rms_norm(y, w, eps=1e-5) + residual

    y, residual = tilewright.ops.fused_add_rms_norm(x * 2, x + 1, w)
    right = tilewright.ops.rms_norm(y, w, eps=1e-5) + residual
    torch.testing.assert_close(layer(x, w), right, rtol=0, atol=0)
    assert len(graphs) == 1
    assert "tilewright" in graphs[0].code


@on_every_device
def test_inouts_change_in_place_under_compile(device):
    q = inputs(device)[0].view(3, 2, 128).clone()
    k = q[:, :1].clone()
    right, before = q.clone(), q.clone()
    tilewright.ops.qk_norm(right, k.clone())
    torch.compile(lambda q, k: torch.ops.tilewright.qk_norm(q, k), fullgraph=True, backend="aot_eager")(q, k)
    assert not torch.equal(q, before)
    torch.testing.assert_close(q, right, rtol=0, atol=0)


def test_what_cannot_be_read_is_a_value_error_of_one_line():
    x = torch.empty(2, 64, device="meta")
    with pytest.raises(ValueError, match="tensor x: cannot be read: .*meta") as error:
        tilewright.ops.rms_norm(x)
    assert "\n" not in str(error.value)


@on_a_gpu
def test_tensors_have_to_be_together():
    x, w = inputs("cuda")
    with pytest.raises(ValueError, match="rms_norm: 'w' is in the host's memory, the first tensor in cuda:0; move them"):
        tilewright.ops.rms_norm(x, w.cpu())


@on_a_gpu
def test_the_emulator_and_the_gpu_agree():
    x, w = inputs("cuda", 5, 1000, torch.float32)
    torch.testing.assert_close(tilewright.ops.rms_norm(x, w).cpu(), tilewright.ops.rms_norm(x.cpu(), w.cpu()),
                               rtol=2**-20, atol=0)


@on_a_gpu
def test_launches_go_to_the_current_stream():
    x, w = inputs("cuda", 4096, 8192)
    tilewright.ops.rms_norm(x, w)  # loads the kernel, which takes longer than the stream is kept busy
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        torch.cuda._sleep(20_000_000)  # clocks, some milliseconds: what does not queue behind it reads too early
        wide = x * 2
        y = tilewright.ops.rms_norm(wide, w)
        assert not stream.query()
    stream.synchronize()
    assert_rounded_once(y, rms_norm(wide, w))


@on_every_device
def test_dependent_launches_give_the_same(device):
    x, w = inputs(device)
    right = tilewright.ops.rms_norm(tilewright.ops.rms_norm(x, w), w)
    with tilewright.dependent_launches():
        y = tilewright.ops.rms_norm(tilewright.ops.rms_norm(x, w), w)
    torch.testing.assert_close(y, right, rtol=0, atol=0)


@on_a_gpu
def test_dependent_launches_are_captured():
    x, w = inputs("cuda", 64, 4096)
    graph, y = torch.cuda.CUDAGraph(), torch.empty_like(x)
    with tilewright.dependent_launches():
        tilewright.ops.rms_norm(x, w, y=y)  # loads the kernel
        with torch.cuda.graph(graph):
            tilewright.ops.rms_norm(x, w, y=y)
            for _ in range(3):
                tilewright.ops.rms_norm(y, w, y=y)
    right = x
    for _ in range(4):
        right = tilewright.ops.rms_norm(right, w)
    graph.replay()
    torch.cuda.synchronize()
    torch.testing.assert_close(y, right, rtol=0, atol=0)


@on_a_gpu
def test_capture_into_a_graph_and_replay():
    x, w = inputs("cuda")
    ids = torch.tensor([[1], [0], [1]], dtype=torch.int32, device="cuda")

    def step():
        y = tilewright.ops.rms_norm(x, w)
        dispatch = functools.partial(tilewright.ops.moe_dispatch, ids=ids, experts=4, variant="prefill")
        return y, dispatch(y)[0], dispatch(-y)[0]  # both with the workspace of the graph

    step()  # loads the kernels
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y, rows, negative = step()
    for factor in (1, -1):
        x.mul_(factor)
        graph.replay()
        torch.cuda.synchronize()
        assert_rounded_once(y, rms_norm(x, w))
        torch.testing.assert_close(rows[0], y[1], rtol=0, atol=0)
        torch.testing.assert_close(negative, -rows, rtol=0, atol=0)


@on_a_gpu
def test_threads_may_call_at_once():
    from concurrent.futures import ThreadPoolExecutor
    x, w = inputs("cuda")
    right = tilewright.ops.rms_norm(x, w)
    with ThreadPoolExecutor(4) as pool:
        for y in pool.map(lambda _: tilewright.ops.rms_norm(x, w), range(64)):
            torch.testing.assert_close(y, right, rtol=0, atol=0)
