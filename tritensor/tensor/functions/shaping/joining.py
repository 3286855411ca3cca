"""Parts and wholes: views of parts of a tensor, and tensors joined, repeated, turned around."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index as as_index
from typing import Any

import numpy as np

from tritensor.autograd.engine import is_followed
from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, OutOfRangeError, ShapeError
from tritensor.ops.array import empty, same_memory, to_host
from tritensor.ops.strided_array import no_values
from tritensor.ops.table import normal_dim, normal_dims, ops, sized_dim
from tritensor.tensor.aliasing.basic_indexing import getitem
from tritensor.tensor.aliasing.inplace import write_out
from tritensor.tensor.aliasing.views import mark_parts
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.shaping.reshaping import forget_base, parse_sizes, reshape_to, to_c_order, unpack_sequence, unsqueeze
from tritensor.tensor.parsing.data import as_tensor
from tritensor.tensor.public_api.arguments import Tensors
from tritensor.tensor.public_api.publish import function, rename_function

# -- parts
_SECTIONS = {"sections": "indices_or_sections", "indices": "indices_or_sections"}  # names of numpy's argument in PyTorch's overloads


@function
def select(x: Tensor, dim: int, index: int) -> Tensor:
    """x at one index of a dimension, which goes."""
    shape = x._array.shape
    if type(index) is not int:
        # numpy integers and 0-d tensors are accepted, bools are not: True would read as 1.
        index = _to_integer("select", index)
    d = normal_dim("select", dim, len(shape))
    n = shape[d] if shape else 0
    if not -n <= index < n:
        raise IndexError(f"select: index {index} is out of range for dim {d} of size {n}")
    return ops.index_view(x, index=(*(slice(None),) * d, index % n))


def _to_integer(name: str, index: Any, label: str = "index") -> int:
    """An index that is a numpy integer or a 0-d tensor of integers, as an int."""
    if isinstance(index, bool) or not hasattr(index, "__index__"):
        raise TypeError(f"{name}: {label} is a {type(index).__name__}; give an int")
    if isinstance(index, Tensor) and index._array.dtype.kind not in "iu":
        raise DTypeError(f"{name}: {label} is a tensor of {index.dtype.name}; give an int, or a 0-d tensor of integers")
    return int(index.__index__())


@function
def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Elements start to start + length - 1 of a dimension."""
    if not x._array.shape:
        raise ShapeError("narrow: a 0-d tensor has no dimension to narrow; reshape it to (1,)")
    if type(start) is not int:
        start = _to_integer("narrow", start, "start")
    d = normal_dim("narrow", dim, len(x._array.shape))
    n = x._array.shape[d]
    first = start + n if start < 0 else start
    if not 0 <= first <= first + length <= n:
        raise OutOfRangeError(f"narrow: start {start}, length {length} do not lie in dim {d} of size {n}; give a range inside")
    return ops.index_view(x, index=(*(slice(None),) * d, slice(first, first + int(length))))


