# SPDX-License-Identifier: Apache-2.0
"""Operators on CuPy's arrays."""
import pytest

cupy = pytest.importorskip("cupy")

import tilewright

if not cupy.cuda.is_available():
    pytest.skip("no GPU", allow_module_level=True)


def rms_norm(x, w):
    wide = x.astype("f8")
    return wide / cupy.sqrt((wide ** 2).mean(-1, keepdims=True) + 1e-6) * w.astype("f8")


def inputs(rows=3, width=256):
    random = cupy.random.RandomState(0)
    return random.standard_normal((rows, width)).astype("f4"), random.standard_normal(width).astype("f4")


def test_outputs_are_arrays_of_cupy():
    x, w = inputs()
    y = tilewright.ops.rms_norm(x, w)
    assert isinstance(y, cupy.ndarray) and y.dtype == x.dtype and y.device == x.device
    # A sum of 256 squares, a root, a quotient and two products: under 32 roundings of 2^-24.
    cupy.testing.assert_allclose(y, rms_norm(x, w), rtol=32 * 2**-24)


def test_strided_rows_and_given_outputs():
    rows, w = inputs(6, 128)
    out = cupy.full((6, 128), 7, "f4")
    assert tilewright.ops.rms_norm(rows[:, :64], w[:64], y=out[:, :64]).shape == (6, 64)
    cupy.testing.assert_array_equal(out[:, :64], tilewright.ops.rms_norm(rows[:, :64].copy(), w[:64]))
    assert (out[:, 64:] == 7).all()


def test_launches_go_to_the_current_stream():
    x, w = inputs(4096, 4096)
    tilewright.ops.rms_norm(x, w)
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        for _ in range(200):
            y = tilewright.ops.rms_norm(x, w)
        assert not stream.done
    stream.synchronize()
    cupy.testing.assert_allclose(y, rms_norm(x, w), rtol=64 * 2**-24)


def test_capture_into_a_graph():
    x, w = inputs()
    y = cupy.empty_like(x)
    tilewright.ops.rms_norm(x, w, y=y)  # loads the kernel
    stream = cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    with stream:
        stream.begin_capture()
        tilewright.ops.rms_norm(x, w, y=y)
        graph = stream.end_capture()
        x *= -1
        graph.launch()
    stream.synchronize()
    cupy.testing.assert_allclose(y, rms_norm(x, w), rtol=32 * 2**-24)
