"""Time steps in one call of machine code: BLAS's product and the pass of each step one after the other, some rows of the batch for each thread.

A row of the state meets no other row: threads go through all steps without waiting for one another.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from tritensor.kernels.recurrent.time_steps import Rows
from tritensor.llvm import products, threads, workers
from tritensor.llvm.strided_rows import BoundLoop

_STEPS = 512  # in one call: a signal of the system waits for its end
_ROWS = 16  # of a thread, at least: of fewer BLAS does its best by columns
_WORDS = 1 + workers.ARGUMENTS


def run(steps: Sequence[tuple[int, int]], a: Rows, b: np.ndarray, out: Rows, loop: Any, product_first: bool) -> bool:
    """out = a @ b and loop(start, n) for each step (start, n), the product before or behind the loop; False where Python has to call them."""
    product = products.call_of(a.x, b, out.x) if type(loop) is BoundLoop and steps else None
    if product is None:
        return False
    batch, work, count = max(n for _, n in steps), sum([n for _, n in steps]) * b.size, threads.free()
    if not batch or (threads.count() > 1 and work >= products.MANY and (count < 2 or batch < count * _ROWS)):
        return False
    parts = count if work >= products.MANY else 1
    ends = [batch * k // parts for k in range(parts + 1)]
    sizes = np.arange(batch + 1)  # numbers of rows, of which BLAS is told where they are
    with threads.single_threaded_blas if threads.count() > 1 else nullcontext():
        for at in range(0, len(steps), _STEPS):
            some = np.array(steps[at : at + _STEPS], np.int64)
            tables = [_calls(some, *part, product, (a, out), sizes, loop, product_first) for part in itertools.pairwise(ends)]
            # rows that have come to their end have no calls
            threads.run_tables([(calls.ctypes.data, len(calls)) for calls, _ in tables if len(calls)])
    return True


def _calls(
    steps: np.ndarray, low: int, high: int, product: tuple[Any, Sequence[int], Any], rows: tuple[Rows, Rows], sizes: np.ndarray, loop: BoundLoop,
    product_first: bool,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """The calls for some rows of the batch, and the tables that they read, which must outlive them."""
    starts, counts = steps[:, 0], np.clip(steps[:, 1] - low, 0, high - low)
    starts, counts = starts[counts > 0], counts[counts > 0]
    calls = np.zeros((len(starts), 2, _WORDS), np.int64)
    multiply, passing = calls[:, 0 if product_first else 1], calls[:, 1 if product_first else 0]
    function, row, _ = product
    multiply[:, 0], multiply[:, 1 : 1 + len(row)] = workers.address(function), row
    # in the order of BLAS's arguments (see products.py)
    multiply[:, 1 + products.ROWS] = sizes.ctypes.data + counts * sizes.itemsize
    for place, r in zip((products.LEFT, products.RESULT), rows, strict=True):
        multiply[:, 1 + place] = r.x.__array_interface__["data"][0] + (low + starts * r.moving) * r.x.strides[0]
    tables = loop.tables(starts, low)
    passing[:, 0], passing[:, 1], passing[:, 2] = workers.address(loop.function), counts, loop.n
    passing[:, 3], passing[:, 4] = tables.ctypes.data + np.arange(len(tables)) * tables.strides[0], loop.steps.ctypes.data
    return calls.reshape(-1, _WORDS), tables
