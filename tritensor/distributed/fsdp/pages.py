"""Memory whose contents can be given back to the system while arrays that look at it stay where they are."""

from __future__ import annotations

import mmap

import numpy as np

ALIGNED = 64  # bytes: where an array in it may begin


class Pages:
    """Anonymous pages of this process. `array` is all of them in bytes.

    An autograd graph holds the arrays of the parameters that it was computed with, so dropping references would free nothing. `give_back`
    lets the system take the pages, whose addresses stay; they come back as zeros when they are next written. No other library may know
    these addresses (one that pins memory for a network card would go on with the old pages), so data comes and goes by copies only.
    """

    def __init__(self, nbytes: int) -> None:
        self._map = mmap.mmap(-1, max(nbytes, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.array = np.frombuffer(self._map, np.uint8)
        self.start = self.array.__array_interface__["data"][0]
        self.end = self.start + self.array.nbytes

    def give_back(self) -> None:
        """Let the system have the memory."""
        self._map.madvise(mmap.MADV_DONTNEED)

    def holds(self, address: int) -> bool:
        """Whether an address lies in it."""
        return self.start <= address < self.end
