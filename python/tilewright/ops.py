# SPDX-License-Identifier: Apache-2.0
"""The operators of this build, each made from its schema.

Inputs are positional, in the order of the schema, or keywords; options and outputs are keywords. Outputs that
are not given are made by the library that the first tensor comes from; an optional output is made where its
keyword is ``True``. The result is the output, or a tuple of them.
"""
from ._core import ops as _ops

__all__ = sorted(name for name in vars(_ops) if not name.startswith("_"))
globals().update({name: getattr(_ops, name) for name in __all__})
