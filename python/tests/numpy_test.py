# SPDX-License-Identifier: Apache-2.0
"""Operators on NumPy arrays: run by the emulator, compared with float64."""
import threading
import time

import ml_dtypes
import numpy
import pytest

import tilewright


def rms_norm(x, w, eps):
    wide = x.astype(numpy.float64)
    return wide / numpy.sqrt((wide ** 2).mean(-1, keepdims=True) + eps) * w.astype(numpy.float64)


def test_rms_norm_equals_its_formula(rng):
    x = rng.standard_normal((3, 257), dtype=numpy.float32)
    w = rng.standard_normal(257, dtype=numpy.float32)
    y = tilewright.ops.rms_norm(x, w, eps=1e-5)
    assert y.dtype == numpy.float32 and y.shape == x.shape
    # A sum of 257 squares, a root, a quotient and two products: under 32 roundings of 2^-24.
    numpy.testing.assert_allclose(y, rms_norm(x, w, 1e-5), rtol=32 * 2**-24)


def test_bf16_is_a_dtype_of_ml_dtypes(rng):
    x = rng.standard_normal((2, 64)).astype(ml_dtypes.bfloat16)
    w = numpy.ones(64, ml_dtypes.bfloat16)
    y = tilewright.ops.rms_norm(x, w)
    assert y.dtype == ml_dtypes.bfloat16
    # One rounding to eight bits, and float32 before it.
    numpy.testing.assert_allclose(y.astype(float), rms_norm(x, w, 1e-6), rtol=2**-8)


def test_bf16_may_be_given_as_its_bits(rng):
    x = rng.standard_normal((2, 64)).astype(ml_dtypes.bfloat16)
    w = numpy.ones(64, ml_dtypes.bfloat16)
    of_bits = tilewright.ops.rms_norm(x.view(numpy.uint16), w.view(numpy.uint16))
    numpy.testing.assert_array_equal(of_bits.view(numpy.uint16), tilewright.ops.rms_norm(x, w).view(numpy.uint16))


def test_fp4_codes_are_pairs_in_bytes():
    # Magnitudes that e2m1 has, the largest 6 in each group of 32: scales of 1, and codes without rounding.
    values = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6] * 4
    x = numpy.array([values, values[::-1]], numpy.float32)
    codes, scales = tilewright.ops.quantize(x, format="mxfp4")
    assert isinstance(codes, tilewright.Fp4Pairs) and codes.shape == (2, 64) and codes.bytes.dtype == numpy.uint8
    assert codes.bytes[0, :8].tolist() == [0x10, 0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe]
    numpy.testing.assert_array_equal(tilewright.ops.dequantize(codes, scales, format="mxfp4", out_type="f32"), x)
    given = tilewright.Fp4Pairs(numpy.zeros((2, 48), numpy.uint8)[:, :32])  # with gaps between the rows
    assert tilewright.ops.quantize(x, format="mxfp4", q=given)[0] is given
    numpy.testing.assert_array_equal(given.bytes, codes.bytes)


@pytest.mark.parametrize("codes, text", [
    (tilewright.Fp4Pairs(numpy.zeros((2, 32), numpy.int8)), "tensor q: has pairs of e2m1 in s8[2,32]; they must be in u8, "
                                                            "side by side along the last mode"),
    (numpy.zeros((2, 64), ml_dtypes.float4_e2m1fn), "an array has the dtype float4_e2m1fn, whose elements take a byte each; "
                                                    "give pairs in bytes as tilewright.Fp4Pairs(array of uint8)"),
])
def test_other_fp4_codes_are_refused(codes, text):
    with pytest.raises(ValueError) as error:
        tilewright.ops.dequantize(codes, numpy.ones((2, 2), ml_dtypes.float8_e8m0fnu), format="mxfp4", out_type="f32")
    assert text in str(error.value)


def test_several_outputs_are_a_tuple_in_the_schemas_order(rng):
    x = rng.standard_normal((2, 128), dtype=numpy.float32)
    codes, scales = tilewright.ops.quantize(x, format="fp8_block")
    assert codes.dtype == ml_dtypes.float8_e4m3fn and scales.shape == (2, 1)
    back = tilewright.ops.dequantize(codes, scales, format="fp8_block", out_type="f32")
    # e4m3 has three bits behind the first: half a unit is 2^-4 of the number; subnormals are 2^-10 of the scale apart.
    numpy.testing.assert_allclose(back, x, rtol=2**-4, atol=float(scales.max()) * 2**-10)


