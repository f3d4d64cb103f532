# SPDX-License-Identifier: Apache-2.0
"""Settings and fixtures of all tests."""
import os

# Kernels of these tests are the emulator's: nothing is to be kept on disk, and every hit is traced again.
os.environ.setdefault("TILEWRIGHT_CACHE", "off")
os.environ.setdefault("TILEWRIGHT_VERIFY_CACHE", "1")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # JAX shares the GPU with PyTorch

import numpy
import pytest


@pytest.fixture
def rng():
    return numpy.random.default_rng(0)
