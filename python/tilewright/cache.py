# SPDX-License-Identifier: Apache-2.0
"""The cache of kernels of this process, in memory and on disk."""
import os
from typing import Any, Dict, List, Union

from . import _core


def counters() -> Dict[str, int]:
    """How often what happened: memory, bundle, disk and PTX hits, kernels assembled, entries rejected."""
    return _core.cache_counters()


def directory() -> str:
    """Where entries lie; empty: nothing is kept on disk."""
    return _core.cache_directory()


def entries() -> List[Dict[str, Any]]:
    """The entries on disk."""
    return _core.cache_list()


def verify() -> List[Dict[str, Any]]:
    """As entries(), after checking every byte; ``problem`` says what is wrong."""
    return _core.cache_verify()


def clear() -> int:
    """Removes every entry on disk; how many there were."""
    return _core.cache_clear()


def compiled() -> List[str]:
    """The keys that were traced and assembled by this process."""
    return _core.cache_compiled()


def warnings() -> List[str]:
    """What went wrong without stopping anything."""
    return _core.cache_warnings()


def add_bundle(path: Union[str, "os.PathLike[str]"]) -> None:
    """Takes kernels from a bundle from here on."""
    _core.cache_add_bundle(os.fspath(path))
