"""Strides of results: the one rule that every device and every corner asks, and the memory formats that users name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tritensor.ground.call_site import qualified_name
from tritensor.ground.errors import ShapeError
from tritensor.ground.naming.type_names import named, own_constant

Steps = tuple[int, ...]  # strides in elements
# What an op record says of its result: laid out as the inputs are (the first of them first, or the last), in C order, as the first input if its
# channels lie last, or as the op says.
ELEMENTWISE, BACKWARDS, CONTIGUOUS, IMAGES, OWN = RULES = ("elementwise", "backwards", "contiguous", "images", "own")


def memory_extent(shape: tuple[int, ...], strides: Steps) -> tuple[int, int]:
    """How far the first and the last element in memory lie from element 0 (of an array that has elements), in the strides' unit."""
    low = sum([s * (n - 1) for n, s in zip(shape, strides, strict=True) if s < 0])
    return low, sum([s * (n - 1) for n, s in zip(shape, strides, strict=True) if s > 0])


@named("torch", "memory_format")
class MemoryFormat:
    """An order of a tensor's dimensions in memory: `contiguous_format`, `preserve_format`, `channels_last`, `channels_last_3d`."""

    __slots__ = ("name", "order")

    def __init__(self, name: str, order: tuple[int, ...] | None = None) -> None:
        self.name = name
        self.order = order  # dimensions from the outermost to the innermost, for formats of a fixed number of dimensions

    def __repr__(self) -> str:
        return qualified_name(self.name)

    def __reduce__(self) -> Any:
        return own_constant(MemoryFormat, self.name)


contiguous_format = MemoryFormat("contiguous_format")
preserve_format = MemoryFormat("preserve_format")
channels_last = MemoryFormat("channels_last", (0, 2, 3, 1))
channels_last_3d = MemoryFormat("channels_last_3d", (0, 2, 3, 4, 1))
FORMATS = (contiguous_format, preserve_format, channels_last, channels_last_3d)


def contiguous_strides(shape: Sequence[int]) -> Steps:
    """Strides in elements of a C-ordered array of `shape`."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def ordered_strides(shape: Sequence[int], order: Sequence[int]) -> Steps:
    """Strides of a dense array whose dimensions lie in `order`, the outermost first."""
    strides = [0] * len(shape)
    for d, step in zip(order, contiguous_strides([shape[d] for d in order]), strict=True):
        strides[d] = step
    return tuple(strides)


def is_ordered(shape: Sequence[int], strides: Sequence[int], order: Sequence[int]) -> bool:
    """Whether the elements lie densely with the dimensions in `order`; dimensions of size 1 may have any stride."""
    step = 1
    for d in reversed(order):
        if shape[d] != 1:
            if strides[d] != step:
                return False
            step *= shape[d]
    return True


def is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements fill their memory without gaps or overlaps, in any order of dimensions."""
    return is_ordered(shape, strides, sorted(range(len(shape)), key=lambda d: (-strides[d], shape[d] == 1)))


def lie_alike(shape: Sequence[int], strides: Sequence[int], others: Sequence[int]) -> bool:
    """Whether arrays of one shape with these strides lie alike; dimensions of size 1 may have any stride."""
    return all([n == 1 or a == b for n, a, b in zip(shape, strides, others, strict=True)])


