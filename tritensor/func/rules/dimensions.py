"""Batches of ops that name dimensions: reductions, scans, softmax, sorts, Fourier transforms. The examples stand in front; the others move up by one."""

from __future__ import annotations

from typing import Any

from tritensor.func.rules.registry import Batch, batched, looped
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


def up(dim: int, ndim: int) -> int:
    """A dimension of an example, in the batch."""
    return dim % max(ndim, 1) + 1


def all_up(dims: Any, ndim: int) -> tuple[int, ...]:
    """Several; None stands for all."""
    if dims is None:
        return tuple(range(1, ndim + 1))
    if isinstance(dims, int):
        return (up(dims, ndim),)
    return tuple([up(d, ndim) for d in dims])


def _each(made: Any, change: Any) -> Any:
    return tuple([change(y) for y in made]) if isinstance(made, tuple) else change(made)


@batched("sum mean prod var sum_of_squares amax amin any all")
def _reduced(b: Batch) -> Any:
    """Several dims at once; an example without dimensions has one to reduce for the while."""
    n = b.ndim(0)
    if n:
        return b.run(b.values[0], dim=all_up(b.attrs["dim"], n))
    return b.run(ops.reshape(b.values[0], shape=(b.size, 1)), dim=(1,), keepdim=False)


@batched("argmax argmin max_dim min_dim")
def _extreme(b: Batch) -> Any:
    """One dim, or None: all, and then keepdim gives a 1 for each."""
    n, dim, x = b.ndim(0), b.attrs["dim"], b.values[0]
    if n == 0:
        return b.run(ops.reshape(x, shape=(b.size, 1)), dim=1, keepdim=False)
    if dim is None:
        made = b.run(ops.reshape(ops.copy(x), shape=(b.size, -1 if 0 in x.array.shape else x.array.size // b.size)), dim=1, keepdim=False)
        return _each(made, lambda y: ops.reshape(y, shape=(b.size, *(1,) * n))) if b.attrs["keepdim"] else made
    return b.run(x, dim=up(dim, n))


@batched("softmax log_softmax cumsum cumprod cummax cummin logcumsumexp sort argsort sort_values topk linear_scan glu")
def _along(b: Batch) -> Any:
    """One dim, and results of the inputs' dimensions."""
    n = b.ndim(0)
    if n:
        return b.run(*b.wholes(), dim=up(b.attrs["dim"], n))
    made = b.run(*[ops.reshape(x, shape=(b.size, 1)) for x in b.wholes()], dim=1)
    return _each(made, lambda y: ops.reshape(y, shape=(b.size,)))


@batched("rank_place")
def _rank(b: Batch) -> Any:
    """As the others, but an example without dimensions is its own median."""
    return b.run(b.values[0], dim=up(b.attrs["dim"], b.ndim(0))) if b.ndim(0) else looped(b)


@batched("flip roll")
def _reordered(b: Batch) -> Any:
    return b.run(b.values[0], dims=all_up(b.attrs["dims"], b.ndim(0)))


@batched("fft_c2c fft_of_real")
def _transformed(b: Batch) -> Any:
    return b.run(b.values[0], dims=all_up(b.attrs["dims"], b.ndim(0)))


@batched("fft_r2c fft_c2r")
def _half_transformed(b: Batch) -> Any:
    return b.run(b.values[0], dim=up(b.attrs["dim"], b.ndim(0)))


@batched("cat stack")
def _joined(b: Batch) -> Any:
    n = b.ndim(0)
    dim = b.attrs["dim"]
    if b.op.name == "stack":
        return b.run(*b.wholes(), dim=dim % (n + 1) + 1)
    return b.run(*b.wholes(), dim=up(dim, n))


@batched("searchsorted")
def _searched(b: Batch) -> Any:
    """Rows of one dimension serve values of any; else the leading sizes of both agree."""
    rows, values, sorter = b.values
    if b.ndim(0) == 1 and not b.flags[0] and (sorter is None or not b.flags[2]):
        return b.run(rows, values, sorter)
    if b.ndim(0) == 1 and b.ndim(1) != 1:  # every example searches its own row for values of any shape
        shape = b.shape(1)
        flat = ops.reshape(ops.copy(b.whole(1)), shape=(b.size, _count(shape)))
        return ops.reshape(b.run(b.whole(0), flat, b.whole(2)), shape=(b.size, *shape))
    return b.run(*b.wholes())


def _count(shape: tuple[int, ...]) -> int:
    n = 1
    for m in shape:
        n *= m
    return n


@batched("run_lengths conj copy cast tril triu overlap_add view_as_real view_as_complex real imag frexp")
def _leading(b: Batch) -> Any:
    """Ops of the last dimensions, or of each element: what stands in front is theirs already."""
    given = [x for x in b.values if isinstance(x, Tensor)]
    if b.op.name == "copy":
        return b.run(*given, memory_format=b.op.attrs["memory_format"])
    return b.run(*given)
