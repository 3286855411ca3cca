"""Matrix products: matmul and its named cases, outer, tensordot, nuclear norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.ops.table import normal_dims, ops, sized_dim
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import forget_base, reshape_to
from tritensor.tensor.public_api.publish import function, namespaces, twin


def require_ndim(name: str, **wanted: tuple[Tensor, int]) -> None:
    """Refuse tensors of another number of dimensions than the name of the function promises."""
    for label, (x, ndim) in wanted.items():
        if x.ndim != ndim:
            raise ShapeError(f"{name}: {label} {tuple(x.shape)} has {x.ndim} dimensions; it must have {ndim} (matmul takes any)")


def require_same_batch(name: str, **pair: Tensor) -> None:
    """Refuse two tensors that are not (batch, rows, columns) of one number of matrices."""
    require_ndim(name, **{label: (x, 3) for label, x in pair.items()})
    (first, a), (second, b) = pair.items()
    if a.shape[0] != b.shape[0]:
        raise ShapeError(f"{name}: {first} {tuple(a.shape)}, {second} {tuple(b.shape)}: the batches {a.shape[0]} and {b.shape[0]} differ")


@function(out=True)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Matrix product with numpy's rules: (..., m, k) @ (..., k, n), batches broadcast, a 1-d operand is a row or a column.

    Raises ShapeError where the inner sizes or the batches do not fit, DTypeError for bool and float8.

    >>> tt.ones(5, 2, 3).matmul(tt.ones(3, 4)).shape
    tritensor.Size([5, 2, 4])
    >>> tt.ones(2, 3) @ tt.ones(3)
    tensor([3., 3.])
    """
    return ops.matmul(input, other)


namespaces.setdefault("linalg", {})["matmul"] = twin(matmul, "matmul", "tritensor.linalg")


@function(out=True)
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """(m, k) @ (k, n), without broadcasting."""
    # Asked here first: building the keywords costs more than the test, and mm is hot.
    if input._array.ndim != 2 or mat2._array.ndim != 2:
        require_ndim("mm", input=(input, 2), mat2=(mat2, 2))
    return ops.matmul(input, mat2)


@function(method=False, names=("dsmm",))
def spmm(input: Tensor, mat2: Tensor) -> Tensor:
    """mm, of matrices that PyTorch also takes as sparse ones: (m, k) @ (k, n)."""
    return mm(input, mat2)


@function(out=True)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """(m, k) @ (k,)."""
    require_ndim("mv", input=(input, 2), vec=(vec, 1))
    return ops.matmul(input, vec)


@function(out=True)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """(b, m, k) @ (b, k, n), one product for each of b, without broadcasting."""
    require_same_batch("bmm", input=input, mat2=mat2)
    return ops.matmul(input, mat2)


@function(out=True)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Sum of products of two vectors of one length, a 0-d tensor."""
    require_ndim("dot", input=(input, 1), tensor=(tensor, 1))
    return ops.matmul(input, tensor)


@function(out=True)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """dot of two vectors, the first conjugated."""
    require_ndim("vdot", input=(input, 1), other=(other, 1))
    return ops.matmul(input.conj(), other)


@function(out=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sum of products over the last dimension of both; with a 0-d operand, their product."""
    if not input.ndim or not other.ndim:
        return ops.mul(input, other)
    return tensordot(input, other, ([-1], [-1]))


@function(out=True, names=("ger",))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """input[i] * vec2[j]: (n,), (m,) to (n, m)."""
    require_ndim("outer", input=(input, 1), vec2=(vec2, 1))
    return ops.mul(reshape_to(input, (input.shape[0], 1)), vec2)


def _parse_summed_dims(a: Tensor, b: Tensor, dims: Any) -> list[list[int]]:
    """The dimensions of a and of b that tensordot sums over, counted from the front."""
    # PyTorch takes the two lists as a tensor of two rows.
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ShapeError(
                f"tensordot: dims {dims} for a {tuple(a.shape)} and b {tuple(b.shape)}; it must be between 0 and {min(a.ndim, b.ndim)}"
            )
        return [list(range(a.ndim - dims, a.ndim)), list(range(dims))]
    if len(dims) != 2:
        raise ShapeError(f"tensordot: dims {dims} are {len(dims)} lists; give two, of a's dimensions and of b's")
    found = []
    for given, x in zip(dims, (a, b), strict=True):
        found.append([sized_dim("tensordot", d, x.ndim) for d in ([given] if isinstance(given, int) else given)])
        if len(set(found[-1])) < len(found[-1]):
            raise ShapeError(f"tensordot: dims {given} name a dimension twice; name each once")
    return found


