"""Steps of a tape in numpy, one at a time, with the roundings of kernels: where there is no machine code, and for what it does not take."""

from __future__ import annotations

import functools
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.kernels.parts import backends
from tritensor.kernels.parts.cpu import blocks
from tritensor.kernels.parts.cpu.float_conversions import as_integers
from tritensor.kernels.parts.tapes import oracle
from tritensor.kernels.parts.tapes.cpu.folds import KEPT_WIDE
from tritensor.kernels.parts.tapes.tape import Fold, Step

_FLOATS = "fV"  # kinds of numpy's types, bfloat16 being of the second


def rounded(y: Any, dtype: np.dtype) -> np.ndarray:
    """An array as a type in memory; whole numbers go to 16-bit floats by way of float32, as in machine code."""
    y = np.asarray(y)
    if dtype == np.bool_:
        return y.astype(np.bool_)
    if y.dtype.kind in _FLOATS and dtype.kind in "iu":
        return as_integers(y, dtype)
    if dtype.itemsize == 2 and dtype.kind in _FLOATS and y.dtype.kind not in _FLOATS:
        y = y.astype(np.float32)
    return dtypes.astype(y, dtype)


def widened(x: np.ndarray, wide: bool) -> np.ndarray:
    """A value as formulas take it: floats as float64 or float32, booleans as int8, all else as it is."""
    if x.dtype == np.bool_:
        return x.view(np.int8)
    return x.astype(np.float64 if wide else np.float32, copy=False) if x.dtype.kind in _FLOATS else x


def run_step(step: Step, values: Sequence[np.ndarray], out: np.ndarray) -> None:
    """out = the step's formula of values that broadcast to it."""
    with blocks.SILENT():
        out[...] = rounded(oracle.pointwise(step.formula, values, step.wide), step.dtype)


class _Tile(np.ndarray):
    """An array that knows a word of Triton's."""

    def to(self, dtype: np.dtype) -> np.ndarray:
        """As another type."""
        return self.astype(dtype)


_LANGUAGE = types.SimpleNamespace(
    maximum=lambda a, b, propagate_nan=None: np.maximum(a, b), minimum=lambda a, b, propagate_nan=None: np.minimum(a, b), where=np.where,
    abs=np.abs, zeros_like=np.zeros_like, broadcast_to=np.broadcast_to, PropagateNan=types.SimpleNamespace(ALL=None),
    int32=np.dtype(np.int32), int64=np.dtype(np.int64), float32=np.dtype(np.float32), float64=np.dtype(np.float64),
)  # fmt: skip
_on_tiles = types.SimpleNamespace(**vars(backends.on_numpy), modules={"triton.language": _LANGUAGE})


@functools.cache
def _on_tiles_of(function: Any) -> Any:
    return backends.translate(function, _on_tiles)


def _as_tiles(given: Any, shape: tuple[int, ...], kept: Sequence[np.dtype]) -> list[Any]:
    found = given if isinstance(given, tuple) else (given,)
    return [np.broadcast_to(np.asarray(x), shape).astype(d).view(_Tile) for x, d in zip(found, kept, strict=True)]


def run_fold(fold: Fold, shape: tuple[int, ...], values: Sequence[Sequence[np.ndarray]], outs: Sequence[np.ndarray]) -> None:
    """outs = the fold over the last two axes of a space of four, of the values of its picks, scalars and numbers; by halves, sums in float64."""
    functions, (picks, scalars, numbers) = fold.functions, values
    sums = functions.combine in KEPT_WIDE
    kept = [np.dtype(np.float64) if sums and d.kind == "f" else d for d in fold.states]
    state: list[Any]
    combine, count = _on_tiles_of(functions.combine), shape[2] * shape[3]
    index = np.arange(count, dtype=np.int64).reshape(1, 1, *shape[2:])
    with blocks.SILENT():
        given = [widened(x, x.dtype.char == "d").view(_Tile) for x in picks]
        mapped = _on_tiles_of(functions.map)(*given, index.view(_Tile), *[widened(x, True).view(_Tile) for x in numbers])
        state = [x.reshape(*shape[:2], count, 1) for x in _as_tiles(mapped, shape, kept)]
        start = [np.full((*shape[:2], 1, 1), e, d).view(_Tile) for e, d in zip(functions.identity(tuple(fold.states)), kept, strict=True)]
        if not count:
            state = start
        while (n := state[0].shape[2]) > 1:
            if n % 2:
                state, n = [np.concatenate([x, e], axis=2).view(_Tile) for x, e in zip(state, start, strict=True)], n + 1
            halves = [x[:, :, : n // 2] for x in state], [x[:, :, n // 2 :] for x in state]
            state = _as_tiles(combine(*halves[0], *halves[1]), halves[0][0].shape, kept)
        found: Any = state
        if functions.finish is not None:
            found = _on_tiles_of(functions.finish)(*state, *[widened(x, True).view(_Tile) for x in scalars])
        for y, out, dtype in zip(found if isinstance(found, tuple | list) else [found], outs, fold.dtypes, strict=True):
            out[...] = rounded(np.asarray(y), dtype)
