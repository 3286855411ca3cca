"""Indices parsed by PyTorch's rules: a view for the basic entries, and the index tensors that are left."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.call_site import warn
from tritensor.ground.errors import ArgumentError, DeviceError
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import from_host, to_host
from tritensor.ops.strided_array import no_values
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.parsing.nonzero_count import nonzero_columns

LEGACY_LENGTH = 32  # a list shorter than this that holds sequences or slices is a tuple


def is_basic(i: Any) -> bool:
    """Whether an entry selects, slices or adds dimensions: an int, a slice, None or Ellipsis."""
    return (
        i is None or i is Ellipsis or type(i) is slice or (type(i) is int) or (isinstance(i, int | np.integer) and not isinstance(i, bool))
    )


def split_index(index: Any) -> tuple[Any, ...]:
    """The entries of an index. A list that holds lists, arrays, tensors, slices, None or ... is read as a tuple of them."""
    if type(index) is tuple:
        return index
    # numpy's old rule, which PyTorch keeps: x[[0, slice(2)]] means x[0, :2].
    if isinstance(index, list | tuple) and len(index) < LEGACY_LENGTH:
        for i in index:
            if i is None or i is Ellipsis or isinstance(i, Tensor | np.ndarray | list | tuple | range | slice):
                return tuple(index)
    return (index,)


def _count_dims_left(x: Tensor, used: int, name: str) -> int:
    """How many dimensions of x the index leaves to an Ellipsis."""
    shape = x._array.shape
    if used > len(shape):
        raise IndexError(f"{name}: {used} indices for a {len(shape)}-dimensional tensor of shape {tuple(shape)}; give at most {len(shape)}")
    return len(shape) - used


def _normal_position(i: Any, n: int, d: int, name: str) -> int:
    """An int entry counted from the front."""
    if not -n <= i < n:
        raise IndexError(f"{name}: index {i} is out of range for dim {d} of size {n}")
    return int(i) + n if i < 0 else int(i)


def basic_index(x: Tensor, index: tuple[Any, ...], name: str) -> tuple[Any, ...]:
    """A basic index in the form that ops.index_view takes: non-negative ints, slices of Python ints, no Ellipsis."""
    used = 0
    for i in index:
        if i is not None and i is not Ellipsis:
            used += 1
    left = _count_dims_left(x, used, name)
    shape = x._array.shape
    out: list[Any] = []
    d = 0
    for i in index:
        if type(i) is slice:
            out.append(i if _is_plain_slice(i) else _to_plain_slice(i))
            d += 1
        elif i is None:
            out.append(None)
        elif i is Ellipsis:  # a second one stands for nothing
            # An Ellipsis is what the other entries leave.
            out.extend([slice(None)] * left)
            d, left = d + left, 0
        else:
            out.append(_normal_position(i, shape[d], d, name))
            d += 1
    return tuple(out)


def _is_plain_slice(s: slice) -> bool:
    return (
        (s.start is None or type(s.start) is int)
        and (s.stop is None or type(s.stop) is int)
        and (s.step is None or (type(s.step) is int and s.step != 0))
    )


def _to_plain_slice(s: slice) -> slice:
    """A slice whose bounds were numpy integers or 0-d tensors."""
    bounds = []
    for v in (s.start, s.stop, s.step):
        # slice() takes anything; numpy would fail later without a word of the index.
        if v is not None and not hasattr(v, "__index__"):
            raise TypeError(f"getitem: a slice's bound is a {type(v).__name__}; give ints, or None")
        bounds.append(None if v is None else v.__index__())
    if bounds[2] == 0:
        raise ArgumentError("getitem: a slice's step cannot be 0; give one that leads somewhere")
    return slice(*bounds)


def _to_numbers(data: Any) -> Any:
    """Nested sequences with their tensors replaced by numbers."""
    if isinstance(data, Tensor):
        return data.tolist()
    return [_to_numbers(d) for d in data] if isinstance(data, list | tuple) else data


def _to_entry(x: Tensor, i: Any, name: str) -> Any:
    """An entry as a basic one, or as a Tensor of integers or booleans on x's device.

    A 0-d integer is an int, whatever holds it; uint8 is a mask, as in PyTorch, which warns of it.
    """
    if is_basic(i):
        return i
    if isinstance(i, Tensor):
        found = i
    # True and False are 0-d masks, though bool is an int.
    elif isinstance(i, bool | np.bool_):
        found = new_tensor(np.asarray(bool(i)))
    elif isinstance(i, list | tuple | range | np.ndarray):
        try:
            values = np.asarray(_to_numbers(i) if isinstance(i, list | tuple) else i)
        except ValueError:
            raise IndexError(f"{name}: the index {str(i)[:40]} is ragged; all lists of one level must have one length") from None
        found = new_tensor(values.astype(np.int64) if values.size == 0 and values.dtype == np.float64 else values)
    else:
        raise IndexError(f"{name}: {type(i).__name__} is no index; use ints, slices, None, ..., boolean or integer tensors")
    kind = dtypes.of(found._array.dtype).kind
    if kind not in ("bool", "int", "uint"):
        raise IndexError(f"{name}: an index of {found.dtype.name}; use integers or booleans, such as .long()")
    if found._array.dtype == np.uint8:
        warn(f"{name}: an index of uint8 is a mask, which is deprecated; use bool, or .long() for positions")
        found, kind = ops.ne(found, 0), "bool"
    # Batched by vmap it stands for several numbers: it stays a tensor.
    if not found._array.shape and kind != "bool" and not (type(found._array) is WrappedArray and found._array.batched):
        if found.is_meta:
            raise no_values(name, "a 0-d index is a position")
        return int(to_host(found._array))
    if found.device != x.device and not (kind == "bool" and x.is_meta and found.is_cpu):  # a mask with values still says how many
        # PyTorch moves CPU indices to the GPU silently, never the other way.
        if found._array.size > 1 and isinstance(i, Tensor) and found.device.type != "cpu":
            raise DeviceError(f"{name}: x is on {x.device}, an index on {found.device}; move it with .to({str(x.device)!r})")
        found = new_tensor(from_host(to_host(found._array), x.device))
    return found


def advanced_index(x: Tensor, entries: tuple[Any, ...], name: str) -> tuple[Tensor, list[Tensor], tuple[int, ...], bool]:
    """x after its basic entries, the index tensors, the dimensions they apply to, and whether their result comes first.

    PyTorch's rule: ints select before anything else; index tensors whose dimensions are neighbours then leave their
    result in place, others put it in front. Without index tensors the view is the result.
    """
    items: list[Any] = []
    for i in entries:
        items.append(_to_entry(x, i, name))
    left = _count_dims_left(x, sum(_count_dims_taken(i) for i in items), name)
    shape = tuple(x._array.shape)
    basic: list[Any] = []  # what index_view is given; indexed dimensions pass through whole
    indices: list[Tensor] = []
    dims: list[int] = []
    d = at = 0  # dimension of x, dimension of the view
    for i in items:
        if i is Ellipsis:
            basic.extend([slice(None)] * left)
            d, at, left = d + left, at + left, 0
        elif i is None:
            basic.append(None)
            at += 1
        elif type(i) is slice:
            basic.append(i if _is_plain_slice(i) else _to_plain_slice(i))
            d, at = d + 1, at + 1
        elif not isinstance(i, Tensor):
            basic.append(_normal_position(i, shape[d], d, name))
            d += 1
        elif dtypes.of(i._array.dtype).kind == "bool":
            new, count = _mask_to_indices(x, i, shape, d, name)
            basic.extend([slice(None)] * count if count else [None])  # True and False stand for a new dimension
            indices.extend(new)
            dims.extend(range(at, at + max(count, 1)))
            d, at = d + count, at + max(count, 1)
        else:
            basic.append(slice(None))
            indices.append(i)
            dims.append(at)
            d, at = d + 1, at + 1
    # The view node would change nothing: x[i, j] is the usual case.
    trivial = bool(indices) and all(type(b) is slice and b == slice(None) for b in basic)
    view = x if trivial else ops.index_view(x, index=tuple(basic))
    return view, indices, tuple(dims), bool(dims) and dims[-1] - dims[0] >= len(dims)


def _count_dims_taken(i: Any) -> int:
    """How many dimensions of x an entry takes."""
    if i is None or i is Ellipsis:
        return 0
    return len(i._array.shape) if isinstance(i, Tensor) and dtypes.of(i._array.dtype).kind == "bool" else 1


def _mask_to_indices(x: Tensor, mask: Tensor, shape: tuple[int, ...], d: int, name: str) -> tuple[list[Tensor], int]:
    """A boolean mask as integer indices, one per dimension that it covers (one for a 0-d mask, of a new dimension)."""
    given = tuple(mask._array.shape)
    count = len(given)
    if given != shape[d : d + count]:
        raise IndexError(f"{name}: a mask of shape {given} for dims of sizes {shape[d : d + count]}; both must be the same")
    if not count:
        if mask.is_meta:
            raise no_values(name, "whether the mask is True decides the shape")
        return [new_tensor(from_host(np.zeros(int(to_host(mask._array)), np.int64), x.device))], 0
    places = nonzero_columns(mask)
    return [i if i.device == x.device else i.to(x.device) for i in places], count
