"""Tensors combined: products and choices of vectors' elements, matrices on a diagonal, Kronecker products; sums back to a smaller shape."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.autograd.modes import state
from tritensor.autograd.saved import borrow_saved
from tritensor.ground import dtypes
from tritensor.ground.device import as_device
from tritensor.ground.errors import ShapeError
from tritensor.ops.table import normal_dim, ops
from tritensor.tensor.aliasing.views import is_view_of_leaf, leave_base
from tritensor.tensor.casting import to_dtype
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping import joining
from tritensor.tensor.functions.shaping.reshaping import parse_sizes, reshape_to, unpack_sequence
from tritensor.tensor.parsing.data import as_tensor
from tritensor.tensor.public_api.publish import function


@function(method=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All ways to take one element of each vector, in the order of nested loops: (count, vectors). One vector is returned as it is.

    Raises ShapeError for what is no vector, and for none at all.
    """
    given = unpack_sequence(tensors)
    if not given:
        raise ShapeError("cartesian_prod: no tensors were given; it needs at least one")
    for k, x in enumerate(given):
        if len(x._array.shape) != 1:
            raise ShapeError(f"cartesian_prod: tensor {k} has shape {tuple(x._array.shape)}; give vectors")
    if len(given) == 1:
        return given[0]
    full = tuple([x._array.size for x in given])
    columns = [
        ops.expand(ops.reshape(x, shape=tuple([n if d == k else 1 for d, n in enumerate(full)])), shape=full) for k, x in enumerate(given)
    ]
    whole = ops.stack(*columns, dim=len(full))
    return reshape_to(whole, (int(np.prod(full, dtype=np.int64)), len(full)))


def _list_combinations(n: int, r: int, again: bool) -> np.ndarray:
    """Increasing sequences of r of the numbers below n (with `again` not decreasing), in dictionary order: (count, r)."""
    rows = np.zeros((1, 0), np.int64)
    first = np.zeros(1, np.int64)  # the least that may follow each row
    for left in range(r - 1, -1, -1):
        end = n if again else n - left  # beyond it too few numbers would be left
        counts = np.maximum(end - first, 0)
        total = int(counts.sum())
        before = np.cumsum(counts) - counts
        next_ = np.arange(total) - np.repeat(before - first, counts)
        rows = np.concatenate([np.repeat(rows, counts, 0), next_[:, None]], 1)
        first = next_ if again else next_ + 1
    return rows


@function
def combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, as itertools.combinations orders them: (count, r).

    Args:
        with_replacement: an element may be chosen again.

    Raises ShapeError for what is no vector, ValueError for a negative r.
    """
    if len(x._array.shape) != 1:
        raise ShapeError(f"combinations: x has shape {tuple(x._array.shape)}; give a vector")
    if r < 0:
        raise ShapeError(f"combinations: r is {r}; choose 0 elements or more")
    # PyTorch's empty result has one dim here.
    if r == 0:
        return ops.full(shape=(0,), value=0, dtype=x._array.dtype, device=x.device)
    chosen = _list_combinations(x._array.size, int(r), bool(with_replacement))
    return ops.index_get(x, as_tensor(chosen, x), dims=(0,), front=False)


@function(method=False)
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along the diagonal of one, zeros elsewhere, of the type they promote to; a vector counts as a row.

    Raises ShapeError for more than two dimensions.
    """
    given = unpack_sequence(tensors)
    if not given:
        return ops.full(shape=(1, 0), value=0, dtype=dtypes.default_float().numpy, device=as_device(None))
    blocks = []
    for k, x in enumerate(given):
        if len(x._array.shape) > 2:
            raise ShapeError(f"block_diag: tensor {k} has shape {tuple(x._array.shape)}; give matrices, vectors or single values")
        blocks.append(x if len(x._array.shape) == 2 else reshape_to(x, (1, x._array.size)))
    common = dtypes.result_type([x._array for x in given], "block_diag")
    width = sum(x._array.shape[1] for x in blocks)
    rows, left = [], 0
    for x in blocks:
        n, m = x._array.shape
        x = to_dtype(x, common)
        at = (slice(None), slice(left, left + m))
        rows.append(ops.pad_view(x, shape=(n, width), index=at))
        left += m
    return ops.cat(*rows, dim=0)


