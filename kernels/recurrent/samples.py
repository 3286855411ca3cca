"""Calls of the recurrent ops that together reach every path, and ones worth timing; what one must compute and move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.ops.table import Sample, Work

# (batch sizes, elements of the state, backwards in time): equal and falling lengths
_LENGTHS = (((2, 2), 3, False), ((3, 2, 1), 2, False), ((3, 2, 2), 2, True), ((1,), 1, False))
_TIMED = ((32, 32, 256), (128, 64, 1024))  # (time steps, batch, elements of the state)


def _arrays(rng: np.random.Generator, rows: int, batch: int, n: int, gates: int, states: int) -> list[np.ndarray]:
    """x (rows, gates n), first states (batch, n), w (gates n, n)."""
    return [rng.normal(size=s) for s in ((rows, gates * n), *[(batch, n)] * states)] + [rng.normal(size=(gates * n, n)) / n**0.5]


def sequences(
    gates: int, states: int = 1, *, biased: Sequence[int] | None = None, more: Sequence[dict[str, Any]] = ({},)
) -> Callable[..., list[Sample]]:
    """The `samples` of an op; `biased`: of one that takes a bias, sizes of the state with which there is one; `more`: attributes of all calls."""

    def bias(rng: np.random.Generator, n: int) -> list[np.ndarray | None]:
        return [] if biased is None else [rng.normal(size=gates * n) if n in biased else None]

    def samples(rng: np.random.Generator) -> list[Sample]:
        return [
            Sample(*_arrays(rng, sum(b), b[0], n, gates, states), *bias(rng, n),
                   batch_sizes=b, reverse=reverse, in_c_order=n != 3, **attrs)
            for attrs in more for b, n, reverse in _LENGTHS
        ]  # fmt: skip

    return samples


def timed_sequences(gates: int, states: int = 1, *, biased: bool = False, **attrs: Any) -> Callable[..., list[Sample]]:
    """The `sizes` of an op."""

    def sizes(rng: np.random.Generator) -> list[Sample]:
        return [
            Sample(*_arrays(rng, t * b, b, n, gates, states), *[rng.normal(size=gates * n)] * biased, batch_sizes=(b,) * t, reverse=False, **attrs)
            for t, b, n in _TIMED
        ]  # fmt: skip

    return sizes


def work_of_steps(x: Any, w: Any, batch_sizes: Sequence[int], size: int, moved: int, flops: int) -> Work:
    """Each row times the weights, which are read for every step; beside them so many numbers moved and operations done for each element of the state."""
    elements = x.shape[0] * size
    return Work(2 * x.shape[0] * w.size + flops * elements, (moved * elements + len(batch_sizes) * w.size) * x.dtype.itemsize)
