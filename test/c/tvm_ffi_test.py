# SPDX-License-Identifier: Apache-2.0
"""Operators as functions of TVM-FFI, on arrays in host memory, which run in the emulator.

usage: tvm_ffi_test.py LIBRARY
"""
import sys
import unittest

try:
    import numpy as np
    import tvm_ffi
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(0)

MODULE = tvm_ffi.load_module(sys.argv.pop())


def tensor(array):
    return tvm_ffi.from_dlpack(array)


class Operators(unittest.TestCase):
    def setUp(self):
        self.x = np.arange(3 * 64, dtype=np.float32).reshape(3, 64) % 7 - 2.5
        self.y = np.zeros_like(self.x)

    def expect_rms_norm(self, w, eps):
        x = self.x.astype(np.float64)
        wanted = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + eps) * w
        np.testing.assert_allclose(self.y, wanted, rtol=1e-5, atol=1e-6)

    def test_tensors_come_by_position_and_outputs_are_given(self):
        w = np.linspace(0.5, 1.5, 64, dtype=np.float32)
        MODULE.rms_norm(tensor(self.x), tensor(w), tensor(self.y))
        self.expect_rms_norm(w, 1e-6)

    def test_none_stands_for_what_is_absent_and_names_follow(self):
        MODULE.rms_norm(tensor(self.x), None, tensor(self.y), "eps", 0.5)
        self.expect_rms_norm(1, 0.5)
        self.y[:] = 0
        MODULE.rms_norm(tensor(self.x), "y", tensor(self.y), "w", None, "eps", None)
        self.expect_rms_norm(1, 1e-6)

    def test_options_are_numbers_booleans_and_text(self):
        x = np.array([[1.0, -2.0, 3.0, 4.0]], dtype=np.float32)
        y = np.zeros((1, 2), dtype=np.float32)
        MODULE.silu_and_mul(tensor(x), "y", tensor(y), "layout", "interleaved", "round_act", False, "limit", 7)
        gate, factor = x[0, 0::2].astype(np.float64), x[0, 1::2]
        np.testing.assert_allclose(y[0], gate / (1 + np.exp(-gate)) * factor, rtol=1e-5)

    def test_what_the_caller_can_mend_is_a_value_error(self):
        def refused(text, *arguments):
            with self.assertRaisesRegex(ValueError, text):
                MODULE.rms_norm(*arguments)

        x, y = tensor(self.x), tensor(self.y)
        refused("rms_norm: .*eps", x, None, y, "eps", "wide")
        refused("'x' is not a tensor", 1, None, y)
        refused("takes at most [0-9]+ tensors by position; names and values follow", *[None] * 20)
        refused("'eps' has no value behind it", x, None, y, "eps")
        refused("a name is expected behind names", x, "y", y, 1, 2)
        refused("width", x, "y", y, "width", 1)
        refused("no tensor is given")

    def test_every_operator_is_there(self):
        for name in ("rope", "kda_decode", "moe_topk", "quantize"):
            self.assertIsNotNone(MODULE.get_function(name))


if __name__ == "__main__":
    unittest.main()
