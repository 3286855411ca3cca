"""Products of vectors along a dim, chains of matrices in their best order, the trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.autograd.saved import borrow_saved
from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.ops.table import broadcast, normal_dim, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import reshape_to, slice_along
from tritensor.tensor.public_api.publish import function


def _require_same_dtype(name: str, a: Tensor, b: Tensor, labels: tuple[str, str] = ("input", "other")) -> None:
    if a._array.dtype != b._array.dtype:
        raise DTypeError(f"{name}: {labels[0]} is {a.dtype.name}, {labels[1]} {b.dtype.name}; cast one so that both are the same")


def _multiply_vectors(name: str, input: Tensor, other: Tensor, dim: int) -> Tensor:
    """a x b along dim: (a1 b2 - a2 b1, a2 b0 - a0 b2, a0 b1 - a1 b0)."""
    given = f"{name}: input {tuple(input.shape)}, other {tuple(other.shape)}"
    if input.ndim != other.ndim:
        raise ShapeError(f"{given}: the numbers of dimensions differ; reshape one")
    d = normal_dim(name, dim, input.ndim)
    if not input.ndim or input.shape[d] != 3 or other.shape[d] != 3:
        raise ShapeError(f"{given}: both must have size 3 along dim {dim}")
    broadcast(name, tuple(input.shape), tuple(other.shape), labels=("input", "other"))
    _require_same_dtype(name, input, other)
    a, b = ([slice_along(x, d, i, i + 1) for i in range(3)] for x in (input, other))
    parts = [ops.sub(ops.mul(a[i], b[j]), ops.mul(a[j], b[i])) for i, j in ((1, 2), (2, 0), (0, 1))]
    return ops.cat(*parts, dim=d)


@function(out=True)
def cross(input: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """The vector product along dim, which has size 3; without dim the first dimension of size 3. Batches broadcast."""
    if dim is None:
        # The legacy default of torch.cross: the first dim of size 3 in both.
        dim = next((d for d, (m, n) in enumerate(zip(input.shape, other.shape, strict=False)) if m == n == 3), None)
        if dim is None:
            raise ShapeError(f"cross: input {tuple(input.shape)}, other {tuple(other.shape)}: no dimension has size 3 in both; give dim")
    return _multiply_vectors("cross", input, other, dim)


def linalg_cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The vector product along dim, which has size 3; batches broadcast."""
    return _multiply_vectors("cross", input, other, dim)


linalg_cross.__name__ = linalg_cross.__qualname__ = "cross"
function(linalg_cross, namespace="linalg", out=True)


def linalg_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal of two dimensions, the last two, as the last one; `offset` above (positive) or below the main one. A view."""
    n = A.ndim
    return ops.diagonal(A, offset=int(offset), dim1=normal_dim("diagonal", dim1, n), dim2=normal_dim("diagonal", dim2, n))


linalg_diagonal.__name__ = linalg_diagonal.__qualname__ = "diagonal"
function(linalg_diagonal, namespace="linalg", also={"input": "A"})


@function(namespace="linalg", out=True)
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """sum of conj(x) y along dim; the other dims broadcast. Raises DTypeError for integers and for two types."""
    if x.dtype.kind not in ("float", "complex"):
        raise DTypeError(f"vecdot: x is {x.dtype.name}; vecdot takes floating and complex types; cast it with .to(float32)")
    _require_same_dtype("vecdot", x, y, ("x", "y"))
    x = x.conj()
    shape = broadcast("vecdot", tuple(x.shape), tuple(y.shape), labels=("x", "y"))
    d = normal_dim("vecdot", dim, len(shape))
    if x._array.dtype.itemsize > 2:
        return ops.sum(ops.mul(x, y), dim=(d,), keepdim=False)
    wide = [ops.cast(v, dtype=np.dtype(np.float32)) for v in (x, y)]  # a product of 16-bit numbers is not rounded before it is summed
    return ops.cast(ops.sum(ops.mul(*wide), dim=(d,), keepdim=False), dtype=x._array.dtype)


@function
def trace(x: Tensor) -> Tensor:
    """The sum of a matrix's diagonal; int64 of integers. Raises ShapeError for what is no matrix, DTypeError for bools."""
    if x.ndim != 2:
        raise ShapeError(f"trace: input {tuple(x.shape)} has {x.ndim} dimensions; give a matrix")
    if x.dtype.kind == "bool":
        raise DTypeError("trace: input is bool; cast it with .to(int64)")
    return ops.sum(ops.diagonal(x, offset=0, dim1=0, dim2=1), dim=(0,), keepdim=False)


