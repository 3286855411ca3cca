"""Views: functions that look at the same memory under another shape. None copies, but reshape and those that say so."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import update_wrapper
from operator import index as as_index
from typing import Any

import numpy as np

from tritensor.dispatch.plans.door_code import Parameters, open_door
from tritensor.dispatch.plans.doors import Door
from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.ground.thread_state import here
from tritensor.ground.transforms import TRACE, WrappedArray, transform
from tritensor.ops.array import device_of, element_strides, empty, is_contiguous, reinterpreted, reshape_strides
from tritensor.ops.table import broadcast, normal_dim, normal_dims, ops, sized_dim
from tritensor.ops.table.shape_rules import one_integer
from tritensor.tensor.aliasing.views import change_shape
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.public_api.publish import function, rename_function, twin
from tritensor.tensor.size import Size


def parse_sizes(name: str, given: Sequence[Any]) -> tuple[int, ...]:
    """Integers given one by one or as one sequence: `view(2, 3)`, `view((2, 3))`."""
    # One argument: a sequence, or a single size of another integer type.
    if len(given) == 1 and not isinstance(given[0], int):
        one = one_integer(given[0])
        if isinstance(one, int):
            given = (one,)
        elif isinstance(one, tuple | list):
            given = one
        elif hasattr(one, "__len__") and not isinstance(one, str):
            given = tuple(one)
    try:
        return tuple([as_index(n) for n in given])
    except TypeError:
        raise TypeError(f"{name}: {tuple(given)} are not integers; give ints") from None


def unpack_sequence(tensors: Any) -> Any:
    """Tensors given one by one, or as one tuple or list of them."""
    return tensors[0] if len(tensors) == 1 and isinstance(tensors[0], tuple | list) else tensors


def infer_size(name: str, shape: tuple[int, ...], have: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with its one -1 replaced by the size that fits the elements of `have`."""
    if min(shape, default=0) >= 0:
        return shape
    # Only a shape that holds a -1 pays for the products.
    total = math.prod(have)
    known = math.prod([n for n in shape if n != -1])
    if shape.count(-1) > 1 or min(shape) < -1:
        raise ShapeError(f"{name}: shape {shape} may hold one -1, and no other negative size; give the others")
    if known == 0 or total % known:
        raise ShapeError(
            f"{name}: shape {have} has {total} elements, {shape} cannot hold them whatever -1 stands for; give sizes whose product divides {total}"
        )
    return tuple([total // known if n == -1 else n for n in shape])


@function(also={"dtype": "shape"})
def view(x: Tensor, *shape: Any) -> Tensor:
    """x's memory in another shape, one size may be -1: `x.view(-1, 8)`. `x.view(dtype)` reads the bytes as another type,
    of which the last dimension then holds more or fewer, and which has no gradient.

    Raises ShapeError when x's strides allow no such view; reshape copies then.

    >>> x = tt.arange(6)
    >>> y = x.view(2, 3)
    >>> y[0, 0] = 9  # the same memory
    >>> x
    tensor([9, 1, 2, 3, 4, 5])
    >>> y.T.view(6)
    Traceback (most recent call last):
    tritensor.errors.ShapeError: ...
    """
    if len(shape) == 1 and isinstance(shape[0], dtypes.DType | np.dtype | type):
        return _view_as_type(x, dtypes.as_dtype(shape[0]))
    return ops.reshape(x, shape=infer_size("view", parse_sizes("view", shape), x._array.shape))


def _view_as_type(x: Tensor, dtype: dtypes.DType) -> Tensor:
    """x's memory as another type, outside of every graph: bytes have no gradient."""
    y = x.detach()
    # A view of x's own type is x.detach(), as in PyTorch.
    if dtype is not x.dtype:
        y._set_array(_reinterpret_bytes(x._array, dtype.numpy))
    return y


def _reinterpret_bytes(a: Any, dtype: np.dtype) -> Any:
    """An array's bytes as another type; inside a transform those of what lies below, without a tangent."""
    shape, _ = reinterpreted(a, dtype)  # numpy's own refusals do not say what to do
    if type(a) is not WrappedArray:
        return a.view(dtype) if a.size else empty(shape, dtype, device_of(a))
    # A recorded constant would go stale: the trace is asked for the values.
    if a.level.kind == TRACE:
        transform.current.read(a)
    value = a.value.detach()
    value._set_array(_reinterpret_bytes(a.value._array, dtype))
    return WrappedArray(a.level, value, a.batched)


def reshape_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A view of x where its strides allow one, else a copy."""
    array = x._array
    # Asked first, not tried: ops.reshape raises where strides allow no view, and an exception costs more.
    if not is_contiguous(array) and math.prod(shape) == array.size and reshape_strides(array.shape, element_strides(array), shape) is None:
        return forget_base(ops.reshape(ops.copy(x), shape=shape))
    return ops.reshape(x, shape=shape)


def slice_along(x: Tensor, d: int, start: int, stop: int) -> Tensor:
    """x[start:stop] along d, which is counted from the front; a view."""
    return ops.index_view(x, index=(*(slice(None),) * d, slice(start, stop)))


def forget_base(y: Tensor) -> Tensor:
    """A view of what nobody else has, as the tensor that owns its memory. Writes are counted on: a node may have saved what the view is of."""
    _forget_bases((y,))
    if here.noting is not None:
        here.noting.note_call(_forget_bases, (y,))
    return y


def _forget_bases(parts: Sequence[Tensor]) -> None:
    for y in parts:
        y._extra = y._view_path = None


def to_c_order(x: Tensor) -> Tensor:
    """x itself where its elements lie in C order, else a copy that does: for results that are so in PyTorch, whatever they are made of."""
    return x if is_contiguous(x._array) else ops.copy(x)


@function
def reshape(x: Tensor, *shape: Any) -> Tensor:
    """x's elements in C order under another shape, one size may be -1; a view where x's strides allow one, else a copy.

    >>> tt.arange(6).reshape(2, -1)
    tensor([[0, 1, 2],
            [3, 4, 5]])
    """
    return reshape_to(x, infer_size("reshape", parse_sizes("reshape", shape), x._array.shape))


@function
def view_as(x: Tensor, other: Tensor) -> Tensor:
    """x.view(other.shape)."""
    return ops.reshape(x, shape=tuple(other._array.shape))


@function
def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """x.reshape(other.shape)."""
    return reshape_to(x, tuple(other._array.shape))


@function
def ravel(x: Tensor) -> Tensor:
    """x in one dimension; a copy unless x is contiguous."""
    # A view only of C order: numpy's and PyTorch's ravel copy where reshape might still find a view.
    return reshape_to(x, (x._array.size,)) if is_contiguous(x._array) else forget_base(ops.reshape(ops.copy(x), shape=(x._array.size,)))


@function
def flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions start_dim to end_dim joined into one; copies only where strides need that."""
    shape = x._array.shape
    first, last = normal_dim("flatten", start_dim, len(shape)), normal_dim("flatten", end_dim, len(shape))
    if not shape:
        return ops.reshape(x, shape=(1,))
    if first > last:
        raise ShapeError(f"flatten: start_dim {start_dim} comes after end_dim {end_dim}; exchange them")
    return reshape_to(x, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])) if first < last else x


