"""Indices drawn by their weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.array import empty, from_host, to_host
from tritensor.random import Generator
from tritensor.tensor.aliasing.inplace import write_out
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.creation.random import draw_on_host, draw_uniform, require_float, to_integers
from tritensor.tensor.public_api.publish import function


@function
def multinomial(
    x: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None, out: Tensor | None = None
) -> Tensor:
    """Indices drawn with probabilities proportional to the weights in x, (n,) or (rows, n). Without replacement each comes at most once,
    those of weight 0 last. Waits for the device.

    Raises ShapeError for other dimensions, DTypeError for weights that are not floating, ValueError for weights that are negative, not
    finite or all 0, and for a count below 1 or, without replacement, above n.
    """
    require_float("multinomial", x._array.dtype)
    if out is not None and out._array.dtype != np.int64:
        raise DTypeError(f"multinomial: out is {out.dtype.name}; indices are int64, give an out of that type")
    if x._array.ndim not in (1, 2):
        raise ShapeError(f"multinomial: x has {x._array.ndim} dimensions; give (n,) weights, or (rows, n)")
    (num_samples,) = to_integers("multinomial", num_samples)
    if num_samples < 1 or (not replacement and num_samples > x._array.shape[-1]):
        raise ArgumentError(
            f"multinomial: {num_samples} draws from {x._array.shape[-1]}; give 1 or more, with replacement=True for more than that"
        )
    if x.is_meta:
        drawn = new_tensor(empty((*x._array.shape[:-1], num_samples), np.dtype(np.int64), x.device))
        return drawn if out is None else write_out(out, drawn, "multinomial")
    weights = to_host(x._array).astype(np.float64)
    rows = weights.reshape(-1, weights.shape[-1])
    edges = np.add.accumulate(rows, axis=-1)
    sums = edges[:, -1]
    least, most = np.minimum.reduce(sums, initial=1.0), np.maximum.reduce(sums, initial=1.0)
    if not (least > 0 and most < math.inf and np.minimum.reduce(rows, axis=None, initial=0.0) >= 0):
        raise ArgumentError("multinomial: weights must be finite and not negative, with a positive sum")
    if replacement:
        found = _pick_weighted(rows, edges, draw_on_host(draw_uniform, (len(rows), num_samples), generator))
    else:  # the largest of log w + Gumbel noise
        u = draw_on_host(draw_uniform, rows.shape, generator)
        with np.errstate(divide="ignore"):
            noisy = np.log(rows) - np.log(-np.log1p(-u))
        found = np.argsort(-noisy, -1, kind="stable")[:, :num_samples]
    drawn = new_tensor(from_host(found.astype(np.int64, copy=False).reshape(*weights.shape[:-1], num_samples), x.device))
    return drawn if out is None else write_out(out, drawn, "multinomial")


def _pick_weighted(rows: np.ndarray, edges: np.ndarray, u: np.ndarray) -> np.ndarray:
    """For each number of u, of [0, 1), the index of its row's weight in whose part of the sum it lies: (rows, draws). `edges` are the sums up to each weight.

    One search for all rows: the sums of a row's weights, as parts of 1, stand behind those of the rows before.
    """
    n = rows.shape[1]
    start: Any = 0
    if len(rows) == 1:
        found = edges[0].searchsorted(u * edges[0, -1], "right")
    else:
        behind = np.arange(len(rows), dtype=np.float64)[:, None]
        edges = edges / edges[:, -1:]
        edges += behind
        start = np.arange(len(rows))[:, None] * n
        found = edges.reshape(-1).searchsorted(u + behind, "right") - start
        found = np.maximum(found, 0)
    found = np.minimum(found, n - 1)
    if not rows.reshape(-1)[found + start].all():  # rounding must not pick an index of weight 0 behind the last one
        found = np.minimum(found, n - 1 - np.argmax(rows[:, ::-1] > 0, -1)[:, None])
    return found