def test_a_given_output_is_written_and_returned(rng):
    x = rng.standard_normal((2, 64), dtype=numpy.float32)
    w = numpy.ones(64, numpy.float32)
    y = numpy.empty_like(x)
    assert tilewright.ops.rms_norm(x, w=w, y=y) is y
    numpy.testing.assert_array_equal(y, tilewright.ops.rms_norm(x, w))


def test_an_output_may_be_its_input(rng):
    x = rng.standard_normal((2, 64), dtype=numpy.float32)
    expected = tilewright.ops.rms_norm(x)
    tilewright.ops.rms_norm(x, y=x)
    numpy.testing.assert_array_equal(x, expected)


def test_outputs_follow_the_problem_whatever_was_called_before():
    for width in [*range(32, 352, 32)] * 2:  # more problems than a call remembers
        x = numpy.ones((2, width), numpy.float32)
        assert tilewright.ops.rms_norm(x).shape == (2, width)
        assert tilewright.ops.rms_norm(x[:1]).shape == (1, width)
    half = numpy.ones((2, 64), numpy.float16)
    assert tilewright.ops.rms_norm(half).dtype == numpy.float16
    assert tilewright.ops.rms_norm(half, out_type="f32").dtype == numpy.float32
    assert tilewright.ops.rms_norm(half, out_type="as_x").dtype == numpy.float16
    y, rstd = tilewright.ops.rms_norm(half, rstd=True)
    assert y.shape == (2, 64) and rstd.shape == (2,)


def test_arrays_without_rows_are_read_whatever_their_strides():
    empty = numpy.empty((0, 64), numpy.float32)  # NumPy gives these strides of 0
    assert tilewright.ops.rms_norm(empty).shape == (0, 64)
    ids, weights = tilewright.ops.moe_topk(empty, k=4)
    assert ids.shape == weights.shape == (0, 4)
    counts, offsets, total = (tilewright.ops.moe_dispatch(empty, ids, experts=3)[i] for i in (1, 2, 4))
    assert not counts.any() and not offsets.any() and not total.any()


def test_what_an_operator_leaves_alone_in_a_given_output_is_kept():
    x, ids = numpy.ones((3, 8), numpy.float32), numpy.zeros((3, 1), numpy.int32)
    rows = numpy.full((4, 8), 7, numpy.float32)
    tilewright.ops.moe_dispatch(x, ids, experts=1, block=2, x_perm=rows)
    assert (rows[:3] == 1).all() and (rows[3] == 7).all()  # padding


def test_strided_rows_are_read_and_their_gaps_kept(rng):
    rows = rng.standard_normal((3, 96), dtype=numpy.float32)
    out = numpy.full((3, 96), 7, numpy.float32)
    tilewright.ops.rms_norm(rows[:, :64], y=out[:, :64])
    numpy.testing.assert_array_equal(out[:, :64], tilewright.ops.rms_norm(rows[:, :64].copy()))
    assert (out[:, 64:] == 7).all()


def test_an_inout_is_updated_in_place_unless_its_output_is_wanted(rng):
    q = rng.standard_normal((2, 2, 64), dtype=numpy.float32)
    k = rng.standard_normal((2, 1, 64), dtype=numpy.float32)
    expected = [tilewright.ops.rms_norm(each) for each in (q, k)]
    before = q.copy()
    apart = tilewright.ops.qk_norm(q, k, q_out=True, k_out=True)
    numpy.testing.assert_array_equal(q, before)
    assert tilewright.ops.qk_norm(q, k) is None
    for result, in_place, right in zip(apart, (q, k), expected):
        numpy.testing.assert_allclose(result, right, rtol=32 * 2**-24)
        numpy.testing.assert_array_equal(in_place, result)


def test_parts_of_packed_rows_are_updated_in_place(rng):
    packed = rng.standard_normal((3, 5 * 64), dtype=numpy.float32)
    before = packed.copy()
    q, k = packed[:, :128].reshape(3, 2, 64), packed[:, 128:192].reshape(3, 1, 64)
    assert q.base is not None and k.base is not None  # views
    tilewright.ops.qk_norm(q, k)
    for part in range(3):
        columns = slice(part * 64, (part + 1) * 64)
        numpy.testing.assert_allclose(packed[:, columns], tilewright.ops.rms_norm(before[:, columns].copy()),
                                      rtol=32 * 2**-24)
    numpy.testing.assert_array_equal(packed[:, 192:], before[:, 192:])


