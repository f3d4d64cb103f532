# SPDX-License-Identifier: Apache-2.0
"""The checking emulator: any PTX, and how operators on host memory run."""
from dataclasses import dataclass
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from . import _core
from ._findings import Finding

Dim = Union[int, Sequence[int]]


@dataclass(frozen=True)
class Report:
    """What came of a launch. ``ok``: every block ran to its end and nothing above advice was found."""
    findings: List[Finding]
    counters: Optional[Dict[str, Any]]
    output: str
    steps: int
    completed: bool
    ok: bool


def _extents(dim: Dim) -> Tuple[int, ...]:
    return tuple(dim) if isinstance(dim, Sequence) else (dim,)


def emulate(ptx: str, entry: str = "", grid: Dim = 1, block: Dim = 1, args: Sequence[Any] = (), *,
            cluster: Dim = 1, smem_bytes: int = 0, cooperative: bool = False, target: str = "",
            checks: str = "all", seed: int = 0, residency: str = "estimate", delivery: str = "late",
            divergence: str = "converge", counters: bool = False) -> Report:
    """Runs one grid of a PTX text with checks.

    An argument is an array (copied to the emulated device, its address passed, copied back if it is writable), a
    number of the parameter's type, or the parameter as ``bytes``. ``entry`` may be left out where the text has
    one; ``target`` replaces the text's. Defects of the kernel are in the report's findings; what cannot be run is
    a ValueError.
    """
    how = {"entry": entry, "grid": _extents(grid), "block": _extents(block), "cluster": _extents(cluster),
           "smem_bytes": smem_bytes, "cooperative": cooperative, "target": target, "checks": checks, "seed": seed,
           "residency": residency, "delivery": delivery, "divergence": divergence, "counters": counters}
    return Report(**_core.emulate(ptx, args, how))


def use_emulator(target: str = "sm_90a", checks: str = "all", seed: int = 0) -> None:
    """How operators run on arrays in host memory from here on."""
    _core.use_emulator(target, checks, seed)
