"""Pool of a worker's shared memory: pieces for batches, used again and again, so that the system finds and zeroes their pages once.

A piece is free again when the worker's own arrays on it have died and the loader has said that those of the program have.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterable

import numpy as np

from tritensor.cuda.memory.size_classes import size_class
from tritensor.tensor.shared_memory import SegmentLoan, reserve_and_map

SMALL = 1 << 14  # bytes below which an array goes with the message: copying it is cheaper than a piece of its own
_KEPT = 64 << 20  # bytes of free pieces that may stay beside those in use


class Piece:
    """Shared bytes under a number; `holders` counts who still needs their contents."""

    __slots__ = ("descriptor", "forked", "holders", "mapping", "number", "size")

    def __init__(self, number: int, size: int) -> None:
        self.number, self.size, self.holders = number, size, 0
        self.forked = False  # a forked copy of the program may still see it: never to be used again
        self.descriptor, self.mapping = reserve_and_map(size)  # the descriptor until the loader has it


class PieceUse(SegmentLoan):
    """A worker's use of a piece: the base of its arrays there."""

    __slots__ = ("piece", "pool")

    def __init__(self, pool: MemoryPool, piece: Piece) -> None:
        self.pool, self.piece = pool, piece
        super().__init__(piece.mapping, piece.size)

    def __del__(self) -> None:
        self.pool.dead.append(self.piece)  # one append: the collector may run this anywhere


class MemoryPool:
    """The pieces of one worker. `fresh` are those that the loader has not been told of, `dropped` the numbers that it may forget."""

    def __init__(self) -> None:
        self.dead: deque[Piece] = deque()
        self.fresh: list[Piece] = []
        self.dropped: list[int] = []
        self._pieces: dict[int, Piece] = {}
        self._free: list[Piece] = []  # the longest free first
        self._made = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """An uninitialised C-ordered array, in a piece unless it is small. Raises OutOfMemoryError."""
        nbytes = math.prod(shape) * dtype.itemsize
        if nbytes < SMALL:
            return np.empty(shape, dtype)
        return np.ndarray(shape, dtype, np.asarray(self.take(nbytes)))

    def take(self, nbytes: int) -> PieceUse:
        """A piece of at least `nbytes`. Raises OutOfMemoryError."""
        self._collect()
        # up to twice as large, so that batches of changing lengths find one again
        fitting = [p for p in self._free if nbytes <= p.size <= 2 * nbytes + 4096]
        if fitting:
            piece = min(fitting, key=lambda p: p.size)
            self._free.remove(piece)
        else:
            size = -(-size_class(nbytes) // 4096) * 4096
            self._trim(size)
            piece = self._pieces[self._made] = Piece(self._made, size)
            self._made += 1
            self.fresh.append(piece)
        piece.holders = 1
        return PieceUse(self, piece)

    def release(self, numbers: Iterable[int]) -> None:
        """Note that the loader's arrays on these pieces have died; ~n is piece n, which a forked copy of the program may still see."""
        for number in numbers:
            piece = self._pieces[number if number >= 0 else ~number]
            piece.forked = piece.forked or number < 0
            self._drop_holder(piece)

    def _collect(self) -> None:
        while self.dead:
            self._drop_holder(self.dead.popleft())

    def _drop_holder(self, piece: Piece) -> None:
        piece.holders -= 1
        if piece.holders:
            return
        if piece.forked:
            del self._pieces[piece.number]
            self.dropped.append(piece.number)
        else:
            self._free.append(piece)

    def _trim(self, coming: int) -> None:
        """Give free pieces of sizes that nobody asks for back to the system, when there are more of them than of those in use."""
        free = sum(p.size for p in self._free)
        used = sum(p.size for p in self._pieces.values()) - free
        while self._free and free > max(used + coming, _KEPT):
            piece = self._free.pop(0)
            free -= piece.size
            del self._pieces[piece.number]
            if piece in self.fresh:
                self.fresh.remove(piece)
                os.close(piece.descriptor)
            else:
                self.dropped.append(piece.number)
