"""Sampling with 16-bit parameters: in float32, rounded once, and off those ends of a support that have no probability."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.distributions.distribution import Distribution
from tritensor.distributions.parameters import float_limits
from tritensor.distributions.transforms.base import Transform
from tritensor.tensor.core import Tensor


def draw_in_float32(draw: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A decorator of `sample` and `rsample`."""

    @functools.wraps(draw)
    def call(self: Any, sample_shape: Sequence[int] = (), *args: Any, **kwargs: Any) -> Tensor:
        kinds = set(_floating_types(self))
        # float32 and float64 need no detour, and parameters of mixed types say themselves what they promote to
        if len(kinds) != 1 or (kind := kinds.pop()).itemsize != 2:
            return self._move_inside_support(draw(self, sample_shape, *args, **kwargs))  # type: ignore[no-any-return]
        value = draw(_to_float32(self), sample_shape, *args, **kwargs)
        if value.is_floating_point():
            least = float_limits(kind).least  # float16's last number is not far
            value = value.clamp(min=least, max=-least).to(kind)
        return self._move_inside_support(value)  # type: ignore[no-any-return]

    return call


def _floating_types(value: Any) -> Iterator[Any]:
    if isinstance(value, Tensor):
        if value.dtype.is_floating_point:
            yield value.dtype
    elif isinstance(value, list | tuple):
        for v in value:
            yield from _floating_types(v)
    elif isinstance(value, Distribution | Transform):
        for name, v in vars(value).items():
            # a cached pair is no parameter: its type says nothing of the distribution's
            if name != "_cached_x_y":
                yield from _floating_types(v)


def _to_float32(value: Any) -> Any:
    """The same distribution of float32 parameters, which know where they came from."""
    if isinstance(value, Tensor):
        return value.float() if value.is_floating_point() else value
    if isinstance(value, list):
        return [_to_float32(v) for v in value]
    if not isinstance(value, Distribution | Transform):
        return None if isinstance(value, weakref.ref) else value  # a transform's inverse is made anew
    new = object.__new__(type(value))
    vars(new).update({k: (None, None) if k == "_cached_x_y" else _to_float32(v) for k, v in vars(value).items()})
    return new
