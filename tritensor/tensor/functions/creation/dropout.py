"""Dropout of single elements and of whole channels, plain and in the form that keeps mean and variance."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tritensor import random as generators
from tritensor.autograd.modes import state
from tritensor.autograd.node import next_sequence
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ground.transforms import running, transform
from tritensor.ops.table import ops
from tritensor.random import Generator
from tritensor.tensor.aliasing.inplace import overwrite
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import next_position
from tritensor.tensor.public_api.publish import function, rename_function

_SELU_LOW = 1.7580993408473766  # minus selu's value far below 0 (Klambauer et al. 2017)


def _keeps_all(p: float, train: bool, name: str) -> bool:
    """Whether nothing is dropped; ArgumentError for a p that is no probability."""
    if not 0.0 <= p <= 1.0:
        raise ArgumentError(f"{name}: dropout probability has to be between 0 and 1, but got {p}; give such a p")
    return not train or p == 0


def _drop(x: Tensor, p: float, generator: Generator | None = None) -> Tensor:
    """x with elements dropped, by the next numbers of a generator; inside vmap each example may have its own."""
    seed, offset = next_position(generators.blocks_used(x._array.size, 32), generator, x.device)
    return ops.dropout(transform.current.spread(x) if running.levels else x, p=float(p), seed=seed, offset=offset)


def _draw_noise(x: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    """0 with probability p, else 1 / (1 - p)."""
    return _drop(ops.full(shape=shape, value=1, dtype=x._array.dtype, device=x.device), p)


def _channel_shape(x: Tensor, name: str) -> tuple[int, ...]:
    """One number for each channel of each sample."""
    if x.ndim < 2:
        raise ShapeError(f"{name}: input {tuple(x.shape)} has {x.ndim} dimensions; give (batch, channels, ...)")
    return (*x._array.shape[:2], *[1] * (x.ndim - 2))


@function(method=False)
def dropout(x: Tensor, p: float = 0.5, train: bool = True, *, generator: Generator | None = None) -> Tensor:
    """Zero each element with probability p and scale the others by 1 / (1 - p); x itself when not training or p is 0."""
    if _keeps_all(p, train, "dropout"):
        return x
    return _drop(x, p, generator)


@function(method=False)
def feature_dropout(x: Tensor, p: float, train: bool) -> Tensor:
    """dropout of whole channels of x (batch, channels, ...)."""
    if _keeps_all(p, train, "feature_dropout") or x._array.size == 0:
        return x
    return ops.mul(x, _draw_noise(x, _channel_shape(x, "feature_dropout"), p))


def _drop_to_lowest(x: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    """Dropped elements take selu's lowest value; a line through the rest keeps mean 0 and variance 1."""
    # The slope below would be 1 / 0; PyTorch gives zeros, and NaN of what is not finite.
    if p == 1:
        return ops.mul(x, 0.0)
    a = 1.0 / math.sqrt((_SELU_LOW * _SELU_LOW * p + 1.0) * (1.0 - p))
    kept = ops.ne(_draw_noise(x, shape, p), 0)
    slope = ops.where(kept, ops.full(shape=(), value=a, dtype=x._array.dtype, device=x.device), 0.0)
    return ops.add(ops.mul(x, slope), ops.add(ops.mul(slope, _SELU_LOW), _SELU_LOW * a * (p - 1.0)))


@function(method=False)
def alpha_dropout(x: Tensor, p: float, train: bool) -> Tensor:
    """Dropout that keeps mean 0 and variance 1: what is dropped becomes selu's lowest value (Klambauer et al. 2017)."""
    return x if _keeps_all(p, train, "alpha_dropout") or x._array.size == 0 else _drop_to_lowest(x, tuple(x._array.shape), p)


@function(method=False)
def feature_alpha_dropout(x: Tensor, p: float, train: bool) -> Tensor:
    """alpha_dropout of whole channels of x (batch, channels, ...)."""
    if _keeps_all(p, train, "feature_alpha_dropout") or x._array.size == 0:
        return x
    return _drop_to_lowest(x, _channel_shape(x, "feature_alpha_dropout"), p)


def _publish_in_place(f: Callable[[Tensor, float, bool], Tensor]) -> None:
    name = f.__name__ + "_"

    def call(x: Tensor, p: float, train: bool) -> Tensor:
        since = next_sequence() if state.enabled else None
        y = f(x, p, train)
        return x if y is x else overwrite(x, y, name, since)

    function(method=False)(rename_function(call, name, f"{f.__name__} written over x; x untouched when not training or p is 0."))


for _function in (dropout, feature_dropout, alpha_dropout, feature_alpha_dropout):
    _publish_in_place(_function)


@function(method=False)
def native_dropout(x: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """(dropout's result, whether each element was kept); all are kept when `train` is False. x is floating."""
    _keeps_all(p, True, "native_dropout")
    if train is False:
        return ops.copy(x), ops.full(shape=tuple(x.shape), value=True, dtype=np.dtype(bool), device=x.device)
    # The mask is asked for as well: it is what of the noise is not 0.
    scaled = _draw_noise(x, tuple(x.shape), p)
    return ops.mul(x, scaled), ops.ne(scaled, 0)
