"""Batches of matrix products and factorisations, whose leading dimensions are batches already."""

from __future__ import annotations

import math
from typing import Any

from tritensor.func.rules.registry import Batch, loop_examples, rule_for
from tritensor.kernels.parts.view_arithmetic import reshaped
from tritensor.ops.table import ops


@rule_for("matmul")
def _matmul(b: Batch) -> Any:
    """Vectors become matrices; a batch beside one matrix is one product."""
    x, y = b.values
    m, n = b.ndim(0), b.ndim(1)
    if b.flags[0] and not b.flags[1] and n <= 2:  # (B, .., k) @ (k, c): B is one more of the leading dims
        return ops.matmul(x, y)
    if m == 1:
        x = ops.reshape(x, shape=(*x._array.shape[:-1], 1, x._array.shape[-1]))
    if n == 1:
        y = ops.reshape(y, shape=(*y._array.shape, 1))
    rank = max(m, n, 2)  # batches broadcast from behind: both operands get as many dimensions
    x, y = (_raise_rank(z, b.size if flag else None, rank) for z, flag in zip((x, y), b.flags, strict=True))
    out = ops.matmul(x, y)
    shape = list(out._array.shape)
    if n == 1:
        del shape[-1]
    if m == 1:
        del shape[-1 if n == 1 else -2]
    return ops.reshape(out, shape=tuple(shape)) if len(shape) != len(out._array.shape) else out


def _raise_rank(x: Any, size: int | None, rank: int) -> Any:
    """A matrix, or a batch of them, with ones between the examples and what each has."""
    if size is None:
        return x
    own = x._array.shape[1:]
    return x if len(own) == rank else ops.reshape(x, shape=(size, *(1,) * (rank - len(own)), *own))


@rule_for("linear")
def _linear(b: Batch) -> Any:
    """One weight for all examples: they are rows like any. A weight for each: a product of matrices."""
    x, weight, bias = b.values
    if b.flags[0] and not b.flags[1] and not b.flags[2]:
        return b.run(x, weight, bias)
    n = b.ndim(0)
    x = b.whole(0)
    x = reshaped(x, (b.size, math.prod(b.shape(0)[:-1]), b.shape(0)[-1]))
    w = ops.permute(b.whole(1), dims=(0, 2, 1)) if b.flags[1] else ops.permute(weight, dims=(1, 0))
    out = ops.matmul(x, w)
    if bias is not None:
        out = ops.add(out, ops.reshape(bias, shape=(b.size, 1, bias._array.shape[-1])) if b.flags[2] else bias)
    return reshaped(out, (b.size, *b.shape(0)[:-1], out._array.shape[-1])) if n != 2 else out


@rule_for("linear_activation linear_activation_by_result")
def _linear_activation(b: Batch) -> Any:
    """One weight for all examples: they are rows like any, and so are those of a residual. A weight for each: one product after the other."""
    if not b.flags[0] or b.flags[1] or b.flags[2]:
        return loop_examples(b)
    return b.run(*b.values) if len(b.values) < 4 else b.run(*b.values[:3], b.whole(3))


@rule_for(
    "solve_triangular cholesky cholesky_solve lu_factor pivots_to_matrix pivots_to_order solve inv det cofactors slogdet eigh eigvalsh eig",
    "eigvals matrix_exp ldl_factor ldl_solve qr geqrf svd svdvals add_product",
)
def _run_on_matrices(b: Batch) -> Any:
    return b.run(*b.wholes())


@rule_for("pinv")
def _invert(b: Batch) -> Any:
    """Tolerances that are tensors broadcast with the batch of the matrices, behind the examples."""
    lead = b.ndim(0) - 2
    given = [b.whole(0)]
    for i in (1, 2):
        x = b.values[i]
        if hasattr(x, "_array"):
            x = ops.reshape(x, shape=(b.size, *(1,) * (lead - b.ndim(i)), *b.shape(i))) if b.flags[i] else x
        given.append(x)
    return b.run(*given)


@rule_for("cdist")
def _measure(b: Batch) -> Any:
    """The op takes one batch dimension, into which the examples go."""
    x, y = b.whole(0), b.whole(1)
    lead = x._array.shape[:2]
    out = b.run(*[reshaped(z, (lead[0] * lead[1], *z._array.shape[2:])) for z in (x, y)])
    return ops.reshape(out, shape=(*lead, *out._array.shape[1:]))


@rule_for("attention flash_attention")
def _attend(b: Batch) -> Any:
    """The examples are one more of the leading dimensions; a mask of each example has ones behind them. With dropout each draws from the same place."""
    if b.attrs.get("p"):
        return loop_examples(b)
    mask = b.values[3] if len(b.values) > 3 else None
    if mask is not None and b.flags[3]:
        mask = ops.reshape(mask, shape=(b.size, *(1,) * (b.ndim(0) - b.ndim(3)), *b.shape(3)))
    return b.run(b.whole(0), b.whole(1), b.whole(2), mask)
