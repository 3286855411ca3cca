"""Shapes by the array API standard: joining, moving axes, repeating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.array_api.operands import Axes, axes_of, met, need_array, ours
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.tensor.core import Tensor


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Arrays one after another along an axis; flattened for None."""
    given = met("concat", *arrays)
    return ours.cat([x.reshape(-1) for x in given], 0) if axis is None else ours.cat(given, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis."""
    return ours.stack(met("stack", *arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    return tuple(ours.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """x with an axis of size 1 at a place. Raises IndexError for one beyond x's axes."""
    rank = len(need_array("expand_dims", x).array.shape)
    if not -rank - 1 <= axis <= rank:
        raise IndexError(f"expand_dims: axis {axis} is out of range for shape {tuple(x.array.shape)}")
    return ours.unsqueeze(x, axis)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """x without axes of size 1. Raises ValueError for an axis of another size."""
    dims = axes_of("squeeze", need_array("squeeze", x), axis)
    for d in dims:
        if x.array.shape[d] != 1:
            raise ShapeError(f"squeeze: axis {d} of shape {tuple(x.array.shape)} has size {x.array.shape[d]}, not 1")
    return ours.squeeze(x, dims) if dims else x


def flip(x: Tensor, /, *, axis: Axes = None) -> Tensor:
    """x backwards along axes, all of them for None."""
    return ours.flip(x, axes_of("flip", need_array("flip", x), axis))


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """x with axes at other places; the rest keep their order."""
    return ours.movedim(need_array("moveaxis", x), source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """x with its axes in another order."""
    return ours.permute(need_array("permute_dims", x), tuple(axes))


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element several times along an axis; of x flattened for None."""
    if axis is None:
        x, axis = need_array("repeat", x).reshape(-1), 0
    (d,) = axes_of("repeat", x, axis)
    return ours.repeat_interleave(x, repeats, d)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """x in another shape, a view where it can be. Raises ValueError where copy=False and it cannot."""
    found = ours.reshape(need_array("reshape", x), tuple(shape))
    viewed = found is x or found._base is not None
    if copy is False and not viewed and x.array.size:
        raise ArgumentError(
            f"reshape: shape {tuple(x.array.shape)} with these strides becomes {tuple(shape)} by a copy only; leave copy=False out"
        )
    return found.clone() if copy and viewed else found


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axes = None) -> Tensor:
    """Elements moved along axes, round the end; along x flattened for None."""
    if axis is None:
        return ours.roll(need_array("roll", x), shift if isinstance(shift, int) else sum(shift))
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    if len(axes) == 1:
        axes *= len(shifts)
    if len(axes) != len(shifts):
        raise ArgumentError(f"roll: {len(shifts)} shifts for {len(axes)} axes; give one each")
    steps: dict[int, int] = {}
    for s, a in zip(shifts, axes, strict=True):
        (d,) = axes_of("roll", need_array("roll", x), a)
        steps[d] = steps.get(d, 0) + s
    return ours.roll(x, tuple(steps.values()), tuple(steps)) if steps else ours.clone(x)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """x as a tile, laid so many times along each axis."""
    return ours.tile(need_array("tile", x), tuple(repetitions))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Matrices with rows for columns. Raises ValueError for fewer than two axes."""
    if len(need_array("matrix_transpose", x).array.shape) < 2:
        raise ShapeError(f"matrix_transpose: x has shape {tuple(x.array.shape)}; a matrix has two axes or more")
    return ours.transpose(x, -2, -1)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition holds, else x2."""
    a, b = met("where", x1, x2)
    return ours.where(condition, a, b)


__all__ = [
    "concat", "expand_dims", "flip", "matrix_transpose", "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile",
    "unstack", "where",
]  # fmt: skip
