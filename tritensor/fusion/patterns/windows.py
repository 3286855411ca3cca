"""Windows that patterns make of a graph's arguments: transposed, expanded and in another shape, without a copy."""

from __future__ import annotations

import math
from typing import Any

from tritensor.fusion.graph import Value, Window
from tritensor.ground.strides import contiguous_strides, lie_alike
from tritensor.ops.strided_array import reshape_strides

Shape = tuple[int, ...]


def window(x: Any) -> Window:
    """A Value or Window as a Window."""
    return x if type(x) is Window else Window(x, x.shape, x.dtype, x.strides, 0)


def argument(x: Window) -> Value | Window:
    """A window as it stands in a call: the value itself where it shows all of it as it lies."""
    v = x.value
    return v if x.first == 0 and x.shape == v.shape and x.dtype == v.dtype and x.strides == v.strides else x


def transposed(x: Any) -> Window:
    """The last two dims swapped."""
    w = window(x)
    (*lead, a, b), (*steps, s, t) = w.shape, w.strides
    return w._replace(shape=(*lead, b, a), strides=(*steps, t, s))


def expanded(x: Any, shape: Shape) -> Window:
    """Dims of size 1, and missing ones in front, repeated up to a shape that it broadcasts to."""
    w = window(x)
    missing = len(shape) - len(w.shape)
    steps = [0 if n == 1 and m != 1 else s for n, m, s in zip(w.shape, shape[missing:], w.strides, strict=True)]
    return w._replace(shape=shape, strides=(*[0] * missing, *steps))


def reshaped(x: Any, shape: Shape) -> Window | None:
    """It in another shape; None where only a copy is, or an array of another size."""
    w = window(x)
    if w.shape == shape:
        return w
    steps = reshape_strides(w.shape, w.strides, shape) if math.prod(w.shape) == math.prod(shape) else None
    return None if steps is None else w._replace(shape=shape, strides=steps)


def value_of(x: Any) -> Value | None:
    """The value that an argument is, all of it in C order, in whatever shape; None for another view of it, and for what is no array."""
    if type(x) is Window:
        v = x.value
        in_order = x.first == 0 and x.dtype == v.dtype and same_order(x.shape, x.strides) and same_order(v.shape, v.strides)
        return v if in_order and math.prod(x.shape) == math.prod(v.shape) else None
    return x if type(x) is Value else None


def same_order(shape: Shape, strides: Shape, like: Shape | None = None) -> bool:
    """Whether an array of these strides lies as one of others does, of C order unless given; dims of size 1 do not count."""
    return lie_alike(shape, strides, contiguous_strides(shape) if like is None else like)
