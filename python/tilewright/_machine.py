# SPDX-License-Identifier: Apache-2.0
"""What this machine has, and measuring configurations on it."""
from typing import Any, Dict, List, Sequence

from . import _core


def doctor() -> Dict[str, Any]:
    """Devices, assemblers and the kernel cache, with reasons for what is missing."""
    return _core.doctor()


def tune(op: str, problems: Sequence[str] = (), *, device: str = "cuda:0", budget_s: float = 60,
         dry_run: bool = False, target: str = "sm_90a") -> List[Dict[str, Any]]:
    """Searches the configurations of an operator, one search for each space and key, as `tilewright tune` does.

    Problems are texts such as "T=1,H=4096,x=bf16"; without any, the operator's own. A dry run lists and assembles
    the candidates for ``target`` and needs no GPU. Records are written by the program.
    """
    return _core.tune(op, list(problems), device, budget_s, target if dry_run else "")