@function
def unflatten(x: Tensor, dim: int, sizes: Any) -> Tensor:
    """Dimension `dim` split into `sizes`, one of which may be -1."""
    shape = x._array.shape
    d = sized_dim("unflatten", dim, len(shape))
    parts = infer_size("unflatten", tuple(int(n) for n in sizes), (shape[d],))
    if math.prod(parts) != shape[d]:
        raise ShapeError(f"unflatten: sizes {parts} do not multiply to {shape[d]}, the size of dim {d}; give sizes that do")
    return ops.reshape(x, shape=(*shape[:d], *parts, *shape[d + 1 :]))


@function
def squeeze(x: Tensor, dim: Any = None) -> Tensor:
    """Without dimensions of size 1: all of them, or those named (others stay)."""
    shape = x._array.shape
    if dim is None:
        kept = tuple([n for n in shape if n != 1])
    else:
        dims = normal_dims("squeeze", dim, len(shape))
        # Dims of another size stay silently, as in PyTorch; numpy and the array API refuse them.
        kept = tuple([n for d, n in enumerate(shape) if n != 1 or d not in dims])
    return ops.reshape(x, shape=kept)


@function
def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """With a new dimension of size 1 at `dim`."""
    shape = x._array.shape
    d = normal_dim("unsqueeze", dim, len(shape) + 1)
    return ops.reshape(x, shape=(*shape[:d], 1, *shape[d:]))


@function
def expand_dims(x: Tensor, dim: Any = 0) -> Tensor:
    """numpy's name for unsqueeze; several dims as a tuple."""
    dims = dim if isinstance(dim, tuple | list) else (dim,)
    ndim = len(x._array.shape) + len(dims)
    # Ascending, so that each insertion leaves the later positions as they were meant.
    places = sorted(normal_dim("expand_dims", d, ndim) for d in dims)
    if len(set(places)) != len(places):
        raise ShapeError(f"expand_dims: dims {tuple(dims)} name a place twice")
    for d in places:
        x = unsqueeze(x, d)
    return x


