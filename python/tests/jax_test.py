# SPDX-License-Identifier: Apache-2.0
"""Operators on JAX's arrays, on its default device."""
import numpy
import pytest

jax = pytest.importorskip("jax")

import tilewright


def test_outputs_are_arrays_of_jax(rng):
    x = jax.numpy.asarray(rng.standard_normal((3, 64)), jax.numpy.bfloat16)
    y = tilewright.ops.rms_norm(x * 2, jax.numpy.ones(64, jax.numpy.bfloat16))
    assert isinstance(y, jax.Array) and y.dtype == jax.numpy.bfloat16 and y.devices() == x.devices()
    wide = 2 * numpy.asarray(x, numpy.float64)
    right = wide / numpy.sqrt((wide ** 2).mean(-1, keepdims=True) + 1e-6)
    numpy.testing.assert_allclose(numpy.asarray(y, numpy.float64), right, rtol=2**-8)  # bf16 rounds once


def test_what_jax_queued_before_is_seen_and_what_follows_sees_the_output():
    x = jax.numpy.ones((64, 256), jax.numpy.float32)
    for _ in range(8):
        x = tilewright.ops.rms_norm(x * 3) + 1
    # Each step: ones tripled and normalised are 1, and 1 is added.
    numpy.testing.assert_allclose(numpy.asarray(x), 2, rtol=1e-6)