# ---------------------------------------------------------------- chains


def find_best_order(sizes: Sequence[int]) -> list[list[int]]:
    """splits[i][j]: where to part the matrices i to j, matrix i of sizes[i] x sizes[i + 1], so that the fewest multiplications are done.

    Cormen, Leiserson, Rivest, Stein, "Introduction to algorithms", chapter on dynamic programming.
    """
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    split = [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            found = [(cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i][j], split[i][j] = min(found)
    return split


def _multiply_chain(name: str, matrices: Sequence[Tensor]) -> Tensor:
    """The product of matrices in the order that takes the fewest multiplications."""
    for k, (a, b) in enumerate(zip(matrices, matrices[1:], strict=False)):
        if a.shape[-1] != b.shape[0]:
            raise ShapeError(f"{name}: matrices {k} {tuple(a.shape)} and {k + 1} {tuple(b.shape)} cannot be multiplied")
    split = find_best_order([matrices[0].shape[0], *[m.shape[1] for m in matrices]])

    def product(i: int, j: int) -> Tensor:
        return matrices[i] if i == j else ops.matmul(product(i, split[i][j]), product(split[i][j] + 1, j))

    return product(0, len(matrices) - 1)


@function(method=False, out=True)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, in the order that takes the fewest multiplications."""
    # chain_matmul([a, b]) is a common mistake, whose own error would speak of list attributes.
    for i, x in enumerate(matrices):
        if not isinstance(x, Tensor):
            raise TypeError(f"chain_matmul: argument {i} is a {type(x).__name__}; give matrices one by one, chain_matmul(a, b, c)")
    if not matrices or any(len(x._array.shape) != 2 for x in matrices):
        shapes = ", ".join(str(tuple(x._array.shape)) for x in matrices)
        raise ShapeError(f"chain_matmul: {shapes or 'nothing'}; give one matrix or more, of two dimensions each")
    return _multiply_chain("chain_matmul", matrices)


@function(namespace="linalg", out=True)
@borrow_saved
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of two matrices or more, in the order that takes the fewest multiplications; the first may be a row, the last a column, of one dim.

    Raises ShapeError for others, and for sizes that do not fit; DTypeError for several types.
    """
    given: Any = list(tensors)
    if len(given) < 2:
        raise ShapeError(f"multi_dot: {len(given)} tensors; give two or more")
    for k, x in enumerate(given):
        ends = k in (0, len(given) - 1)
        if x.ndim != 2 and not (ends and x.ndim == 1):
            raise ShapeError(f"multi_dot: tensor {k} has shape {tuple(x.shape)}; it must have two dimensions{', or one' if ends else ''}")
        _require_same_dtype("multi_dot", given[0], x, ("tensor 0", f"tensor {k}"))
    first, last = given[0].ndim, given[-1].ndim
    if first == 1:
        given[0] = reshape_to(given[0], (1, given[0].shape[0]))
    if last == 1:
        given[-1] = reshape_to(given[-1], (given[-1].shape[0], 1))
    y = _multiply_chain("multi_dot", given)
    return reshape_to(y, tuple(y.shape)[2 - first if first == 1 else 0 : 1 if last == 1 else 2])