@function(out=True)
@borrow_saved
def kron(x: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product: each element of x times all of other, laid side by side. Dimensions count from the last."""
    n = max(len(x._array.shape), len(other._array.shape))
    a, b = ((1,) * (n - len(y._array.shape)) + tuple(y._array.shape) for y in (x, other))
    left = reshape_to(x, tuple([k for s in a for k in (s, 1)]))
    right = reshape_to(other, tuple([k for s in b for k in (1, s)]))
    return reshape_to(ops.mul(left, right), tuple([s * t for s, t in zip(a, b, strict=True)]))


@function
def diagflat(x: Tensor, offset: int = 0) -> Tensor:
    """A matrix with x's elements, in C order, on a diagonal: `offset` above (positive) or below the main one."""
    n = x._array.size + abs(int(offset))
    return ops.pad_diagonal(reshape_to(x, (x._array.size,)), shape=(n, n), offset=int(offset), dim1=0, dim2=1)


@function(free=False)
def sum_to_size(x: Tensor, *size: Any) -> Tensor:
    """x summed to a shape that broadcasts to its own: the reverse of expand; x itself where nothing is summed.

    Raises ShapeError for a shape that does not broadcast to x's.
    """
    want, have = parse_sizes("sum_to_size", size), tuple(x._array.shape)
    lead = len(have) - len(want)
    if lead < 0 or any(m not in (1, n) for m, n in zip(want, have[lead:], strict=True)):
        raise ShapeError(f"sum_to_size: {want} does not broadcast to x's shape {have}; each of its sizes must be x's, or 1")
    if not want:
        return ops.sum(x, dim=tuple(range(len(have))), keepdim=False)
    axes = (*range(lead), *[d + lead for d, m in enumerate(want) if m == 1 and have[d + lead] != 1])
    if not axes:
        return x
    return reshape_to(ops.sum(x, dim=axes, keepdim=True), want)


@function
def unsafe_split(x: Tensor, split_size: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """split, whose parts may each be written in place in the graph."""
    return _separate_parts(joining.split(x, split_size, dim))


@function
def unsafe_split_with_sizes(x: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """split_with_sizes, whose parts may each be written in place in the graph."""
    return _separate_parts(joining.split_with_sizes(x, split_sizes, dim))


@function
def unsafe_chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """chunk, whose parts may each be written in place in the graph."""
    return _separate_parts(joining.chunk(x, chunks, dim))


def _separate_parts(parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Parts as views of their own, not as the results of one call; of a leaf that requires grad, which no view may write, and under
    no_grad as tensors that look at the same memory."""
    for y in parts:
        if y._extra is not None and y._extra.origin == "parts":
            y._extra.origin = ""
        # A leaf that requires grad refuses writes through views; parts that may be written are their own tensors.
        if is_view_of_leaf(y) or not state.enabled:
            leave_base(y)
        if not state.enabled:
            y._set_node(None)
    return parts


@function(method=False, out=True)
def _chunk_cat(tensors: Any, dim: int, num_chunks: int) -> Tensor:
    """Each tensor filled up with zeros to `num_chunks` equal chunks along dim, a chunk's elements in a row, joined: (..., num_chunks, all chunks).

    Raises ShapeError for no tensors, for other sizes before dim, and for less than one chunk.
    """
    if not tensors or num_chunks < 1:
        raise ShapeError(f"_chunk_cat: {len(tensors)} tensors, num_chunks {num_chunks}; give at least one of each")
    place = normal_dim("_chunk_cat", dim, tensors[0].ndim)
    lead = tuple(tensors[0]._array.shape[:place])
    rows = []
    for x in tensors:
        shape = tuple(x._array.shape)
        if 0 in shape:
            raise ShapeError(f"_chunk_cat: a tensor of shape {shape} has no elements; leave it out")
        if shape[:place] != lead or len(shape) <= place:
            raise ShapeError(f"_chunk_cat: {shape} beside {tuple(tensors[0]._array.shape)}; sizes before dim {place} must be the same")
        full = -(-shape[place] // num_chunks) * num_chunks
        if full != shape[place]:
            x = ops.pad_view(x, shape=(*shape[:place], full, *shape[place + 1 :]), index=(*[slice(None)] * place, slice(0, shape[place])))
        rows.append(reshape_to(x, (*lead, num_chunks, full // num_chunks * math.prod(shape[place + 1 :]))))
    return joining.cat(rows, place + 1)
