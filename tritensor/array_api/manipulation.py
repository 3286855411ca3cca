"""Shapes by the array API standard: joining, moving axes, repeating."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.array_api.operands import Axes, functions, normal_axes, promote_operands, require_array
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.tensor.core import Tensor


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Arrays one after another along an axis; flattened for None."""
    given = promote_operands("concat", *arrays)
    return functions.cat([x.reshape(-1) for x in given], 0) if axis is None else functions.cat(given, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Arrays of one shape along a new axis."""
    return functions.stack(promote_operands("stack", *arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    return tuple(functions.unbind(x, axis))


def expand_dims(x: Tensor, /, axis: int) -> Tensor:
    """x with an axis of size 1 at a place. Raises IndexError for one beyond x's axes."""
    rank = len(require_array("expand_dims", x)._array.shape)
    # PyTorch's IndexError names dim; the standard's users know it as axis.
    if not -rank - 1 <= axis <= rank:
        raise IndexError(f"expand_dims: axis {axis} is out of range for shape {tuple(x._array.shape)}")
    return functions.unsqueeze(x, axis)


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """x without axes of size 1. Raises ValueError for an axis of another size."""
    dims = normal_axes("squeeze", require_array("squeeze", x), axis)
    # PyTorch leaves an axis of another size; the standard refuses it.
    for d in dims:
        if x._array.shape[d] != 1:
            raise ShapeError(f"squeeze: axis {d} of shape {tuple(x._array.shape)} has size {x._array.shape[d]}, not 1")
    return functions.squeeze(x, dims) if dims else x


def flip(x: Tensor, /, *, axis: Axes = None) -> Tensor:
    """x backwards along axes, all of them for None."""
    return functions.flip(x, normal_axes("flip", require_array("flip", x), axis))


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """x with axes at other places; the rest keep their order."""
    return functions.movedim(require_array("moveaxis", x), source, destination)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """x with its axes in another order."""
    return functions.permute(require_array("permute_dims", x), tuple(axes))


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element several times along an axis; of x flattened for None."""
    if axis is None:
        x, axis = require_array("repeat", x).reshape(-1), 0
    (d,) = normal_axes("repeat", x, axis)
    return functions.repeat_interleave(x, repeats, d)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """x in another shape, a view where it can be. Raises ValueError where copy=False and it cannot."""
    found = functions.reshape(require_array("reshape", x), tuple(shape))
    # A copy has no base: that tells whether the strides allowed a view.
    viewed = found is x or found._base is not None
    if copy is False and not viewed and x._array.size:
        raise ArgumentError(
            f"reshape: shape {tuple(x._array.shape)} with these strides becomes {tuple(shape)} by a copy only; leave copy=False out"
        )
    return found.clone() if copy and viewed else found


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axes = None) -> Tensor:
    """Elements moved along axes, round the end; along x flattened for None."""
    if axis is None:
        # Several shifts of the flattened array add up to one.
        return functions.roll(require_array("roll", x), shift if isinstance(shift, int) else sum(shift))
    axes = axis if isinstance(axis, tuple) else (axis,)
    shifts = shift if isinstance(shift, tuple) else (shift,) * len(axes)
    # One axis may be rolled by several shifts: they add up.
    if len(axes) == 1:
        axes *= len(shifts)
    if len(axes) != len(shifts):
        raise ArgumentError(f"roll: {len(shifts)} shifts for {len(axes)} axes; give one each")
    steps: dict[int, int] = {}
    for s, a in zip(shifts, axes, strict=True):
        (d,) = normal_axes("roll", require_array("roll", x), a)
        steps[d] = steps.get(d, 0) + s
    return functions.roll(x, tuple(steps.values()), tuple(steps)) if steps else functions.clone(x)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """x as a tile, laid so many times along each axis."""
    return functions.tile(require_array("tile", x), tuple(repetitions))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Matrices with rows for columns. Raises ValueError for fewer than two axes."""
    # PyTorch's mT lets an array without axes pass; the standard does not.
    if len(require_array("matrix_transpose", x)._array.shape) < 2:
        raise ShapeError(f"matrix_transpose: x has shape {tuple(x._array.shape)}; a matrix has two axes or more")
    return functions.transpose(x, -2, -1)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition holds, else x2."""
    a, b = promote_operands("where", x1, x2)
    return functions.where(condition, a, b)


__all__ = [
    "concat", "expand_dims", "flip", "matrix_transpose", "moveaxis", "permute_dims", "repeat", "reshape", "roll", "squeeze", "stack", "tile",
    "unstack", "where",
]  # fmt: skip