@function
def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All slices along a dimension."""
    d = normal_dim("unbind", dim, len(x._array.shape))
    if not x._array.shape:
        raise IndexError("unbind: a 0-d tensor has no dimension to take apart; reshape it to (1,)")
    lead = (slice(None),) * d
    return mark_parts(tuple([_select(x, (*lead, i)) for i in range(x._array.shape[d])]))


def _select(x: Tensor, index: tuple[Any, ...]) -> Tensor:
    made = getitem(x, index, plain_only=True)
    return ops.index_view(x, index=index) if made is None else made


def _to_count(parts: Any) -> int | None:
    """One number of parts or one size, of Python, numpy or in a tensor without dimensions; None for a sequence."""
    # A 0-d tensor is one number, any other a sequence of sizes.
    if isinstance(parts, Tensor | np.ndarray):
        return int(parts.__index__()) if not parts.shape else None
    return int(parts) if isinstance(parts, int | np.integer) else None


def _slice_between(x: Tensor, d: int, edges: Sequence[int]) -> tuple[Tensor, ...]:
    """Slices between neighbouring edges of a dimension."""
    lead = (slice(None),) * d
    return tuple([ops.index_view(x, index=(*lead, slice(a, max(a, b)))) for a, b in zip(edges, edges[1:], strict=False)])


@function(also={"tensor": "x", "split_size": "split_size_or_sections"})
def split(x: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of a size (the last may be smaller), or of the sizes listed."""
    d = sized_dim("split", dim, len(x._array.shape))
    n = x._array.shape[d]
    size = _to_count(split_size_or_sections)
    if size is not None:
        # A size of 0 splits only what is empty.
        if size < 0 or (size == 0 and n):
            raise ShapeError(f"split: a size of {size} does not split dim {d} of size {n}; give a positive one")
        return mark_parts(_slice_between(x, d, [*range(0, n, size or 1), n] if n else [0, 0]))
    if not isinstance(split_size_or_sections, Iterable):
        raise TypeError(f"split: a size of {split_size_or_sections!r} is no whole number; give an int, or a list of them")
    parts = [int(k) for k in split_size_or_sections]
    if sum(parts) != n or min(parts, default=0) < 0:
        raise ShapeError(f"split: sizes {parts} do not add up to {n}, the size of dim {d}; give sizes that do")
    edges = [0]
    for k in parts:
        edges.append(edges[-1] + k)
    return mark_parts(_slice_between(x, d, edges))


