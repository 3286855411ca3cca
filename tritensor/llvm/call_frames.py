"""Call frame: a table of machine calls in memory that is used again, with the arrays that they read and write named anew before each run."""

from __future__ import annotations

import ctypes
import functools
import struct
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.llvm import compiler, threads, workers
from tritensor.llvm.address_table import FIELD, fields_work
from tritensor.llvm.loop_nest import LoopNest

KEPT = 1 << 16  # bytes of temporaries up to which a frame holds on to them
_HEAD = 4  # words before the rest: where the calls begin, how many there are, where the patches begin, how many there are


class Patch(NamedTuple):
    """A word that is to be the address `ahead` bytes behind the first element of an array, by place among those that a run is given."""

    word: int
    array: int
    ahead: int


class Frame:
    """Machine calls ready to be run on arrays.

    words: the calls, with zeros where addresses are to stand. own: (word, word) of those that are to be the address of another word. temporaries: bytes of
    scratch memory, which the patches count as one array more, behind `arrays` others. shared: whether each call is for another thread, where there are so
    many and they are free.
    """

    __slots__ = ("_at", "_cells", "_first", "_held", "_name", "_run", "_shares", "_temporaries", "_words", "numbers")

    def __init__(
        self, words: array[int], count: int, own: Sequence[tuple[int, int]], patches: Sequence[Patch], arrays: int, temporaries: int, shared: bool
    ) -> None:  # fmt: skip
        self.numbers: Any = None  # what was last written over words, for whoever writes
        held = words[:]
        first = _HEAD + arrays + 1
        made = array("q", [0] * first) + held
        for patch in patches:
            made.extend((_HEAD + patch.array, first + patch.word, patch.ahead))
        start = made.buffer_info()[0]
        for word, to in own:
            made[first + word] = start + 8 * (first + to)
        made[:_HEAD] = array("q", (start + 8 * first, count, start + 8 * (first + len(held)), len(patches)))
        self._words, self._at, self._first, self._run = made, start, 8 * first, _function(not shared)
        self._shares = [(start + 8 * (first + k * (1 + workers.ARGUMENTS)), 1) for k in range(count)] if shared else []
        self._name = struct.Struct(f"{arrays}q").pack_into
        self._cells = None if _fields_work() else np.empty(arrays + 1, np.int64)
        self._held = np.empty(temporaries, np.uint8) if temporaries <= KEPT else None
        self._temporaries = temporaries
        if self._held is not None:
            self._place(arrays, self._held)

    def _place(self, k: int, x: np.ndarray) -> None:
        self._words[_HEAD + k] = id(x) if self._cells is None else self._cell(k, x)

    def _cell(self, k: int, x: np.ndarray) -> int:
        """Where an object would begin whose field is a cell that holds an array's address."""
        assert self._cells is not None
        self._cells[k] = x.__array_interface__["data"][0]
        return int(self._cells.__array_interface__["data"][0]) + 8 * k - FIELD

    def write(self, byte: int, pack: Any, number: Any) -> None:
        """Write a number over the words, so many bytes from the first: `pack` is a struct's `pack_into`."""
        pack(self._words, self._first + byte, number)

    def run(self, arrays: Sequence[np.ndarray]) -> None:
        """Run the calls on these."""
        if self._cells is None:
            self._name(self._words, 8 * _HEAD, *map(id, arrays))
        else:
            for k, x in enumerate(arrays):
                self._place(k, x)
        if self._held is None:
            room = np.empty(self._temporaries, np.uint8)
            self._place(len(arrays), room)
        self._run(self._at)
        if self._shares:
            threads.run_tables(self._shares)


def _text(calls: bool) -> str:
    """run(frame): writes the addresses of arrays, then (`calls`) calls all functions, one after the other."""
    nest = LoopNest()
    for name, place in (("calls", 0), ("count", 1), ("patches", 2), ("many", 3)):
        nest.lines += [f"  %{name}.at = getelementptr i64, ptr %frame, i64 {place}"]
    nest.lines += [
        "  %calls = load ptr, ptr %calls.at, align 8",
        "  %count = load i64, ptr %count.at, align 8",
        "  %patches = load ptr, ptr %patches.at, align 8",
        "  %many = load i64, ptr %many.at, align 8",
    ]
    with nest.maybe_empty_loop("p", "%many"):
        nest.lines += [
            "  %three = mul i64 %p, 3",
            "  %patch = getelementptr i64, ptr %patches, i64 %three",
            "  %patch.to = getelementptr i64, ptr %patch, i64 1",
            "  %patch.ahead = getelementptr i64, ptr %patch, i64 2",
            "  %which = load i64, ptr %patch, align 8",
            "  %word = load i64, ptr %patch.to, align 8",
            "  %ahead = load i64, ptr %patch.ahead, align 8",
            "  %object.at = getelementptr i64, ptr %frame, i64 %which",
            "  %object = load ptr, ptr %object.at, align 8",
            f"  %field = getelementptr i8, ptr %object, i64 {FIELD}",
            "  %data = load i64, ptr %field, align 8",
            "  %address = add i64 %data, %ahead",
            "  %to = getelementptr i64, ptr %frame, i64 %word",
            "  store i64 %address, ptr %to, align 8",
        ]
    return workers.calls_text(nest, "%calls", "%count", "ptr %frame") if calls else nest.text("ptr %frame", returns="i64 0")


@functools.cache
def _function(calls: bool) -> Any:
    return compiler.build_typed(_text(calls), ctypes.c_int64, ctypes.c_void_p)


_fields_work = functools.cache(fields_work)