# -- order of dimensions
def _permute(name: str, x: Tensor, dims: Sequence[int]) -> Tensor:
    ndim = len(x._array.shape)
    found = tuple([normal_dim(name, d, ndim) for d in dims])
    if len(found) != ndim or len(set(found)) != ndim:
        raise ShapeError(f"{name}: dims {tuple(dims)} for x {tuple(x._array.shape)}; name each of its {ndim} dimensions once")
    return ops.permute(x, dims=found)


@function(names=("permute", "permute_dims"))
def permute(x: Tensor, *dims: Any) -> Tensor:
    """Dimensions in the order given: `x.permute(2, 0, 1)`.

    >>> tt.zeros(2, 3, 4).permute(2, 0, 1).shape
    tritensor.Size([4, 2, 3])
    """
    return _permute("permute", x, parse_sizes("permute", dims))


@function(names=("transpose", "swapaxes", "swapdims"), also={"axis0": "dim0", "axis1": "dim1"})
def transpose(x: Tensor, *dims: Any, dim0: int | None = None, dim1: int | None = None) -> Tensor:
    """Two dimensions exchanged: `x.transpose(0, 1)`. Also numpy's forms: a permutation as one sequence, or nothing to reverse all."""
    if dim0 is not None:
        dims = (dim0, *dims)
    if dim1 is not None:
        dims = (*dims, dim1)
    ndim = len(x._array.shape)
    # Two ints are PyTorch's transpose, one sequence is numpy's.
    if len(dims) == 2 and isinstance(dims[0], int):
        a, b = normal_dim("transpose", dims[0], ndim), normal_dim("transpose", dims[1], ndim)
        order = list(range(ndim))
        if ndim:
            order[a], order[b] = b, a
        return ops.permute(x, dims=tuple(order))
    if not dims or (len(dims) == 1 and dims[0] is None):
        return ops.permute(x, dims=tuple(range(ndim - 1, -1, -1)))
    return _permute("transpose", x, parse_sizes("transpose", dims))


@function
def t(x: Tensor) -> Tensor:
    """The transpose of a matrix; a view of all of x with fewer dimensions."""
    ndim = len(x._array.shape)
    if ndim > 2:
        raise ShapeError(f"t: x {tuple(x._array.shape)} has more than two dimensions; use transpose(dim0, dim1) or .mT")
    return ops.permute(x, dims=(1, 0) if ndim == 2 else tuple(range(ndim)))