@function
def chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` parts of equal size, the last smaller where they do not divide."""
    chunks = as_index(chunks)
    if chunks < 1:
        raise ShapeError(f"chunk: {chunks} parts; ask for at least one")
    d = sized_dim("chunk", dim, len(x._array.shape))
    n = x._array.shape[d]
    return split(x, max(-(-n // chunks), 1), d) if n else mark_parts(_slice_between(x, d, [0] * (chunks + 1)))


@function(also=_SECTIONS | {"tensor_indices_or_sections": "indices_or_sections"})
def tensor_split(x: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """So many parts (sizes differ by one at most), or the parts between the indices listed."""
    d = sized_dim("tensor_split", dim, len(x._array.shape))
    n = x._array.shape[d]
    parts = _to_count(indices_or_sections)
    if parts is not None:
        if parts < 1:
            raise ShapeError(f"tensor_split: {parts} parts; ask for at least one")
        edges = [0]
        for k in range(parts):
            edges.append(edges[-1] + n // parts + (k < n % parts))
        return _slice_between(x, d, edges)
    # Indices beyond the ends give empty parts, as numpy's do.
    inner = [min(max(i + n if i < 0 else i, 0), n) for i in parse_sizes("tensor_split", (indices_or_sections,))]
    return _slice_between(x, d, [0, *inner, n])


@function
def split_with_sizes(x: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Parts of the sizes listed."""
    parts: tuple[Tensor, ...] = split(x, list(split_sizes), dim)
    return parts


def _split_evenly(name: str, x: Tensor, indices_or_sections: Any, dim: int) -> tuple[Tensor, ...]:
    """numpy's hsplit and its kin: so many equal parts, or the parts between the indices listed."""
    if x.ndim <= dim:
        raise ShapeError(f"{name}: x {tuple(x.shape)} has no dim {dim} to split; use tensor_split(..., dim=)")
    count = _to_count(indices_or_sections)
    if count is not None and (count < 1 or x.shape[dim] % count):
        raise ShapeError(f"{name}: {count} equal parts of dim {dim} of size {x.shape[dim]}; use tensor_split for unequal ones")
    parts: tuple[Tensor, ...] = tensor_split(x, indices_or_sections, dim)
    return parts


@function(also=_SECTIONS)
def hsplit(x: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along dim 1, along dim 0 of a vector."""
    return _split_evenly("hsplit", x, indices_or_sections, 0 if x.ndim == 1 else 1)


@function(also=_SECTIONS)
def vsplit(x: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along dim 0."""
    return _split_evenly("vsplit", x, indices_or_sections, 0 if x.ndim > 1 else 1)


@function(also=_SECTIONS)
def dsplit(x: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
    """Parts along dim 2."""
    return _split_evenly("dsplit", x, indices_or_sections, 2)


# -- joined
def _to_list(name: str, tensors: Tensors) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}: tensors is a tensor; give a tuple or list of them (x.unbind() makes one of a tensor's slices)")
    given = list(tensors)
    if not given:
        raise ShapeError(f"{name}: no tensors were given; it needs at least one")
    return given


@function(method=False, names=("concat", "concatenate"))
def cat(tensors: Tensors, dim: int = 0, *, out: Tensor | None = None) -> Tensor:
    """Tensors joined along an existing dimension, in the type they promote to; empty ones of shape (0,) add no elements, as in PyTorch.

    Raises ShapeError where other sizes disagree, and for an `out` that shares memory with one of them.

    >>> tt.cat([tt.zeros(1, 2), tt.ones(2, 2)])
    tensor([[0., 0.],
            [1., 1.],
            [1., 1.]])
    """
    given = _to_list("cat", tensors)
    # PyTorch's legacy rule: a tensor of shape (0,) joins with any others.
    kept = [x for x in given if x._array.shape != (0,)] or given[:1]
    if len(kept) < len(given):  # what is left out still says which type they all promote to
        common = dtypes.result_type([x._array for x in given], "cat")
        kept[0] = kept[0] if kept[0]._array.dtype == common else ops.cast(kept[0], dtype=common)
    bare = kept[0]._array.shape == (0,)  # all are: then any dim joins them
    d = 0 if bare else normal_dim("cat", dim, len(kept[0]._array.shape))
    if len(kept) < len(given):  # and the result hangs at it where it requires grad
        shape = tuple([0 if k == d else n for k, n in enumerate(kept[0]._array.shape)])
        kept += [ops.reshape(x, shape=shape) for x in given if x._array.shape == (0,) and x is not kept[0] and is_followed(x)]
    made = ops.cat(*kept, dim=d)
    if out is None:
        return made
    for k, x in enumerate(given):
        # cat writes out piece by piece: an input in the same memory would be overwritten before it is read.
        if out is x or same_memory(x._array, out._array):
            raise ShapeError(f"cat: out shares memory with tensor {k}, which would be overwritten as it is read; give another out")
    return write_out(out, made, "cat")


@function(method=False, out=True)
def stack(tensors: Tensors, dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dimension.

    >>> tt.stack([tt.zeros(2), tt.ones(2)], dim=1)
    tensor([[0., 1.],
            [0., 1.]])
    """
    given = _to_list("stack", tensors)
    return ops.stack(*given, dim=normal_dim("stack", dim, len(given[0]._array.shape) + 1))


def _raise_ndim(x: Tensor, ndim: int) -> Tensor:
    shape = tuple(x._array.shape)
    if len(shape) >= ndim:
        return x
    # numpy's atleast_3d puts a matrix's new dim last and a vector's on both sides.
    if ndim == 3 and len(shape) == 2:
        return reshape_to(x, (*shape, 1))
    return reshape_to(x, {1: (1,), 2: (1, *shape) if shape else (1, 1), 3: (1, *shape, 1) if shape else (1, 1, 1)}[ndim])


@function(method=False, names=("row_stack",), out=True)
def vstack(tensors: Tensors) -> Tensor:
    """Joined row by row: vectors count as rows."""
    return cat([_raise_ndim(x, 2) for x in _to_list("vstack", tensors)], 0)


@function(method=False, out=True)
def hstack(tensors: Tensors) -> Tensor:
    """Joined side by side: along dim 1, vectors along dim 0."""
    given = [_raise_ndim(x, 1) for x in _to_list("hstack", tensors)]
    return cat(given, 0 if len(given[0]._array.shape) == 1 else 1)


@function(method=False, out=True)
def dstack(tensors: Tensors) -> Tensor:
    """Joined along dim 2, after vectors and matrices got one."""
    return cat([_raise_ndim(x, 3) for x in _to_list("dstack", tensors)], 2)


@function(method=False, out=True)
def column_stack(tensors: Tensors) -> Tensor:
    """Joined side by side, vectors as columns."""
    given = _to_list("column_stack", tensors)
    return cat([x if len(x._array.shape) > 1 else reshape_to(x, (x._array.size, 1)) for x in given], 1)


def _publish_atleast(ndim: int, doc: str) -> None:
    def call(*tensors: Tensor) -> Any:
        given = unpack_sequence(tensors)
        found = tuple([_raise_ndim(x, ndim) for x in given])
        return found[0] if given is tensors and len(found) == 1 else found

    function(rename_function(call, f"atleast_{ndim}d", doc), method=False)


_publish_atleast(1, "With at least one dimension; several tensors give a tuple.")
_publish_atleast(2, "With at least two dimensions; several tensors give a tuple.")
_publish_atleast(3, "With at least three dimensions; several tensors give a tuple.")


# -- repeated
@function
def repeat(x: Tensor, *repeats: Any) -> Tensor:
    """x laid side by side, `repeats` times along each dimension (new ones in front); always a copy."""
    times = parse_sizes("repeat", repeats)
    shape = tuple(x._array.shape)
    lead = len(times) - len(shape)
    if lead < 0 or min(times, default=0) < 0:
        raise ShapeError(f"repeat: {times} for x {shape}; give a number of 0 or more for each of its dimensions, or more of them")
    full = (1,) * lead + shape
    paired = tuple([n for k in full for n in (1, k)])  # (1, n) per dimension, the 1 stretched to the count
    expanded = tuple([n for c, k in zip(times, full, strict=True) for n in (c, k)])
    whole = ops.copy(ops.expand(reshape_to(x, paired), shape=expanded))
    return forget_base(ops.reshape(whole, shape=tuple([c * k for c, k in zip(times, full, strict=True)])))


@function
def tile(x: Tensor, *dims: Any) -> Tensor:
    """numpy's repeat: `dims` may be shorter than x's shape."""
    times = parse_sizes("tile", dims)
    return repeat(x, (1,) * (len(x._array.shape) - len(times)) + times)


@function
def repeat_interleave(x: Any = None, repeats: Any = None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each element (or slice along `dim`) repeated in place: so many times, or as often as a tensor of counts says.

    Of counts alone, `repeat_interleave(repeats)`, the indices: 0 as often as the first count says, and so on.
    """
    # The overload of counts alone.
    if x is None or repeats is None:
        repeats = x if repeats is None else repeats
        if not isinstance(repeats, Tensor) or repeats.ndim != 1:
            raise TypeError("repeat_interleave: give input and repeats, or repeats alone as a vector of counts")
        x, dim = ops.arange(start=0, end=repeats._array.size, step=1, dtype=np.dtype(np.int64), device=repeats.device), 0
    if dim is None:
        x, dim = reshape_to(x, (x._array.size,)), 0
    d = normal_dim("repeat_interleave", dim, len(x._array.shape))
    shape = tuple(x._array.shape)
    # One count for all: an expansion and one copy, without indices.
    if isinstance(repeats, int):
        if repeats < 0:
            raise ShapeError(f"repeat_interleave: {repeats} repeats; give 0 or more")
        expanded = (*shape[: d + 1], repeats, *shape[d + 1 :])
        whole = ops.copy(ops.expand(unsqueeze(x, d + 1), shape=expanded))
        return forget_base(ops.reshape(whole, shape=(*shape[:d], shape[d] * repeats, *shape[d + 1 :])))
    if isinstance(repeats, Tensor) and repeats.is_meta:
        if output_size is None:
            raise no_values("repeat_interleave", "the sum of the repeats is the size of the result (give output_size=)")
        return to_c_order(ops.index_get(x, new_tensor(empty((output_size,), np.dtype(np.int64), x.device)), dims=(d,), front=False))
    counts = np.asarray(to_host(repeats._array) if isinstance(repeats, Tensor) else repeats).reshape(-1)
    if counts.dtype.kind not in "iu":
        raise DTypeError(f"repeat_interleave: repeats are {counts.dtype.name}; give integers")
    if output_size is not None and output_size != (total := int(counts.sum()) * (shape[d] if counts.size == 1 != shape[d] else 1)):
        raise ShapeError(f"repeat_interleave: output_size is {output_size}, the repeats add up to {total}; leave it out, or give that")
    if counts.size not in (1, shape[d]):
        raise ShapeError(f"repeat_interleave: {counts.size} repeats for dim {d} of size {shape[d]}; give one for each element")
    if counts.size and counts.min() < 0:
        raise ShapeError(f"repeat_interleave: {counts.min()} repeats; give 0 or more")
    index = np.repeat(np.arange(shape[d]), counts if counts.size == shape[d] else int(counts[0]))
    return to_c_order(ops.index_get(x, as_tensor(index, x), dims=(d,), front=False))


# -- turned around
@function(names=("flip",))
def flip(x: Tensor, *dims: Any) -> Tensor:
    """The elements in reverse order along dimensions: `x.flip(0, 1)`; a copy. None named: along all."""
    ndim = len(x._array.shape)
    # numpy's flip without axes turns all dims around.
    given = None if not dims or dims[0] is None else parse_sizes("flip", dims)
    return ops.flip(x, dims=normal_dims("flip", given, ndim))


@function
def fliplr(x: Tensor) -> Tensor:
    """Columns in reverse order."""
    if len(x._array.shape) < 2:
        raise ShapeError(f"fliplr: x {tuple(x._array.shape)} has no columns; it takes two dimensions or more")
    return flip(x, 1)


@function
def flipud(x: Tensor) -> Tensor:
    """Rows in reverse order."""
    if not x._array.shape:
        raise ShapeError("flipud: a 0-d tensor has no rows; flip needs at least one dimension")
    return flip(x, 0)


@function
def roll(x: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Elements shifted along dimensions, coming back at the other end; over the flattened tensor where none is named."""
    by = parse_sizes("roll", (shifts,))
    along = () if dims is None else tuple(dims) if isinstance(dims, tuple | list) else (dims,)
    if not along and len(by) == 1:
        return forget_base(ops.reshape(ops.roll(reshape_to(x, (x._array.size,)), shifts=by, dims=(0,)), shape=tuple(x._array.shape)))
    if len(by) != len(along) or not by:
        raise ShapeError(f"roll: {len(by)} shifts for {len(along)} dims; give one for each, or one shift and no dim")
    if not x._array.shape:
        raise IndexError(f"roll: dim {along[0]} of a tensor that has no dimensions; leave dims out")
    dims = tuple([normal_dim("roll", d, len(x._array.shape)) for d in along])
    if any(n and not step % n for step, n in zip(by, [x._array.shape[d] for d in dims], strict=True)):
        x = to_c_order(x)  # PyTorch joins two parts, and loses the order of memory where one of them is empty
    return ops.roll(x, shifts=by, dims=dims)


@function
def rot90(x: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Turned k times by 90 degrees from the first of two dimensions towards the second."""
    ndim = len(x._array.shape)
    if isinstance(dims, list | tuple) and len(dims) != 2:
        raise ShapeError(f"rot90: dims {tuple(dims)}: a plane has two; name two dimensions")
    a, b = (normal_dim("rot90", d, ndim) for d in dims)
    if a == b:
        raise ShapeError(f"rot90: dims {tuple(dims)} are one dimension; name two")
    order = list(range(ndim))
    order[a], order[b] = b, a
    turns = k % 4
    if turns == 0:
        return ops.copy(x)
    # Half a turn needs no transposition: one pass.
    if turns == 2:
        return ops.flip(x, dims=tuple(sorted((a, b))))
    if turns == 1:
        return forget_base(ops.permute(ops.flip(x, dims=(b,)), dims=tuple(order)))
    return ops.flip(ops.permute(x, dims=tuple(order)), dims=(b,))
