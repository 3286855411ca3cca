"""Batches of ops that name dimensions: reductions, scans, softmax, sorts, Fourier transforms. The examples stand in front; the others move up by one."""

from __future__ import annotations

import math
from typing import Any

from tritensor.func.rules.registry import Batch, loop_examples, rule_for
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


def raise_dim(dim: int, ndim: int) -> int:
    """A dimension of an example, in the batch."""
    return dim % max(ndim, 1) + 1  # a dimension of an example that has none is 0 or -1


def raise_dims(dims: Any, ndim: int) -> tuple[int, ...]:
    """Several; None stands for all."""
    if dims is None:
        return tuple(range(1, ndim + 1))
    if isinstance(dims, int):
        return (raise_dim(dims, ndim),)
    return tuple([raise_dim(d, ndim) for d in dims])


def _change_each(made: Any, change: Any) -> Any:
    return tuple([change(y) for y in made]) if isinstance(made, tuple) else change(made)


@rule_for("sum mean prod var sum_of_squares amax amin any all")
def _reduce(b: Batch) -> Any:
    """Several dims at once; an example without dimensions has one to reduce for the while."""
    n = b.ndim(0)
    if n:
        return b.run(b.values[0], dim=raise_dims(b.attrs["dim"], n))
    return b.run(ops.reshape(b.values[0], shape=(b.size, 1)), dim=(1,), keepdim=False)


@rule_for("argmax argmin max_dim min_dim")
def _find_extremum(b: Batch) -> Any:
    """One dim, or None: all, and then keepdim gives a 1 for each."""
    n, dim, x = b.ndim(0), b.attrs["dim"], b.values[0]
    if n == 0:
        return b.run(ops.reshape(x, shape=(b.size, 1)), dim=1, keepdim=False)
    if dim is None:
        made = b.run(ops.reshape(ops.copy(x), shape=(b.size, -1 if 0 in x._array.shape else x._array.size // b.size)), dim=1, keepdim=False)
        return _change_each(made, lambda y: ops.reshape(y, shape=(b.size, *(1,) * n))) if b.attrs["keepdim"] else made
    return b.run(x, dim=raise_dim(dim, n))


@rule_for("softmax log_softmax cumsum cumprod cummax cummin logcumsumexp sort argsort sort_values topk linear_scan glu")
def _run_along(b: Batch) -> Any:
    """One dim, and results of the inputs' dimensions."""
    n = b.ndim(0)
    if n:
        return b.run(*b.wholes(), dim=raise_dim(b.attrs["dim"], n))
    made = b.run(*[ops.reshape(x, shape=(b.size, 1)) for x in b.wholes()], dim=1)  # an example without dimensions: rows of one element
    return _change_each(made, lambda y: ops.reshape(y, shape=(b.size,)))


@rule_for("rank_place")
def _rank_place(b: Batch) -> Any:
    """As the others, but an example without dimensions is its own median."""
    return b.run(b.values[0], dim=raise_dim(b.attrs["dim"], b.ndim(0))) if b.ndim(0) else loop_examples(b)


@rule_for("flip roll fft_c2c fft_of_real")
def _run_over_dims(b: Batch) -> Any:
    return b.run(b.values[0], dims=raise_dims(b.attrs["dims"], b.ndim(0)))


@rule_for("fft_r2c fft_c2r")
def _transform_half(b: Batch) -> Any:
    return b.run(b.values[0], dim=raise_dim(b.attrs["dim"], b.ndim(0)))


@rule_for("cat stack")
def _join(b: Batch) -> Any:
    n = b.ndim(0)
    dim = b.attrs["dim"]
    if b.op.name == "stack":
        return b.run(*b.wholes(), dim=dim % (n + 1) + 1)  # stack counts the new dimension, too
    return b.run(*b.wholes(), dim=raise_dim(dim, n))


@rule_for("searchsorted")
def _search(b: Batch) -> Any:
    """Rows of one dimension serve values of any; else the leading sizes of both agree."""
    rows, values, sorter = b.values
    # One row for all examples: the op takes values of any shape.
    if b.ndim(0) == 1 and not b.flags[0] and (sorter is None or not b.flags[2]):
        return b.run(rows, values, sorter)
    if b.ndim(0) == 1 and b.ndim(1) != 1:  # every example searches its own row for values of any shape
        shape = b.shape(1)
        flat = ops.reshape(ops.copy(b.whole(1)), shape=(b.size, math.prod(shape)))
        return ops.reshape(b.run(b.whole(0), flat, b.whole(2)), shape=(b.size, *shape))
    return b.run(*b.wholes())


@rule_for("run_lengths conj copy cast tril triu overlap_add view_as_real view_as_complex real imag frexp")
def _run_behind_examples(b: Batch) -> Any:
    """Ops of the last dimensions, or of each element: what stands in front is theirs already."""
    given = [x for x in b.values if isinstance(x, Tensor)]
    if b.op.name == "copy":
        return b.run(*given, memory_format=b.op.attrs["memory_format"])
    return b.run(*given)
