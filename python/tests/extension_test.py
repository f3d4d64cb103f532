# SPDX-License-Identifier: Apache-2.0
"""The module of python/example_extension, where the build folder has it: an operator from outside of the tree."""
import numpy
import pytest

import tilewright

extension = pytest.importorskip("_scaled_add")


def test_it_computes_in_the_emulator():
    x, y = numpy.arange(300, dtype=numpy.float32), numpy.ones(300, numpy.float32)
    numpy.testing.assert_array_equal(extension.scaled_add(x, y, alpha=2.5), 2.5 * x + 1)
    numpy.testing.assert_array_equal(extension.scaled_add(x[::3], y[::3], alpha=2.5), 2.5 * x[::3] + 1)


def test_it_has_documentation_and_mistakes_of_its_own():
    assert "out = alpha x + y" in extension.scaled_add.__doc__
    with pytest.raises(ValueError, match=r"scaled_add: .*N"):
        extension.scaled_add(numpy.ones(3, numpy.float32), numpy.ones(4, numpy.float32))


def test_the_package_beside_it_is_untouched():
    assert tilewright.ops.rms_norm(numpy.ones((1, 64), numpy.float32)).shape == (1, 64)
