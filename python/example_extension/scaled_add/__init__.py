# SPDX-License-Identifier: Apache-2.0
"""An operator of one's own: ``scaled_add(x, y, alpha=2.0)`` on tensors of PyTorch, CuPy, JAX or NumPy."""
from ._scaled_add import scaled_add

__all__ = ["scaled_add"]
