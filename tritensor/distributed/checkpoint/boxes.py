"""Boxes: the position of a part in the whole tensor, and the intersection of two of them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol, runtime_checkable

from tritensor.autograd.node import version_of
from tritensor.tensor.core import Tensor
from tritensor.tensor.host_values import new_instance
from tritensor.tensor.overriding.protocol import disabled_torch_function


class Box(NamedTuple):
    """A part of a tensor: where it begins along each dimension, and its shape."""

    offset: tuple[int, ...]
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def intersect(self, other: Box) -> Box | None:
        """The elements of both, None where there are none."""
        start = tuple(max(a, b) for a, b in zip(self.offset, other.offset, strict=True))
        ends = [min(a + n, b + m) for a, n, b, m in zip(self.offset, self.shape, other.offset, other.shape, strict=True)]
        # Empty where boxes lie apart: the end stands before the start then.
        shape = tuple(e - s for s, e in zip(start, ends, strict=True))
        return Box(start, shape) if all(n > 0 for n in shape) else None

    def fits_in(self, shape: tuple[int, ...]) -> bool:
        """True where all of it is in a tensor of that shape."""
        return len(self.offset) == len(self.shape) == len(shape) and all(
            a >= 0 and n >= 0 and a + n <= m for a, n, m in zip(self.offset, self.shape, shape, strict=True)
        )

    def slices_in(self, outer: Box) -> tuple[slice, ...]:
        """The slices that take this box out of an array that holds `outer`."""
        return tuple(slice(a - b, a - b + n) for a, n, b in zip(self.offset, self.shape, outer.offset, strict=True))


@runtime_checkable
class Sharded(Protocol):
    """A tensor that is part of another one, of `global_shape`, in which it begins at `global_offset`."""

    global_shape: tuple[int, ...]
    global_offset: tuple[int, ...]


def is_shard(value: Any) -> bool:
    """True for a part of a tensor, which has `global_shape` and `global_offset`."""
    return isinstance(value, Sharded)


def get_box(tensor: Any) -> tuple[tuple[int, ...], Box]:
    """(shape of the whole, where this lies in it) of a part, or of a whole tensor."""
    shape = tuple(int(n) for n in tensor._array.shape)
    if is_shard(tensor):
        return tuple(int(n) for n in tensor.global_shape), Box(tuple(int(n) for n in tensor.global_offset), shape)
    return shape, Box((0,) * len(shape), shape)


class PartTensor(Tensor):
    """A tensor that knows itself part of one of `global_shape`, at `global_offset`."""

    __torch_function__: Any = disabled_torch_function
    global_shape: tuple[int, ...]
    global_offset: tuple[int, ...]


def as_part(p: Any, value: Any) -> Any:
    """A parameter's state: where it is a tensor of the shape of a part that the parameter is, that part of a whole, memory shared."""
    # A step counter has no dimensions and is no part, although a parameter of one element has as many.
    if not isinstance(value, Tensor) or not is_shard(p) or is_shard(value) or not value.ndim or value._array.shape != p._array.shape:
        return value
    # fully_shard's shards know their processes, which full_tensor() needs; shards of other libraries have the two attributes alone.
    return p.as_part(value) if hasattr(p, "as_part") else part_like(p, value)


def part_like(part: Any, tensor: Tensor) -> PartTensor:
    """A tensor, memory shared, as the part that another one is: a parameter's state, which is cut as the parameter is."""
    made = new_instance(PartTensor, tensor._array)
    made._version_counter = version_of(tensor)
    made.global_shape, made.global_offset = tuple(part.global_shape), tuple(part.global_offset)
    return made