@function(method=False, out=True)
def tensordot(a: Tensor, b: Tensor, dims: int | Tensor | Sequence[Any] = 2) -> Tensor:
    """Sum of products over `dims`: the last `dims` of a with the first of b, or a pair of lists that name them.

    Raises ShapeError where the named dimensions differ in size or one is named twice, IndexError for one that is not there.
    """
    over_a, over_b = _parse_summed_dims(a, b, dims)
    if len(over_a) == len(over_b):
        # A size of 1 stretches: what is summed with it is summed first.
        gone_a = [p for p, q in zip(over_a, over_b, strict=True) if a.shape[p] != 1 and b.shape[q] == 1]
        gone_b = [q for p, q in zip(over_a, over_b, strict=True) if a.shape[p] == 1 and b.shape[q] != 1]
        a = ops.sum(a, dim=tuple(sorted(gone_a)), keepdim=True) if gone_a else a
        b = ops.sum(b, dim=tuple(sorted(gone_b)), keepdim=True) if gone_b else b
    sizes_a, sizes_b = [a.shape[d] for d in over_a], [b.shape[d] for d in over_b]
    if sizes_a != sizes_b:
        raise ShapeError(
            f"tensordot: a {tuple(a.shape)} over {over_a}, b {tuple(b.shape)} over {over_b}: the sizes {sizes_a} and {sizes_b} differ"
        )
    free_a, free_b = [d for d in range(a.ndim) if d not in over_a], [d for d in range(b.ndim) if d not in over_b]
    rows, inner_size, cols = (math.prod(sizes) for sizes in ([a.shape[d] for d in free_a], sizes_a, [b.shape[d] for d in free_b]))
    left = reshape_to(ops.permute(a, dims=(*free_a, *over_a)), (rows, inner_size))
    right = reshape_to(ops.permute(b, dims=(*over_b, *free_b)), (inner_size, cols))
    return reshape_to(ops.matmul(left, right), (*(a.shape[d] for d in free_a), *(b.shape[d] for d in free_b)))


# ---------------------------------------------------------------- nuclear norm, from matrix products alone

# x (a + b x^2 + c x^4), taken on the singular values: LIFT multiplies small ones by 3.4 and keeps large ones between 0.7 and 1.2;
# SETTLE takes those to 1, each step squaring the distance.
_LIFT = (3.4445, -4.7750, 2.0315)
_CONVERGE = (1.5, -0.5, 0.0)
_LIFT_STEPS = {np.dtype(np.float32): 16, np.dtype(np.float64): 32}  # 3.4^n passes 1 / eps: what is smaller adds nothing to the sum
_CONVERGE_STEPS = 6


def nuclear_norm(x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """sum of singular values of the matrices along two dims = <x, Q>, Q x's orthogonal factor U V^T, by the Newton-Schulz iteration.

    Its gradient is Q; along singular vectors of singular value 0, where it has none, it is 0.
    """
    # A matrix's two dims go without saying.
    if dim is None and x.ndim == 2:
        dim = (0, 1)
    dims = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 2:
        raise ShapeError(f"norm: p='nuc' of x {tuple(x.shape)} over dim {dim}: it is a norm of matrices; give the two dims that hold them")
    normal = normal_dims("norm", dims, x.ndim)
    others = tuple(a for a in range(x.ndim) if a not in normal)
    given = x._array.dtype
    kept = tuple(1 if a in normal else n for a, n in enumerate(x.shape))
    if x.is_complex():  # which live where LAPACK is
        y = ops.sum(ops.svdvals(ops.permute(x, dims=(*others, *normal))), dim=(x.ndim - 2,), keepdim=False)
        return forget_base(ops.reshape(y, shape=kept)) if keepdim else y
    m = ops.permute(ops.cast(x, dtype=dtypes.accumulator(given)), dims=(*others, *normal))
    if m.shape[-1] > m.shape[-2]:  # the smaller product x^T x
        m = m.transpose(-2, -1)
    y = ops.cast(ops.sum(ops.mul(m, _find_orthogonal_factor(m)), dim=(m.ndim - 2, m.ndim - 1), keepdim=False), dtype=given)
    return forget_base(ops.reshape(y, shape=kept)) if keepdim else y


def _find_orthogonal_factor(m: Tensor) -> Tensor:
    """U V^T of m = U S V^T, (..., rows, columns); of the directions whose singular values are not 0."""
    last = (m.ndim - 2, m.ndim - 1)
    if 0 in m.shape:
        return m
    size = ops.amax(ops.abs(m.detach()), dim=last, keepdim=True)
    q = ops.div(m, ops.where(ops.eq(size, 0.0), 1.0, size))  # so that squares neither overflow nor vanish
    length = ops.sqrt(ops.sum(ops.mul(q.detach(), q.detach()), dim=last, keepdim=True))
    q = ops.div(q, ops.where(ops.eq(length, 0.0), 1.0, length))  # no singular value is above 1
    for a, b, c in (_LIFT,) * _LIFT_STEPS[m._array.dtype] + (_CONVERGE,) * _CONVERGE_STEPS:
        square = ops.matmul(q.transpose(-2, -1), q)
        factor = ops.mul(square, b) if c == 0 else ops.add(ops.mul(square, b), ops.mul(ops.matmul(square, square), c))
        q = ops.add(ops.mul(q, a), ops.matmul(q, factor))
    return q
