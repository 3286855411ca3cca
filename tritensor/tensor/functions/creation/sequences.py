"""Numbers in order: arange, range, linspace, logspace, powers, indices of triangles."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.call_site import warn
from tritensor.ground.device import as_device
from tritensor.ground.device import device as Device
from tritensor.ground.errors import ArgumentError, NumberRangeError, ShapeError
from tritensor.ops.array import empty, from_host
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.creation.constructors import numpy_type
from tritensor.tensor.functions.shaping.reshaping import unsqueeze
from tritensor.tensor.public_api.publish import function


def _to_number(name: str, what: str, value: Any) -> Any:
    """A Python number, or that of a tensor without dimensions."""
    if isinstance(value, Tensor) and value._array.shape:
        raise ShapeError(f"{name}: {what} has shape {tuple(value._array.shape)}; give a number or a 0-d tensor")
    found = value.item() if hasattr(value, "item") else value
    if not isinstance(found, bool | int | float | complex):
        raise TypeError(f"{name}: {what} is a {type(value).__name__}; give a number or a 0-d tensor")
    return found


@function(method=False, maker=True, out=True)
def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """start, start + step, ... before end; `arange(n)` counts from 0. int64 for integers, else the default floating type.

    >>> tt.arange(5)
    tensor([0, 1, 2, 3, 4])
    >>> tt.arange(1, 2, 0.25)
    tensor([1.0000, 1.2500, 1.5000, 1.7500])
    """
    if end is None:
        start, end = 0, start
    low, high, by = (v.item() if hasattr(v, "item") else v for v in (start, end, step))
    if isinstance(low, str) or isinstance(high, str) or isinstance(by, str):
        raise TypeError(f"arange: start {low!r}, end {high!r}, step {by!r}: a str is no number; give numbers")
    if (high - low) * by < 0:
        raise ArgumentError(f"arange: steps of {by} do not lead from {low} to {high}; give the step the other sign, or exchange the bounds")
    inexact = any(isinstance(v, float) for v in (low, high, by))
    kind = numpy_type(dtype if dtype is not None else None if inexact else int)
    # PyTorch truncates the bounds for integer types, and not the results.
    if inexact and kind.kind in "iu":
        low, high, by = _to_integer_bounds(low, high, by, kind)
    if kind.kind in "iu" and low != high:
        dtypes.as_element(kind, low, "arange")  # refuses what does not fit
    # Computed in floats before anything is allocated; NaN is left to the op.
    if not abs(high - low) < abs(by) * (1 << 60) and not math.isnan(high - low) and by:
        raise NumberRangeError(
            f"arange: from {low} to {high} by {by} are more numbers than memory can address; give closer bounds or a larger step"
        )
    return ops.arange(start=low, end=high, step=by, dtype=kind, device=as_device(device))


def _to_integer_bounds(low: Any, high: Any, by: Any, kind: np.dtype) -> tuple[int, int, int]:
    """Bounds with fractions for a type of integers: truncated, where the type is smaller than int64 after they were counted, as in PyTorch."""
    if not all(map(math.isfinite, (low, high, by))):
        raise ArgumentError(f"arange: from {low} to {high} by {by}: all three must be finite")
    first, step = int(low), int(by)
    if step == 0:
        raise ArgumentError(f"arange: step {by} is 0 in {dtypes.of(kind).name}; give 1 or more, or a floating dtype")
    return first, int(high) if kind.itemsize == 8 else first + math.ceil((high - low) / by) * step, step


@function(method=False, maker=True, out=True)
def range(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Tensor:
    """start, start + step, ... up to end, which is included; of the default floating type. Deprecated: arange is what Python's range is."""
    warn("range: it includes its end, and will go as in PyTorch; use arange")
    if end is None:
        start, end = 0, start
    low, high, by = (_to_number("range", what, v) for what, v in (("start", start), ("end", end), ("step", step)))
    if by == 0 or (high - low) * by < 0:
        raise ArgumentError(f"range: steps of {by} do not lead from {low} to {high}; give the step the other sign, or exchange the bounds")
    if not all(map(math.isfinite, (low, high, by))):
        raise ArgumentError(f"range: from {low} to {high} by {by}: all three must be finite")
    # The end is included: half a step more than the last number, so that rounding loses none.
    count = math.floor((high - low) / by) + 1
    return ops.arange(start=low, end=low + (count - 0.5) * by, step=by, dtype=numpy_type(dtype), device=as_device(device))


def _parse_ends(name: str, start: Any, end: Any, kind: np.dtype, on: Device) -> tuple[Any, Any]:
    """Both ends as numbers of a type: whole for integers, complex for complex ones. Of tensors without values, for a result without, 0."""
    if on.type == "meta":
        start, end = [0 if isinstance(v, Tensor) and v.is_meta and not v._array.shape else v for v in (start, end)]
    made = {"int": int, "uint": int, "bool": bool, "complex": complex}.get(dtypes.of(kind).kind, float)
    first, last = _to_number(name, "start", start), _to_number(name, "end", end)
    if isinstance(first + last, complex) and made is not complex:
        raise ArgumentError(f"{name}: an end is complex, {dtypes.of(kind).name} is not; give dtype=complex64")
    return made(first), made(last)


def _spacing_type(start: Any, end: Any, dtype: Any) -> np.dtype:
    """The type asked for; else the default floating type, or the complex one where an end is complex."""
    inexact = any(isinstance(v, complex) or (isinstance(v, Tensor) and v.is_complex()) for v in (start, end))
    return dtypes.default_complex().numpy if dtype is None and inexact else numpy_type(dtype)