def test_an_inout_that_is_not_read_is_made():
    y = numpy.arange(32, dtype=numpy.float32).reshape(4, 8)
    slot = numpy.array([0, 2, 3, 1], numpy.int32)
    weights = numpy.full((2, 2), 0.5, numpy.float32)
    out = tilewright.ops.moe_combine(y, slot, weights)
    numpy.testing.assert_array_equal(out, [(y[0] + y[2]) / 2, (y[3] + y[1]) / 2])


def test_a_workspace_is_provided(rng):
    x = rng.standard_normal((5, 64), dtype=numpy.float32).astype(ml_dtypes.bfloat16)
    ids = numpy.array([[1], [0], [1], [2], [0]], numpy.int32)
    assert tilewright.ops.moe_dispatch.__doc__
    outputs = tilewright.ops.moe_dispatch(x, ids, experts=4)
    rows = outputs[0].astype(numpy.float32)
    assert {tuple(row) for row in x.astype(numpy.float32)} <= {tuple(row) for row in rows}


def test_other_threads_run_meanwhile():
    x = numpy.ones((256, 4096), numpy.float32)
    call = threading.Thread(target=tilewright.ops.rms_norm, args=(x,))
    begin, turns = time.monotonic(), 0
    call.start()
    while call.is_alive():
        turns += 1
        time.sleep(0.001)
    # Without the GIL this thread would have had no turn but the first.
    assert turns > 5, f"{turns} turns in {time.monotonic() - begin:.3f} s"


@pytest.mark.parametrize("call, text", [
    (lambda x: tilewright.ops.tile_copy(x, x), "tile_copy: takes at most 1 tensors by position, not 2; outputs and "
                                               "options are keywords"),
    (lambda x: tilewright.ops.rms_norm(), "rms_norm: tensor 'x' is missing"),
    (lambda x: tilewright.ops.moe_topk(x), "moe_topk: option 'k' is missing; it must be an integer of at least 1 and at "
                                           "most 64"),
    (lambda x: tilewright.ops.moe_topk(x, k=0), "moe_topk: option 'k' is '0'; it must be an integer of at least 1 and "
                                                "at most 64"),
    (lambda x: tilewright.ops.rope_table(), "rope_table: no tensor is given; give the output that is to be written"),
    (lambda x: tilewright.ops.rms_norm(x, x=x), "rms_norm: 'x' is given twice"),
    (lambda x: tilewright.ops.rms_norm(x, eps=-1), "rms_norm: option 'eps' is '-1'; it must be a finite number of at "
                                                   "least 0"),
    (lambda x: tilewright.ops.rms_norm(3.5), "tensor x: is a Python object of type float; give an array that has "
                                             "__dlpack__"),
    (lambda x: tilewright.ops.rms_norm(x.astype(numpy.int32)), "rms_norm: 'x' is s32[2,64]; its type must be one of "
                                                               "bf16, f16, f32"),
    (lambda x: tilewright.ops.rms_norm(x.astype(">f4")), "an array has the dtype >f4 of foreign byte order; convert it "
                                                         "first"),
    (lambda x: tilewright.tune("nothing"), "nothing"),
])
def test_mistakes_are_value_errors_with_the_librarys_text(call, text):
    with pytest.raises(ValueError) as error:
        call(numpy.ones((2, 64), numpy.float32))
    assert text in str(error.value)


def test_an_unknown_keyword_names_the_options():
    with pytest.raises(ValueError, match="rms_norm: no option is named 'epsilon'; it has eps, "):
        tilewright.ops.rms_norm(numpy.ones((2, 64), numpy.float32), epsilon=1)


def test_a_read_only_output_is_refused():
    x = numpy.ones((2, 64), numpy.float32)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="'y' is read-only; it is written to"):
        tilewright.ops.rms_norm(x, y=x)


def test_what_the_emulator_finds_is_raised():
    state = numpy.zeros((1, 1, 32, 64), numpy.float32)
    values, keys = numpy.ones((2, 1, 1, 32), numpy.float32), numpy.ones((2, 1, 1, 64), numpy.float32)
    one = numpy.ones(2, numpy.int32)
    tilewright.ops.kda_commit(state, values[:1], keys[:1], keys[:1], one[:1], numpy.zeros(1, numpy.int32))
    assert (state == 1).all()
    with pytest.raises(tilewright.FindingsError, match="race") as error:  # two requests with one slot
        tilewright.ops.kda_commit(state, values, keys, keys, one, numpy.zeros(2, numpy.int32))
    assert error.value.findings[0].kind == "race" and str(error.value) == error.value.findings[0].text
