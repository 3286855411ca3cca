"""Steps on the CPU: one call of machine code over a table of addresses, or numpy in blocks that stay in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.kernels.optimizers.step_formula import StepFormula
from tritensor.kernels.parts import backends
from tritensor.kernels.parts.cpu.blocks import SILENT, upcast
from tritensor.kernels.parts.cpu.float_conversions import is_half
from tritensor.llvm.address_table import fields_of

PART = 16384  # elements: p, g, three states and some temporaries of a float32 block fit the second-level cache


def flat(x: np.ndarray) -> np.ndarray:
    """The elements of a dense array in the order of memory, complex ones as pairs of real ones; a view."""
    line = np.lib.stride_tricks.as_strided(x, (x.size,), (x.itemsize,))
    return line.view(f"f{x.itemsize // 2}") if x.dtype.kind == "c" else line


def _order(x: np.ndarray) -> list[int]:
    return sorted(range(x.ndim), key=lambda d: -x.strides[d])


def is_dense(x: np.ndarray) -> bool:
    """Whether an array's elements lie in one piece, in some order of its dims."""
    if x.flags.c_contiguous or x.flags.f_contiguous:
        return True
    step = x.itemsize
    for d in reversed(_order(x)):
        if x.shape[d] != 1 and x.strides[d] != step:
            return False
        step *= x.shape[d]
    return True


def lay_like(x: np.ndarray, p: np.ndarray) -> np.ndarray:
    """x itself where it lies as a dense p does, else a copy that does."""
    if x.strides == p.strides or (x.flags.c_contiguous and p.flags.c_contiguous):
        return x
    out = np.empty_like(p, order="K")
    np.copyto(out, x)
    return out


class CpuTable:
    """The arrays of some parameters of one type, (p, g, *states) each."""

    def __init__(self, made: StepFormula, rows: Sequence[Sequence[np.ndarray]]) -> None:
        self.made = made
        self.rows = [list(row) for row in rows]
        dtype = self.rows[0][0].dtype
        self.dtype = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype
        self.alike = [
            is_dense(row[0]) and all(lay_like(x, row[0]) is x for x in row[2:]) for row in self.rows
        ]  # those of which the table can tell
        pair = 2 if dtype.kind == "c" else 1
        self.table = np.array(
            [[pair * row[0].size, *[x.__array_interface__["data"][0] for x in row]] for row, ok in zip(self.rows, self.alike, strict=True) if ok],
            np.int64,
        ).reshape(-1, 1 + len(self.rows[0]))  # of gradients where their address is noted, see llvm/address_table.py  # fmt: skip
        self.whole = all(self.alike)
        self.strides = [row[0].strides for row in self.rows]

    def run(self, gradients: Sequence[np.ndarray] | None, numbers: np.ndarray, variant: tuple[Any, ...]) -> None:
        """Step all parameters; numbers (n, 1 + count), or (1, 1 + count) for all of them."""
        held = [row[1] for row in self.rows] if gradients is None else list(gradients)
        # a gradient may lie otherwise than its parameter, as that of a transposed weight does
        if [g.strides for g in held] != self.strides:  # copies must live until the call
            held = [lay_like(g, row[0]) if ok else g for g, row, ok in zip(held, self.rows, self.alike, strict=True)]
        run = self.made.loop(variant).of(self.dtype)
        if run is not None and len(self.table):
            chosen = held if self.whole else [g for g, ok in zip(held, self.alike, strict=True) if ok]
            own = numbers if self.whole or len(numbers) == 1 else numbers[self.alike]
            self.table[:, 2] = fields_of(chosen)
            run(self.table, np.ascontiguousarray(own, np.float64 if self.dtype.itemsize == 8 else np.float32))
            if self.whole:
                return
        function = self.made.spelled(backends.on_numpy, *variant)
        with SILENT():
            for i, (row, g, ok) in enumerate(zip(self.rows, held, self.alike, strict=True)):
                if not ok or run is None:
                    self._in_blocks(function, [row[0], g, *row[2:]], numbers[i if len(numbers) > 1 else 0].tolist(), ok)

    def _in_blocks(self, function: Any, arrays: list[np.ndarray], numbers: list[float], ok: bool) -> None:
        written = self.made.written
        if not ok:  # strided: through copies
            copies = [np.array(x, order="C") for x in arrays]
            self._in_blocks(function, copies, numbers, True)
            for k in written:
                arrays[k][...] = copies[k]
            return
        lanes = [flat(x) for x in arrays]
        narrow = is_half(self.dtype)
        for start in range(0, lanes[0].size, PART):
            parts = [x[start : start + PART] for x in lanes]
            made = function(*([upcast(x) for x in parts] if narrow else parts), *numbers)
            for k, y in zip(written, made, strict=True):
                parts[k][...] = y
