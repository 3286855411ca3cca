"""Batches of views, which stay views of the whole batch, and of their gradients."""

from __future__ import annotations

from typing import Any

from tritensor.func.rules.dimensions import raise_dim
from tritensor.func.rules.registry import Batch, rule_for
from tritensor.ops.table import ops


@rule_for("reshape expand")
def _reshape(b: Batch) -> Any:
    x, shape = b.values[0], (b.size, *b.attrs["shape"])
    if b.op.name == "expand" and (missing := len(b.attrs["shape"]) - b.ndim(0)):
        x = ops.reshape(x, shape=(b.size, *(1,) * missing, *b.shape(0)))
    return b.run(x, shape=shape)


@rule_for("permute")
def _permute(b: Batch) -> Any:
    return b.run(b.values[0], dims=(0, *[raise_dim(d, b.ndim(0)) for d in b.attrs["dims"]]))


@rule_for("index_view")
def _index(b: Batch) -> Any:
    return b.run(b.values[0], index=(slice(None), *b.attrs["index"]))  # a view of the whole batch: writes to an example reach it


@rule_for("pad_view")
def _pad_view(b: Batch) -> Any:
    return b.run(b.values[0], shape=(b.size, *b.attrs["shape"]), index=(slice(None), *b.attrs["index"]))


@rule_for("diagonal")
def _diagonal(b: Batch) -> Any:
    n = b.ndim(0)
    return b.run(b.values[0], dim1=raise_dim(b.attrs["dim1"], n), dim2=raise_dim(b.attrs["dim2"], n))


@rule_for("pad_diagonal")
def _pad_diagonal(b: Batch) -> Any:
    shape = b.attrs["shape"]
    n = len(shape)
    return b.run(b.values[0], shape=(b.size, *shape), dim1=raise_dim(b.attrs["dim1"], n), dim2=raise_dim(b.attrs["dim2"], n))


@rule_for("unfold")
def _unfold(b: Batch) -> Any:
    return b.run(b.values[0], dim=raise_dim(b.attrs["dim"], b.ndim(0)))


@rule_for("as_strided")
def _stride(b: Batch) -> Any:
    """Each example is a row of n elements: another row lies n further on."""
    x, n = b.values[0], b.shape(0)[0]
    rows = ops.reshape(x if x.is_contiguous() else ops.copy(x), shape=(b.size * n,))  # the window counts elements in memory
    return b.run(rows, shape=(b.size, *b.attrs["shape"]), strides=(n, *b.attrs["strides"]))


@rule_for("constant_pad")
def _pad_constant(b: Batch) -> Any:
    return b.run(b.values[0], sides=((0, 0), *b.attrs["sides"]))