def repeats(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether an array has some element in several places, by a stride of 0."""
    return any([n > 1 and s == 0 for n, s in zip(shape, strides, strict=True)])


def is_in_format(shape: Sequence[int], strides: Sequence[int], wanted: MemoryFormat) -> bool:
    """Whether an array lies in a memory format."""
    if wanted.order is None:
        return 0 in shape or is_ordered(shape, strides, range(len(shape)))
    return len(shape) == len(wanted.order) and (0 in shape or is_ordered(shape, strides, wanted.order))


def is_channels_last(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether an image's (N, C, H, W) or a volume's (N, C, D, H, W) channels lie innermost, then the columns, and so on; gaps may be between.

    An image of one channel and one pixel says neither: no.
    """
    if len(shape) not in (4, 5) or 0 in shape:
        return False
    step = 0
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if strides[d] < step or (d == 0 and step == strides[1]):
            return False
        step = strides[d] * shape[d]
    return strides[1] > 0


def elementwise_strides(shape: Steps, operands: tuple[tuple[Steps, Steps], ...]) -> Steps:
    """Strides of an elementwise result of `shape` from its operands' (shape, strides).

    Operands that are dense in one way hand it on. Otherwise the dimensions are put in order by stride: the first operand that steps
    through two dimensions differently says which lies outside, and C order stands where none does.
    """
    return _elementwise_strides(shape, operands)


@lru_cache(maxsize=4096)
def _elementwise_strides(shape: Steps, operands: tuple[tuple[Steps, Steps], ...]) -> Steps:
    if 0 in shape or not operands or any(len(own) > len(shape) for own, _ in operands):  # a loss that is reduced
        return contiguous_strides(shape)
    if all(own == shape for own, _ in operands):
        if all(is_in_format(shape, steps, contiguous_format) for _, steps in operands):
            return contiguous_strides(shape)
        for wanted in (channels_last, channels_last_3d):
            if wanted.order and all(is_in_format(shape, steps, wanted) for _, steps in operands):
                return ordered_strides(shape, wanted.order)
        first = operands[0][1]
        # a transposed x + y keeps its layout, so that the next op reads it in order of memory, too
        if all(steps == first for _, steps in operands) and is_dense(shape, first):
            return first
    return ordered_strides(shape, _sort_dims(shape, [_broadcast_strides(shape, own, steps) for own, steps in operands]))


def _broadcast_strides(shape: Steps, own: Steps, strides: Steps) -> Steps:
    """An operand's strides over the broadcast shape, 0 where it repeats."""
    # numpy's broadcasting aligns shapes at the last dimension
    lead = len(shape) - len(own)
    return (0,) * lead + tuple([0 if n == 1 and m != 1 else abs(s) for n, m, s in zip(own, shape[lead:], strides, strict=True)])


def _sort_dims(shape: Steps, strides: Sequence[Steps]) -> list[int]:
    """Dimensions from the outermost to the innermost: an insertion sort, since a pair of them may be undecided."""
    inner = list(reversed(range(len(shape))))  # the innermost first
    for start in range(1, len(inner)):
        at = start
        for below in range(start - 1, -1, -1):
            said = _compare_dims(shape, strides, inner[below], inner[at])
            if said > 0:
                inner[below], inner[at] = inner[at], inner[below]
                at = below
            elif said < 0:
                break
    return inner[::-1]


def memory_order(shape: Steps, strides: Steps) -> tuple[int, ...]:
    """Dimensions from the outermost to the innermost as their strides say, in C order where they do not."""
    return tuple(_sort_dims(shape, [strides]))


def _compare_dims(shape: Steps, strides: Sequence[Steps], a: int, b: int) -> int:
    """Negative where dimension a lies inside b, positive where b lies inside a, 0 where no operand says."""
    for steps in strides:
        # a stride of 0 says nothing of where a dimension lies
        if steps[a] and steps[b]:
            if steps[a] != steps[b]:
                return -1 if steps[a] < steps[b] else 1
            if shape[a] > shape[b]:
                return 1
    return 0


def image_strides(shape: Steps, operands: tuple[tuple[Steps, Steps], ...]) -> Steps:
    """Strides of an image (volume) made of others: channels last where one of theirs is, else C order."""
    for own, strides in operands:
        if len(own) == len(shape) and is_channels_last(own, strides):
            return ordered_strides(shape, (0, *range(2, len(shape)), 1))
    return contiguous_strides(shape)


@lru_cache(maxsize=4096)
def strides_in_format(shape: Steps, strides: Steps, wanted: MemoryFormat) -> Steps:
    """Strides of a copy in a memory format. Raises ShapeError for a format of another number of dimensions."""
    if wanted is preserve_format:
        return elementwise_strides(shape, ((shape, strides),))
    if wanted.order is None:
        return contiguous_strides(shape)
    if len(shape) != len(wanted.order):
        raise ShapeError(f"memory_format: {wanted} orders {len(wanted.order)} dimensions, the tensor {tuple(shape)} has {len(shape)}")
    return ordered_strides(shape, wanted.order)


def dims_by_stride(strides: Sequence[int]) -> tuple[int, ...]:
    """Dimensions from the outermost in memory to the innermost, those of equal strides as they come."""
    return tuple(sorted(range(len(strides)), key=strides.__getitem__, reverse=True))


def as_format(name: str, given: Any, default: MemoryFormat) -> MemoryFormat:
    """The memory format that an argument means, None the default. Raises TypeError for anything else."""
    if given is None:
        return default
    if not isinstance(given, MemoryFormat):
        raise TypeError(f"{name}: memory_format is {given!r}; give contiguous_format, preserve_format, channels_last or channels_last_3d")
    return given
