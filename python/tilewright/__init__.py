# SPDX-License-Identifier: Apache-2.0
"""GPU kernels specialised while a program runs, for PyTorch, JAX, CuPy and NumPy.

``tilewright.ops`` has the operators. Tensors on a GPU run there; arrays in host memory run in the checking
emulator, and what it finds is raised as :class:`FindingsError`.
"""
from . import cache, ops
from ._core import DependentLaunches as dependent_launches
from ._core import version as __version__
from ._documentation import schema
from ._emulate import Report, emulate, use_emulator
from ._findings import Finding, FindingsError, Place
from ._frameworks import Fp4Pairs
from ._layout import Layout, layout, layout_functions
from ._machine import doctor, tune

__all__ = ["Finding", "FindingsError", "Fp4Pairs", "Layout", "Place", "Report", "cache", "dependent_launches", "doctor",
           "emulate", "layout", "layout_functions", "ops", "schema", "tune", "use_emulator"]
