"""Batches of views, which stay views of the whole batch, and of their gradients."""

from __future__ import annotations

from typing import Any

from tritensor.func.rules.dimensions import up
from tritensor.func.rules.registry import Batch, batched
from tritensor.ops.table import ops


@batched("reshape expand")
def _shaped(b: Batch) -> Any:
    x, shape = b.values[0], (b.size, *b.attrs["shape"])
    if b.op.name == "expand" and (missing := len(b.attrs["shape"]) - b.ndim(0)):
        x = ops.reshape(x, shape=(b.size, *(1,) * missing, *b.shape(0)))
    return b.run(x, shape=shape)


@batched("permute")
def _permuted(b: Batch) -> Any:
    return b.run(b.values[0], dims=(0, *[up(d, b.ndim(0)) for d in b.attrs["dims"]]))


@batched("index_view")
def _indexed(b: Batch) -> Any:
    return b.run(b.values[0], index=(slice(None), *b.attrs["index"]))


@batched("pad_view")
def _padded(b: Batch) -> Any:
    return b.run(b.values[0], shape=(b.size, *b.attrs["shape"]), index=(slice(None), *b.attrs["index"]))


@batched("diagonal")
def _diagonal(b: Batch) -> Any:
    n = b.ndim(0)
    return b.run(b.values[0], dim1=up(b.attrs["dim1"], n), dim2=up(b.attrs["dim2"], n))


@batched("pad_diagonal")
def _pad_diagonal(b: Batch) -> Any:
    shape = b.attrs["shape"]
    n = len(shape)
    return b.run(b.values[0], shape=(b.size, *shape), dim1=up(b.attrs["dim1"], n), dim2=up(b.attrs["dim2"], n))


@batched("unfold")
def _unfolded(b: Batch) -> Any:
    return b.run(b.values[0], dim=up(b.attrs["dim"], b.ndim(0)))


@batched("as_strided")
def _strided(b: Batch) -> Any:
    """Each example is a row of n elements: another row lies n further on."""
    x, n = b.values[0], b.shape(0)[0]
    rows = ops.reshape(x if x.is_contiguous() else ops.copy(x), shape=(b.size * n,))
    return b.run(rows, shape=(b.size, *b.attrs["shape"]), strides=(n, *b.attrs["strides"]))


@batched("constant_pad")
def _constant(b: Batch) -> Any:
    return b.run(b.values[0], sides=((0, 0), *b.attrs["sides"]))
