"""Strides of attention's result and of its gradients."""

from __future__ import annotations

from typing import Any

from tritensor.ground.strides import contiguous_strides, elementwise, ordered_strides
from tritensor.ops.array import element_strides


def result_strides(q: Any, k: Any, v: Any, mask: Any, p: float = 0.0) -> tuple[int, ...]:
    """Strides in elements of the result, dense: its dimensions in the order of the queries', so that heads that were split off a projection's
    features go back without a copy, where PyTorch's flash attention on the CPU takes the call; else C order.

    That is, for (batch, heads, length, features) of as many features in all three, which lie side by side, without dropout.
    """
    shape = (*q.shape[:-1], v.shape[-1])
    taken = (
        len(shape) == 4
        and not p
        and q.shape[-1] == k.shape[-1] == v.shape[-1]
        and (mask is None or len(mask.shape) in (2, 4))
        and all(0 not in x.shape and (element_strides(x)[-1] == 1 or x.shape[-1] == 1) for x in (q, k, v))
    )
    return elementwise(shape, ((shape, element_strides(q)),)) if taken else contiguous_strides(shape)


def strides_like(x: Any, size: int) -> tuple[int, ...]:
    """Strides in elements of a gradient of x's leading sizes and `size` features, dense, its dimensions in the order of x's."""
    shape, steps = tuple(x.shape[:-1]), element_strides(x)[:-1]
    order = range(len(shape))
    if all(s > 0 for s, n in zip(steps, shape, strict=True) if n > 1):
        order = sorted(order, key=lambda d: (-steps[d], d))  # type: ignore[assignment]
    return ordered_strides((*shape, size), (*order, len(shape)))
