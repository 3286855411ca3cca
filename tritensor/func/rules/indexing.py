"""Batches of gathering, scattering and indexing by tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.func.rules.dimensions import raise_dim
from tritensor.func.rules.registry import Batch, rule_for
from tritensor.func.wrapping import to_front
from tritensor.ops.table import ops

_INT = np.dtype(np.int64)


@rule_for("gather scatter scatter_add scatter_reduce")
def _gather(b: Batch) -> Any:
    """Along one dimension, each position its own: the examples are one more of the others."""
    n = b.ndim(0)
    called = b.attrs["called"]
    if n and b.ndim(1) == n:
        return b.run(*b.wholes(), dim=raise_dim(b.attrs["dim"], n), called=called)
    # An example without dimensions as a row of one.
    given = [ops.reshape(x, shape=(b.size, 1)) if len(x._array.shape) == 1 else x for x in b.wholes()]
    out = b.run(*given, dim=1, called=called)
    shape = (b.size, *(b.shape(1) if b.op.name == "gather" else b.shape(0)))
    return ops.reshape(out, shape=shape) if out._array.shape != shape else out


def _numbers(size: int, ndim: int, on: Any) -> Any:
    """0 to size - 1 as an index that stands before others of `ndim` dimensions."""
    n = ops.arange(start=0, end=size, step=1, dtype=_INT, device=on)
    return ops.reshape(n, shape=(size, *(1,) * ndim))


def _count_index_dims(b: Batch, first: int) -> int:
    """Dimensions that the indices of an example broadcast to."""
    return max(b.ndim(i) for i in range(first, len(b.values)))


def _indices(b: Batch, first: int) -> list[Any]:
    """The index of the example, and the indices that there were, of which those of examples have theirs in front."""
    most = _count_index_dims(b, first)
    found = [_numbers(b.size, most, b.values[0].device)]
    for i in range(first, len(b.values)):
        x = b.values[i]
        if b.flags[i] and (missing := most - b.ndim(i)):  # indices broadcast from behind: ones come between
            x = ops.reshape(x, shape=(b.size, *(1,) * missing, *b.shape(i)))
        found.append(x)
    return found


def _count_leading(b: Batch) -> int:
    """How many dimensions of x come before what the indices give."""
    return 0 if b.attrs["front"] else b.attrs["dims"][0]


@rule_for("index_get")
def _index_get(b: Batch) -> Any:
    x, dims, n = b.values[0], b.attrs["dims"], b.ndim(0)
    moved = tuple([d + 1 for d in dims])
    lead, most = _count_leading(b), _count_index_dims(b, 1)
    if not any(b.flags[1:]):  # x alone: where the result would come first, it does so after the examples
        if not b.attrs["front"]:
            return b.run(x, *b.values[1:], dims=moved)
        out = b.run(x, *b.values[1:], dims=moved)  # (indices, B, rest)
        rest = n - len(dims)
        return ops.permute(out, dims=(most, *range(most), *range(most + 1, most + 1 + rest)))
    if not b.flags[0]:  # every example looks into the same x: one more dimension of the index
        given = [ops.reshape(y, shape=(b.size, *(1,) * (most - b.ndim(i)), *b.shape(i))) if f and b.ndim(i) != most else y
                 for i, (y, f) in enumerate(zip(b.values, b.flags, strict=True)) if i]  # fmt: skip
        out = b.run(x, *given)  # (lead, B, indices, rest)
        return to_front(out, lead)
    out = b.run(x, *_indices(b, 1), dims=(0, *moved), front=True)  # (B, indices, lead and rest)
    total = n - len(dims)
    return ops.permute(out, dims=(0, *range(1 + most, 1 + most + lead), *range(1, 1 + most), *range(1 + most + lead, 1 + most + total)))


@rule_for("index_put")
def _index_put(b: Batch) -> Any:
    """Each example writes into its own x: the index of the example is one more index, and what is written begins with it."""
    dims, lead = b.attrs["dims"], _count_leading(b)
    x, value, most = b.whole(0), b.whole(1), _count_index_dims(b, 2)
    indices = _indices(b, 2)
    if lead:  # (B, lead, indices, rest) as (B, indices, lead, rest)
        n = len(value._array.shape)
        value = ops.permute(value, dims=(0, *range(1 + lead, 1 + lead + most), *range(1, 1 + lead), *range(1 + lead + most, n)))
    return b.run(x, value, *indices, dims=(0, *[d + 1 for d in dims]), front=True)


@rule_for("embedding")
def _embed(b: Batch) -> Any:
    """One table: an index of more dimensions. A table for each example: one table of them all, each with its own rows."""
    weight, index = b.values
    if not b.flags[0]:
        return b.run(weight, index)
    rows, width = b.shape(0)
    table = _reshape_whole(weight, b.size * rows, width)
    index = b.whole(1)
    shift = _numbers(b.size, len(index._array.shape) - 1, index.device)  # the row at which an example's own table begins
    places = ops.add(ops.cast(index, dtype=_INT), ops.mul(shift, rows))
    padding = b.attrs["padding_idx"]
    out = b.run(table, places, padding_idx=None)
    if padding is None:
        return out
    kept = ops.reshape(ops.ne(index, padding % rows), shape=(*index._array.shape, 1))  # the row of padding learns nothing
    return ops.where(kept, out, out.detach())


def _reshape_whole(x: Any, *shape: int) -> Any:
    """x as `shape`, copied where its strides do not allow a view."""
    return ops.reshape(x if x.is_contiguous() else ops.copy(x), shape=shape)


@rule_for("embedding_bag bag_tops")
def _embed_bags(b: Batch) -> Any:
    """All examples' bags one after the other, and after those of each example one more, of the indices that are in none of its bags, which is dropped."""
    weight, index, edges = b.values[0], b.whole(1), b.whole(2)
    n, bags = b.shape(1)[0], b.shape(2)[0] - 1
    rows, width = b.shape(0)
    padding, largest = b.attrs["padding_idx"], b.op.name == "bag_tops"
    if b.flags[0]:  # one table of them all, each with its own rows, and one more row of padding
        weight = _reshape_whole(weight, b.size * rows, width)
        picked, index = index, ops.add(ops.cast(index, dtype=_INT), ops.mul(_numbers(b.size, 1, index.device), rows))
        if padding is not None:
            weight = ops.cat(weight, ops.full(shape=(1, width), value=0, dtype=weight._array.dtype, device=weight.device), dim=0)
            index, padding = ops.where(ops.eq(picked, padding), b.size * rows, index), b.size * rows
    edges = ops.add(edges, ops.mul(_numbers(b.size, 1, index.device), n))
    end = ops.full(shape=(1,), value=b.size * n, dtype=_INT, device=index.device)
    given = [weight, _reshape_whole(index, b.size * n), ops.cat(_reshape_whole(edges, b.size * (bags + 1)), end, dim=0)]
    if not largest and len(b.values) > 3 and b.values[3] is not None:
        given.append(_reshape_whole(b.whole(3), b.size * n))
    found = ops.reshape(b.run(*given, padding_idx=padding), shape=(b.size, bags + 1, width))
    found = ops.index_view(found, index=(slice(None), slice(0, bags)))
    if not largest or not b.flags[0]:
        return found
    return ops.where(ops.ge(found, 0), ops.sub(found, ops.mul(_numbers(b.size, 2, found.device), rows)), -1)
