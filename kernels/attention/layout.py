"""Shapes of attention: what is refused of them, the strides of its result and of its gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.ground.strides import contiguous_strides, elementwise_strides, ordered_strides
from tritensor.ops.array import element_strides
from tritensor.ops.table import Work, broadcast, refuse_kind, refuse_mixed


def describe(name: str, q: Any, k: Any, v: Any) -> str:
    """How messages begin; refuses operands of fewer than two dimensions."""
    given = f"{name}: q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if min(len(x.shape) for x in (q, k, v)) < 2:
        raise ShapeError(f"{given}: each must have at least 2 dimensions, (..., length, size)")
    return given


def refuse_sizes(given: str, q: Any, k: Any, v: Any) -> None:
    """Raise ShapeError where queries do not meet keys, or keys values."""
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"{given}: q's last size {q.shape[-1]} is not k's {k.shape[-1]}; project them to one size")
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"{given}: k has {k.shape[-2]} rows and v {v.shape[-2]}; each key needs a value")


def refuse_types(name: str, q: Any, k: Any, v: Any) -> None:
    """Raise DTypeError for other types than one of floats."""
    refuse_mixed(name, ("q", q), ("k", k), ("v", v))
    refuse_kind(name, q.dtype, ("float",))


def refuse_mask(name: str, given: str, q: Any, k: Any, mask: Any) -> None:
    """Raise for a mask that is not of the scores (..., L, S), or of another type."""
    if mask is None:
        return
    scores = (*q.shape[:-1], k.shape[-2])
    if mask.dtype != np.bool_ and mask.dtype != q.dtype:
        raise DTypeError(f"{given}: the mask is {mask.dtype}; give one of bool, or of q's type {q.dtype}")
    if broadcast(name, scores, tuple(mask.shape), labels=("the scores", "the mask")) != scores:
        raise ShapeError(f"{given}: the mask {tuple(mask.shape)} is larger than the scores {scores}; give one that broadcasts to them")


def mask_dims(scores: Any, mask: Any) -> tuple[int, ...]:
    """The dims of scores, or of their gradient, along which a mask was broadcast."""
    lead = scores.ndim - mask.ndim
    return (*range(lead), *(i + lead for i, n in enumerate(mask.shape) if n == 1))


def work(q: Any, k: Any, v: Any, mask: Any = None, *, causal: bool = False, **_: Any) -> Work:
    """Two products; half of them where later keys are not seen. Every array moves once."""
    rows = math.prod(q.shape[:-1])
    flops = 2 * rows * k.shape[-2] * (q.shape[-1] + v.shape[-1]) // (2 if causal else 1)
    return Work(flops, (q.size + k.size + v.size + rows * v.shape[-1]) * q.dtype.itemsize)


def result_strides(q: Any, k: Any, v: Any, mask: Any, p: float = 0.0) -> tuple[int, ...]:
    """Strides in elements of the result, dense: its dimensions in the order of the queries', so that heads that were split off a projection's
    features go back without a copy, where PyTorch's flash attention on the CPU takes the call; else C order.

    That is, for (batch, heads, length, features) of as many features in all three, which lie side by side, without dropout.
    """
    shape = (*q.shape[:-1], v.shape[-1])
    # heads split off a projection lie with features innermost and heads behind queries: PyTorch keeps that order
    flash = (
        len(shape) == 4
        and not p
        and q.shape[-1] == k.shape[-1] == v.shape[-1]
        and (mask is None or len(mask.shape) in (2, 4))
        and all(0 not in x.shape and (element_strides(x)[-1] == 1 or x.shape[-1] == 1) for x in (q, k, v))
    )
    return elementwise_strides(shape, ((shape, element_strides(q)),)) if flash else contiguous_strides(shape)


def strides_like(x: Any, size: int) -> tuple[int, ...]:
    """Strides in elements of a gradient of x's leading sizes and `size` features, dense, its dimensions in the order of x's."""
    shape, steps = tuple(x.shape[:-1]), element_strides(x)[:-1]
    order = range(len(shape))
    if all(s > 0 for s, n in zip(steps, shape, strict=True) if n > 1):
        order = sorted(order, key=lambda d: (-steps[d], d))  # type: ignore[assignment]
    return ordered_strides((*shape, size), (*order, len(shape)))
