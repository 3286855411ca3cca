"""Softmax of rows in machine code: the largest, the sum of the powers, the quotients, while the row is in the cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.llvm.loops import takes_rows
from tritensor.llvm.objects.rows import NEW_ROWS, ROWS
from tritensor.llvm.passes.row_programs import Operand, RowProgram
from tritensor.llvm.simd_functions import exp, log


def _softmax(p: Any, x: Any, y: Any) -> None:
    # from the largest down no power overflows
    most = p.largest(x)
    if x.dtype.itemsize == 2:  # what is written is rounded: the powers are computed twice
        total = p.sum(lambda x, m: exp(x - m), x, most)
        p.each(lambda x, m, r: exp(x - m) * r, x, most, 1.0 / total, into=(y,))
    else:

        def power(x: Any, m: Any) -> tuple[Any, Any]:
            e = exp(x - m)
            return e, e

        (total,) = p.walk(power, x, most, into=(y,), sums=1)
        p.each(lambda y, r: y * r, y, 1.0 / total, into=(y,))


def _log_softmax(p: Any, x: Any, y: Any) -> None:
    most = p.largest(x)
    total = p.sum(lambda x, m: exp(x - m), x, most)
    p.each(lambda x, m, t: (x - m) - t, x, most, log(total), into=(y,))


def _softmax_back(p: Any, g: Any, y: Any, dx: Any) -> None:
    p.each(lambda g, y, s: y * (g - s), g, y, p.sum(lambda g, y: g * y, g, y), into=(dx,))


def _log_softmax_back(p: Any, g: Any, y: Any, dx: Any) -> None:
    p.each(lambda g, y, s: g - exp(y) * s, g, y, p.sum(lambda g: g, g), into=(dx,))


FORWARD = {log: RowProgram(f, (ROWS, NEW_ROWS)) for log, f in ((False, _softmax), (True, _log_softmax))}
BACKWARD = {log: RowProgram(f, (ROWS, ROWS, NEW_ROWS)) for log, f in ((False, _softmax_back), (True, _log_softmax_back))}


def along_rows(program: RowProgram, arrays: Sequence[np.ndarray], axis: int) -> np.ndarray | None:
    """The result of rows along the last dim, many of them, or such as lie apart; None for another dim, and where numpy has to compute it."""
    x = np.ascontiguousarray(arrays[-1])
    if not x.ndim or axis != x.ndim - 1 or not takes_rows(x, 1) or any(a.dtype != x.dtype or a.shape != x.shape for a in arrays):
        return None
    n, out = x.shape[-1], np.empty(x.shape, x.dtype)
    operands = [Operand(np.ascontiguousarray(a), n) for a in (*arrays[:-1], x, out)]
    return out if program((x.size // n, 1, n), operands) else None
