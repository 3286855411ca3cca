"""Numbers, vectors and memory of convolutions in machine code: LLVM's names of types, addresses, buffers that are used again."""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

import numpy as np

WIDTH = {np.dtype(np.float32): 16, np.dtype(np.float64): 8}  # of a vector of 64 bytes
_LINE = 64  # bytes of a line of the cache
_KEEP = 64 << 20  # larger buffers are not kept
_local = threading.local()


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

    @property
    def fma(self) -> str:
        """The declaration of a fused multiply-add of vectors."""
        return f"declare {self.vector} @llvm.fma.{self.name}({self.vector}, {self.vector}, {self.vector})"

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


def pointer(x: np.ndarray | None) -> int:
    return 0 if x is None else x.__array_interface__["data"][0]  # type: ignore[no-any-return]


def scratch(name: str, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Uninitialised memory that is used again by the next call of the same name: fresh pages cost more than the work on them. It begins at a line of the
    cache."""
    size = math.prod(shape) * dtype.itemsize
    if size > _KEEP:
        return np.empty(shape, dtype)
    held = getattr(_local, name, None)
    if held is None or held.nbytes < size:
        room = np.empty(size + _LINE, np.uint8)
        held = room[-pointer(room) % _LINE :]
        setattr(_local, name, held)
    return held[:size].view(dtype).reshape(shape)  # type: ignore[no-any-return]
