# SPDX-License-Identifier: Apache-2.0
"""The layout algebra, with pictures in notebooks."""
from typing import List, Tuple

from . import _core


class Layout:
    """What an expression of the algebra is worth."""

    def __init__(self, expression: str):
        self.expression = expression
        self._answer = _core.layout(expression)

    @property
    def text(self) -> str:
        """The value in CuTe's notation."""
        return self._answer.text

    def table(self) -> str:
        """The index at each coordinate, as lines of text."""
        return self._answer.table()

    def svg(self, bank_bits: int = 0) -> str:
        """A drawing, coloured by index, or by shared-memory bank for elements of ``bank_bits`` bits."""
        return self._answer.svg(bank_bits)

    def _repr_svg_(self):
        return self.svg() if self._answer.is_layout else None

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"layout({self.expression!r}) = {self.text}"


def layout(expression: str) -> Layout:
    """Evaluates ``"composition((6,2):(8,2), (4,3):(3,1))"``: every function of the algebra by its CuTe name."""
    return Layout(expression)


def layout_functions() -> List[Tuple[str, str, str]]:
    """The functions that expressions may call: name, parameters, meaning."""
    return _core.layout_functions()