@function
def matrix_transpose(x: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    ndim = len(x._array.shape)
    if not ndim:
        return ops.permute(x, dims=())
    # PyTorch lets mT of a number pass, and refuses vectors.
    if ndim < 2:
        raise ShapeError(f"mT: x {tuple(x._array.shape)} has one dimension; it takes matrices and batches of them")
    return ops.permute(x, dims=(*range(ndim - 2), ndim - 1, ndim - 2))


def _reverse_dims(x: Tensor) -> Tensor:
    """All dimensions in reverse order."""
    return ops.permute(x, dims=tuple(range(len(x._array.shape) - 1, -1, -1)))


@function
def adjoint(x: Tensor) -> Tensor:
    """The last two dimensions exchanged, complex numbers conjugated."""
    return matrix_transpose(x).conj()  # type: ignore[no-any-return]


def _conjugate_transpose(x: Tensor) -> Tensor:
    """The transpose of a matrix, complex numbers conjugated."""
    if x.ndim == 1:
        raise ShapeError(f"H: x {tuple(x._array.shape)} is a vector; it takes a matrix")
    return t(x).conj()  # type: ignore[no-any-return]


_OWN = Parameters(("x",), None, (), exact=True)  # of a property


def _planned_property(f: Callable[[Tensor], Tensor]) -> Any:
    """A property whose getter has plans. It takes the bare function: no arguments need validation."""
    return property(update_wrapper(open_door(Door(f, _OWN, f.__name__)), f))


Tensor.T = _planned_property(_reverse_dims)  # type: ignore[assignment, method-assign]
Tensor.mT = _planned_property(matrix_transpose.__wrapped__)  # type: ignore[assignment, method-assign]
Tensor.H = property(_conjugate_transpose)  # type: ignore[assignment, method-assign]
Tensor.mH = property(twin(adjoint, "Tensor.mH"))  # type: ignore[assignment, method-assign]


@function(names=("movedim", "moveaxis"))
def movedim(x: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions `source` moved to `destination`; the others keep their order."""
    ndim = len(x._array.shape)
    starts = [normal_dim("movedim", d, ndim) for d in (source if isinstance(source, tuple | list) else (source,))]
    ends = [normal_dim("movedim", d, ndim) for d in (destination if isinstance(destination, tuple | list) else (destination,))]
    if len(starts) != len(ends) or len(set(starts)) != len(starts) or len(set(ends)) != len(ends):
        raise ShapeError(f"movedim: source {source} and destination {destination} must name equally many different dimensions")
    if not ndim:
        return ops.permute(x, dims=())
    order = [d for d in range(ndim) if d not in starts]
    # In ascending order of destination each insert lands where it stays.
    for end, start in sorted(zip(ends, starts, strict=True)):
        order.insert(end, start)
    return ops.permute(x, dims=tuple(order))


# -- stretched and strided
@function
def expand(x: Tensor, *size: Any, implicit: bool = False) -> Tensor:
    """Dimensions of size 1 stretched, new ones put in front, without copying; -1 keeps a size. `implicit` changes nothing."""
    want = parse_sizes("expand", size)
    have = x._array.shape
    lead = len(want) - len(have)
    # -1 is the exception: the list is looked through once for it.
    if min(want, default=0) < 0:
        if any(n < -1 for n in want) or any(n == -1 for n in want[: max(lead, 0)]):
            raise ShapeError(
                f"expand: {want} for x {tuple(have)}: -1 keeps the size of a dimension that x has; give sizes of 0 or more elsewhere"
            )
        want = tuple([have[i - lead] if n == -1 else n for i, n in enumerate(want)])
    return ops.expand(x, shape=want)


@function
def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """x.expand(other.shape)."""
    return ops.expand(x, shape=tuple(other._array.shape))


@function
def broadcast_to(x: Tensor, *shape: Any) -> Tensor:
    """numpy's name for expand."""
    return expand(x, *shape)


@function(method=False)
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to the shape they broadcast to."""
    given = unpack_sequence(tensors)
    shape = broadcast_shapes(*(tuple(x._array.shape) for x in given))
    return tuple([ops.expand(x, shape=shape) for x in given])


@function(method=False)
def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that shapes broadcast to."""
    found = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    return Size(broadcast("broadcast_shapes", *found, labels=[f"shape {i}" for i in range(len(found))]))


@function
def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of `size` elements along a dimension, `step` apart, in a new last dimension."""
    if not x._array.shape:  # its one element, once or not at all
        normal_dim("unfold", dimension, 0)
        windows = ops.unfold(ops.reshape(x, shape=(1,)), dim=0, size=int(size), step=int(step))
        return ops.index_view(windows, index=(0,))
    return ops.unfold(x, dim=normal_dim("unfold", dimension, len(x._array.shape)), size=int(size), step=int(step))


@function
def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dimensions as the last one; `offset` above (positive) or below the main one."""
    ndim = len(x._array.shape)
    return ops.diagonal(x, offset=int(offset), dim1=normal_dim("diagonal", dim1, ndim), dim2=normal_dim("diagonal", dim2, ndim))


@function(out=True)
def diag(x: Tensor, diagonal: int = 0) -> Tensor:
    """The diagonal of a matrix (a copy; `diagonal` gives a view), or the matrix with a vector on its diagonal."""
    shape = x._array.shape
    if len(shape) == 1:
        n = shape[0] + abs(diagonal)
        return ops.pad_diagonal(x, shape=(n, n), offset=int(diagonal), dim1=0, dim2=1)
    if len(shape) != 2:
        raise ShapeError(f"diag: x {tuple(shape)} is neither a vector nor a matrix; use diagonal")
    if type(x._array) is np.ndarray and not x._tracked:  # no graph asks how it came about: one call instead of two
        return new_tensor(x._array.diagonal(int(diagonal)).copy())
    return ops.copy(ops.diagonal(x, offset=int(diagonal), dim1=0, dim2=1))


@function
def diag_embed(x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Zeros with x's last dimension on the diagonal of dim1 and dim2."""
    shape = x._array.shape
    ndim = len(shape) + 1
    first, second = normal_dim("diag_embed", dim1, ndim), normal_dim("diag_embed", dim2, ndim)
    if first == second:
        raise ShapeError(f"diag_embed: dim1 {dim1} and dim2 {dim2} are one dimension; name two")
    n = shape[-1] + abs(offset)
    # The last dim becomes the diagonal; the others fill the places that are left, in order.
    rest = iter(shape[:-1])
    full = tuple([n if d in (first, second) else next(rest) for d in range(ndim)])
    return ops.pad_diagonal(x, shape=full, offset=int(offset), dim1=first, dim2=second)


# -- views in place: the tensor itself looks at its memory differently
def _publish_in_place(f: Callable[..., Tensor], name: str) -> None:
    def call(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return change_shape(x, f, args, kwargs, name)

    setattr(Tensor, name, rename_function(call, name, f"{f.__name__}, in place: the memory stays, this tensor's shape changes."))


for _name, _function in {
    "t_": t, "transpose_": transpose, "swapaxes_": transpose, "swapdims_": transpose, "squeeze_": squeeze, "unsqueeze_": unsqueeze,
}.items():  # fmt: skip
    _publish_in_place(_function, _name)
