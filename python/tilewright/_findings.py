# SPDX-License-Identifier: Apache-2.0
"""What the emulator reports."""
from dataclasses import dataclass
from typing import List, Optional, Tuple


@dataclass(frozen=True)
class Place:
    """Where an access happened: line of C++ (if the PTX says), line and instruction of PTX, block and thread."""
    file: str
    line: int
    ptx_line: int
    instruction: str
    block: Tuple[int, int, int]
    thread: Tuple[int, int, int]
    agent: str


@dataclass(frozen=True)
class Finding:
    """One finding: ``kind`` is "race", "out_of_bounds", ...; ``severity`` "error", "undefined" or "advice"."""
    kind: str
    severity: str
    message: str
    entry: str
    place: Place
    other: Optional[Place]
    count: int
    text: str

    def __str__(self) -> str:
        return self.text


class FindingsError(RuntimeError):
    """An operator ran in the emulator, which found errors in it; the message is the first one's."""

    def __init__(self, findings: List[Finding]):
        super().__init__(findings[0].text)
        self.findings = findings
