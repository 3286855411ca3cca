"""What LLVM calls a kind of numbers and its vectors, for convolutions in machine code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Kind(NamedTuple):
    """A type of numbers: its LLVM name, how many stand in a vector, the bytes of one."""

    number: str
    width: int
    item: int

    @property
    def vector(self) -> str:
        return f"<{self.width} x {self.number}>"

    @property
    def lanes(self) -> str:
        """The type of a mask."""
        return f"<{self.width} x i1>"

    @property
    def name(self) -> str:
        """The vector in names of functions."""
        return f"v{self.width}f{self.item * 8}"

    def spread(self, number: str, name: str) -> list[str]:
        """%<name>: the number in every lane."""
        return [
            f"  %{name}.0 = insertelement {self.vector} poison, {self.number} %{number}, i32 0",
            f"  %{name} = shufflevector {self.vector} %{name}.0, {self.vector} poison, <{self.width} x i32> zeroinitializer",
        ]


def kind_in(dtype: np.dtype, room: int) -> Kind:
    """float32, or float64, in vectors of so many bytes."""
    number, item = ("float", 4) if dtype == np.float32 else ("double", 8)
    return Kind(number, room // item, item)
