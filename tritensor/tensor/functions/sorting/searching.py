"""Places in sorted rows, positions of what is not zero, positions in a shape."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes, shortcuts
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.ops.array import from_host
from tritensor.ops.lazy_array import settle
from tritensor.ops.table import ops
from tritensor.tensor.casting import to_dtype
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.parsing.nonzero_count import nonzero_columns, nonzero_rows
from tritensor.tensor.public_api.arguments import Operand
from tritensor.tensor.public_api.publish import function

INT64 = np.dtype(np.int64)


# In sorted rows
def _promote_search(name: str, rows: Tensor, values: Any) -> tuple[Tensor, Tensor]:
    """Sorted rows and what is sought in the type in which they meet; a number as a tensor without dimensions."""
    if not isinstance(values, Tensor | bool | int | float | complex | np.generic):
        raise TypeError(f"{name}: input is {'None' if values is None else f'a {type(values).__name__}'}; give a tensor or a number")
    common = dtypes.result_type([rows._array, values._array if isinstance(values, Tensor) else values], name)
    if not isinstance(values, Tensor):
        values = ops.full(shape=(), value=values, dtype=common, device=rows.device)
    return to_dtype(rows.detach(), common), to_dtype(values.detach(), common)


@function(method=False, out=True)
def searchsorted(
    sorted_sequence: Tensor, input: Operand, *, out_int32: bool = False, right: bool = False, side: str | None = None, sorter: Tensor | None = None
) -> Tensor:  # fmt: skip
    """Where `input` would be put in ascending rows so that they stay so: before equal elements, with right (side="right") behind them.

    sorted_sequence: a vector, or rows of input's shape but for the last dim. sorter: int64 of its shape, the order of unsorted rows.

    Raises:
        ShapeError: shapes that do not fit. DTypeError: sorter is not int64. ValueError: another side, or one that contradicts `right`. IndexError: sorter
        points outside (on the CPU, where looking costs no wait).
    """
    if side not in (None, "left", "right"):
        raise ArgumentError(f"searchsorted: side is {side!r}; it is 'left' or 'right'")
    if side == "left" and right:
        raise ArgumentError("searchsorted: side='left' and right=True contradict each other; give one of them")
    rows, values = _promote_search("searchsorted", sorted_sequence, input)
    shape, sought = tuple(rows._array.shape), tuple(values._array.shape)
    if not shape or (not sought and len(shape) != 1):
        raise ShapeError(f"searchsorted: sorted_sequence {shape} for input {sought}; a single number is sought in a vector")
    if len(shape) > 1 and shape[:-1] != sought[:-1]:
        raise ShapeError(
            f"searchsorted: sorted_sequence {shape} and input {sought} differ before the last dim; give a vector, or rows for rows"
        )
    if sorter is not None:
        _check_sorter(shape, sorter)
    given = (rows, values) if sorter is None else (rows, values, sorter)
    return ops.searchsorted(*given, right=right or side == "right", out_int32=bool(out_int32))


def _check_sorter(shape: tuple[int, ...], sorter: Tensor) -> None:
    if tuple(sorter._array.shape) != shape:
        raise ShapeError(f"searchsorted: sorter {tuple(sorter._array.shape)} for sorted_sequence {shape}; both have the same shape")
    if sorter._array.dtype != INT64:
        raise DTypeError(f"searchsorted: sorter is {sorter.dtype.name}; it takes int64, such as argsort gives")
    # On a GPU the look would wait.
    places = settle(sorter._array)
    shortcuts.note_values_read()
    if isinstance(places, np.ndarray) and places.size and not 0 <= int(places.min()) <= int(places.max()) < shape[-1]:
        raise ArgumentError(f"searchsorted: sorter points outside 0 to {shape[-1] - 1}")


@function(method=False, out=True)
def bucketize(input: Operand, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The number of the bucket between ascending boundaries (a vector) that each element falls into; with `right` a boundary belongs to the upper one."""
    if len(boundaries._array.shape) != 1:
        raise ShapeError(f"bucketize: boundaries {tuple(boundaries._array.shape)} are not a vector; give one dimension")
    rows, values = _promote_search("bucketize", boundaries, input)
    return ops.searchsorted(rows, values, right=bool(right), out_int32=bool(out_int32))


# Positions
@function(out=True)
def nonzero(x: Tensor, *, as_tuple: bool = False) -> Any:
    """Positions of the elements that are not 0: (count, ndim), or a vector per dimension. Waits for the device."""
    x = x.detach()
    if not as_tuple:
        return nonzero_rows(x)
    return nonzero_columns(x if x._array.shape else ops.reshape(x, shape=(1,)))


@function
def argwhere(x: Tensor) -> Tensor:
    """Positions of the elements that are not 0: (count, ndim)."""
    return nonzero(x)


@function(out=True)
def nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` positions of elements that are not 0, (size, ndim); rows that are left over hold fill_value. Waits for nothing."""
    return ops.nonzero_static(x.detach(), size=int(size), fill_value=int(fill_value))


@function(method=False)
def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Flat positions as coordinates in a C-ordered tensor of `shape`, a tensor for each dimension (int64); positions beyond it wrap around.

    Raises:
        TypeError: indices or shape are not integers. ValueError: a negative size.
    """
    if dtypes.of(indices._array.dtype).kind not in ("int", "uint"):
        raise DTypeError(f"unravel_index: indices is {indices.dtype.name}; it takes integer types; cast it with .to(int64)")
    if isinstance(shape, Tensor):
        shape = shape.tolist()
    sizes = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    for n in sizes:
        if isinstance(n, bool) or not isinstance(n, int | np.integer):
            raise TypeError(f"unravel_index: shape holds {n!r}; it takes integers")
        if n < 0:
            raise ArgumentError(f"unravel_index: shape {tuple(sizes)} has a negative size")
    if not sizes:
        return ()
    behind = [math.prod(int(m) for m in sizes[k + 1 :]) for k in range(len(sizes))]
    flat = ops.reshape(to_dtype(indices, INT64), shape=(*indices._array.shape, 1))
    steps, ends = (new_tensor(from_host(np.array(a, np.int64), indices.device)) for a in (behind, sizes))
    found = ops.remainder(ops.floor_divide(flat, steps), ends)  # (..., dims)
    lead = (slice(None),) * len(indices._array.shape)
    return tuple([ops.index_view(found, index=(*lead, k)) for k in range(len(sizes))])