def _parse_steps(name: str, steps: Any) -> int:
    """How many numbers, an integer of 0 or more."""
    if isinstance(steps, float | bool) or not hasattr(steps, "__index__"):
        raise TypeError(f"{name}: steps is a {type(steps).__name__}; give an int")
    n = int(steps.__index__())
    if n < 0:
        raise ShapeError(f"{name}: steps {n} is negative; give 0 or more")
    return n


@function(method=False, maker=True, out=True)
def linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None) -> Tensor:
    """`steps` numbers from start to end, both included; numbers or 0-d tensors, which a type of integers truncates first.

    >>> tt.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    kind, on = _spacing_type(start, end, dtype), as_device(device)
    first, last = _parse_ends("linspace", start, end, kind, on)
    if kind.kind in "iu":
        dtypes.as_element(kind, first, "linspace"), dtypes.as_element(kind, last, "linspace")
    real = not isinstance(first, complex)
    if real:
        first, last = float(first), float(last)
    return ops.linspace(start=first, end=last, steps=_parse_steps("linspace", steps), dtype=kind, device=on)


_CHUNK = 1024  # powers of one run are products of one of its two factors


def _compute_powers(base: float, first: Any, last: Any, steps: int) -> np.ndarray:
    """base ** (first + i * step). Long ones as products, base ** (first + k * run * step) times base ** (j * step)."""
    step = (last - first) / (steps - 1) if steps > 1 else 0.0
    whole = abs(math.log(base)) * max(abs(first), abs(last)) < 600 if base > 0 and not isinstance(first, complex) else False
    # Products lose digits where powers overflow or are complex; few powers are cheaper one by one.
    if steps < 4 * _CHUNK or not whole:
        exponents = np.linspace(first, last, steps)
        with np.errstate(all="ignore"):
            return np.power(base, exponents)
    coarse = np.power(base, first + np.arange(-(-steps // _CHUNK)) * (step * _CHUNK))
    fine = np.power(base, np.arange(_CHUNK) * step)
    y = (coarse[:, None] * fine).reshape(-1)[:steps]
    # The end is promised exactly, and products round.
    y[-1] = base**last
    return y


@function(method=False, maker=True, out=True)
def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """base ** linspace(start, end, steps), computed on the host; ends as in linspace."""
    kind, on = _spacing_type(start, end, dtype), as_device(device)
    first, last = _parse_ends("logspace", start, end, kind, on)
    n = _parse_steps("logspace", steps)
    if on.type == "meta":
        return new_tensor(empty((n,), kind, on))
    with np.errstate(all="ignore"):
        values = _compute_powers(float(base), first, last, n).astype(kind)
    return new_tensor(from_host(values, on))


@function(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Powers of a vector's elements, a row for each: N of them (as many as elements), the highest first unless `increasing`. int64 of integers.

    Raises ShapeError for what is no vector, ValueError for a negative N.
    """
    if len(x._array.shape) != 1:
        raise ShapeError(f"vander: x has shape {tuple(x._array.shape)}; give a vector")
    n = x._array.size if N is None else int(N)
    if n < 0:
        raise ShapeError(f"vander: N is {n}; it must be 0 or more")
    if x.dtype.kind in ("bool", "int", "uint") and x._array.dtype != np.int64:
        x = ops.cast(x, dtype=np.dtype(np.int64))
    powers = ops.full(shape=(x._array.size, min(n, 1)), value=1, dtype=x._array.dtype, device=x.device)
    factor = unsqueeze(x, 1)  # x to the power of how many columns there are: each round doubles them
    while (count := powers._array.shape[1]) < n:
        more = powers if 2 * count <= n else ops.index_view(powers, index=(slice(None), slice(0, n - count)))
        powers = ops.cat(powers, ops.mul(more, factor), dim=1)
        factor = ops.mul(factor, factor)
    return powers if increasing else ops.flip(powers, dims=(1,))


def _refuse_triangle(name: str, row: int, col: int, dtype: Any) -> None:
    if row < 0 or col < 0:
        raise ShapeError(f"{name}: row {row}, col {col}; they must be 0 or more")
    if dtype is not None and dtypes.as_dtype(dtype).kind not in ("int", "uint"):
        raise ArgumentError(f"{name}: dtype is {dtypes.as_dtype(dtype)}; indices are integers, give int32 or int64")


@function(method=False, maker=True)
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Row and column numbers of the lower triangle: (2, count)."""
    _refuse_triangle("tril_indices", row, col, dtype)
    counts = np.clip(np.arange(offset + 1, offset + 1 + row), 0, col)
    return _list_positions(np.zeros(row, np.int64), counts, dtype, device)


@function(method=False, maker=True)
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Row and column numbers of the upper triangle: (2, count)."""
    _refuse_triangle("triu_indices", row, col, dtype)
    first = np.clip(np.arange(offset, offset + row), 0, col)
    return _list_positions(first, col - first, dtype, device)


def _list_positions(first: np.ndarray, counts: np.ndarray, dtype: Any, device: Any) -> Tensor:
    """Row and column of the places of a matrix: of each row so many from its first column on."""
    kind, total = numpy_type(dtype or int), int(counts.sum())
    found = np.empty((2, total), kind)
    found[0] = np.repeat(np.arange(len(counts), dtype=kind), counts)
    start = np.cumsum(counts) - counts
    np.subtract(np.arange(total, dtype=kind), np.repeat((start - first).astype(kind), counts), out=found[1])
    on = as_device(device)
    return new_tensor(found if on.type == "cpu" else from_host(found, on))
