"""Matrix products: matmul and its named cases, sums of products (addmm and kin), outer, tensordot, einsum, nuclear norm."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor import dtypes
from tritensor.errors import ArgumentError, ShapeError
from tritensor.table import normal_dims, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import no_view, reshape_to
from tritensor.tensor.publishing.publish import function


def _dims(name: str, **wanted: tuple[Tensor, int]) -> None:
    """Refuse tensors of another number of dimensions than the name of the function promises."""
    for label, (x, ndim) in wanted.items():
        if x.ndim != ndim:
            raise ShapeError(f"{name}: {label} {tuple(x.shape)} has {x.ndim} dimensions; it must have {ndim} (matmul takes any)")


@function(out=True)
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Matrix product with numpy's rules: (..., m, k) @ (..., k, n), batches broadcast, a 1-d operand is a row or a column.

    Raises ShapeError where the inner sizes or the batches do not fit, DTypeError for bool and float8.
    """
    return ops.matmul(input, other)


@function(out=True)
def mm(input: Tensor, mat2: Tensor) -> Tensor:
    """(m, k) @ (k, n), without broadcasting."""
    if input.array.ndim != 2 or mat2.array.ndim != 2:
        _dims("mm", input=(input, 2), mat2=(mat2, 2))
    return ops.matmul(input, mat2)


@function(out=True)
def mv(input: Tensor, vec: Tensor) -> Tensor:
    """(m, k) @ (k,)."""
    _dims("mv", input=(input, 2), vec=(vec, 1))
    return ops.matmul(input, vec)


@function(out=True)
def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """(b, m, k) @ (b, k, n), one product for each of b, without broadcasting."""
    _dims("bmm", input=(input, 3), mat2=(mat2, 3))
    if input.shape[0] != mat2.shape[0]:
        raise ShapeError(
            f"bmm: input {tuple(input.shape)}, mat2 {tuple(mat2.shape)}: the batches {input.shape[0]} and {mat2.shape[0]} differ"
        )
    return ops.matmul(input, mat2)


@function(out=True)
def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """Sum of products of two vectors of one length, a 0-d tensor."""
    _dims("dot", input=(input, 1), tensor=(tensor, 1))
    return ops.matmul(input, tensor)


@function(out=True)
def vdot(input: Tensor, other: Tensor) -> Tensor:
    """dot of two vectors, the first conjugated."""
    _dims("vdot", input=(input, 1), other=(other, 1))
    return ops.matmul(ops.conj(input) if input.is_complex() else input, other)


@function(out=True)
def inner(input: Tensor, other: Tensor) -> Tensor:
    """Sum of products over the last dimension of both; with a 0-d operand, their product."""
    if not input.ndim or not other.ndim:
        return ops.mul(input, other)
    return tensordot(input, other, ([-1], [-1]))


@function(out=True, names=("ger",))
def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """input[i] * vec2[j]: (n,), (m,) to (n, m)."""
    _dims("outer", input=(input, 1), vec2=(vec2, 1))
    return ops.mul(reshape_to(input, (input.shape[0], 1)), vec2)


def _scaled(x: Tensor, factor: float) -> Tensor:
    return x if factor == 1 else ops.mul(x, factor)


def _added(input: Tensor, product: Tensor, beta: float, alpha: float) -> Tensor:
    """beta * input + alpha * product; with beta 0 input is not read, so its NaN does not spread."""
    product = _scaled(product, alpha)
    return product if beta == 0 else ops.add(_scaled(input, beta), product)


@function(inplace=True, out=True)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2); input broadcasts to the product's shape."""
    _dims("addmm", mat1=(mat1, 2), mat2=(mat2, 2))
    return _added(input, ops.matmul(mat1, mat2), beta, alpha)


@function(inplace=True, out=True)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec)."""
    _dims("addmv", mat=(mat, 2), vec=(vec, 1))
    return _added(input, ops.matmul(mat, vec), beta, alpha)


@function(inplace=True, out=True)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2)."""
    return _added(input, outer(vec1, vec2), beta, alpha)


@function(inplace=True, out=True)
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2)."""
    return _added(input, bmm(batch1, batch2), beta, alpha)


@function(inplace=True, out=True)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """beta * input + alpha * the sum over the batch of bmm(batch1, batch2)."""
    return _added(input, ops.sum(bmm(batch1, batch2), dim=(0,), keepdim=False), beta, alpha)


@function(method=False, out=True)
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, left to right."""
    if not matrices or any(len(x.array.shape) != 2 for x in matrices):
        shapes = ", ".join(str(tuple(x.array.shape)) for x in matrices)
        raise ShapeError(f"chain_matmul: {shapes or 'nothing'}; give one matrix or more, of two dimensions each")
    out = matrices[0]
    for m in matrices[1:]:
        out = mm(out, m)
    return out


@function(method=False, out=True)
def tensordot(a: Tensor, b: Tensor, dims: int | Tensor | Sequence[Any] = 2) -> Tensor:
    """Sum of products over `dims`: the last `dims` of a with the first of b, or a pair of lists that name them.

    Raises ShapeError where the named dimensions differ in size.
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise ShapeError(
                f"tensordot: dims {dims} for a {tuple(a.shape)} and b {tuple(b.shape)}; it must be between 0 and {min(a.ndim, b.ndim)}"
            )
        over_a, over_b = list(range(a.ndim - dims, a.ndim)), list(range(dims))
    else:
        over_a, over_b = (
            [d % x.ndim for d in ([given] if isinstance(given, int) else given)] for given, x in zip(dims, (a, b), strict=True)
        )
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


# ---------------------------------------------------------------- einsum


@function(method=False)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum of products in Einstein's notation: `einsum("bij,bjk->bik", x, y)`; "..." stands for broadcast dimensions.

    Also as operands with lists of numbers below 52 for letters: `einsum(x, [0, 1, 2], y, [0, 2, 3], [0, 1, 3])`.
    Operands are joined from left to right, each join one batched matrix product; a product lies in C order. Raises ValueError for an equation that
    cannot be read, ShapeError where one letter stands for two sizes.
    """
    if not isinstance(equation, str):
        equation, operands = _spelled(equation, *operands)
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    terms, output, sizes = _parse(equation, operands)
    current, labels = _diagonal(operands[0], terms[0])
    for at in range(1, len(operands)):
        other, other_labels = _diagonal(operands[at], terms[at])
        later = set(output).union(*terms[at + 1 :])
        if at == len(operands) - 1 and _leads(other_labels, labels, output):  # rows before columns, and nothing is left to copy
            current, labels, other, other_labels = other, other_labels, current, labels
        current, labels = _join(current, labels, other, other_labels, later, sizes)
    current, labels = _drop(current, labels, set(output))
    if list(output) == labels:
        return current
    y = ops.permute(current, dims=tuple(labels.index(c) for c in output))
    return y if len(operands) == 1 else y.contiguous()  # of one operand alone it is a view, of a product it lies in order


def _leads(a: list[str], b: list[str], output: list[str]) -> bool:
    """Whether the first letter of the output that only one of two operands has is one of a's."""
    alone = [c for c in output if (c in a) != (c in b)]
    return bool(alone) and alone[0] in a


def _spelled(*given: Any) -> tuple[str, tuple[Any, ...]]:
    """The equation and operands of einsum's other form: operand, numbers, operand, numbers, ..., and perhaps the output's numbers."""
    letters = string.ascii_uppercase + string.ascii_lowercase  # the order in which an output that is not given comes

    def term(numbers: Any) -> str:
        for n in numbers:
            if n is not Ellipsis and not (isinstance(n, int) and 0 <= n < len(letters)):
                raise ArgumentError(f"einsum: {n!r} in {numbers!r} is no number from 0 to {len(letters) - 1} and no Ellipsis")
        return "".join(["..." if n is Ellipsis else letters[n] for n in numbers])

    left = ",".join([term(numbers) for numbers in given[1::2]])
    return (f"{left}->{term(given[-1])}" if len(given) % 2 else left), given[: len(given) - len(given) % 2 : 2]


def _parse(equation: str, operands: Sequence[Tensor]) -> tuple[list[list[str]], list[str], dict[str, int]]:
    """Letters of each operand and of the output, the ellipsis spelled out in letters of its own, and the size of each letter."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    given = left.split(",")
    if len(given) != len(operands):
        raise ArgumentError(f"einsum: {equation!r} names {len(given)} operands, {len(operands)} were given")
    terms, widest = [], 0
    for term, x in zip(given, operands, strict=True):
        letters = term.replace("...", "")
        if not all(c in string.ascii_letters for c in letters):
            raise ArgumentError(f"einsum: {term!r} in {equation!r}: a term is letters and at most one ellipsis")
        extra = x.ndim - len(letters)
        if extra < 0 or (extra and "..." not in term):
            raise ShapeError(f"einsum: {term!r} names {len(letters)} dimensions, its operand {tuple(x.shape)} has {x.ndim}")
        dots = [f"{i}" for i in range(extra, 0, -1)]  # counted from the right, as broadcasting does
        before, _, after = term.partition("...")
        terms.append([*before, *dots, *after] if "..." in term else list(letters))
        widest = max(widest, extra if "..." in term else 0)
    all_dots = [f"{i}" for i in range(widest, 0, -1)]
    if arrow:
        first, dotted, last = right.partition("...")
        output = [*first, *(all_dots if dotted else []), *last]
    else:
        letters_given = [c for t in terms for c in t]
        output = all_dots + sorted(c for c in set(letters_given) if letters_given.count(c) == 1 and c.isalpha())
    sizes: dict[str, int] = {}
    for labels, x in zip(terms, operands, strict=True):
        for c, n in zip(labels, x.shape, strict=True):
            if sizes.setdefault(c, n) != n:
                if 1 not in (n, sizes[c]):
                    raise ShapeError(f"einsum: {equation!r}: {c!r} is {sizes[c]} in one operand and {n} in another")
                sizes[c] = max(n, sizes[c])
    unknown = [c for c in output if c not in sizes]
    if unknown or len(set(output)) != len(output):
        raise ArgumentError(f"einsum: {equation!r}: the output must name letters of the operands, each once")
    return terms, output, sizes


def _diagonal(x: Tensor, labels: list[str]) -> tuple[Tensor, list[str]]:
    """x with repeated letters reduced to their diagonal."""
    labels = list(labels)
    for c in sorted(set(labels)):
        while labels.count(c) > 1:
            first = labels.index(c)
            second = labels.index(c, first + 1)
            x = x.diagonal(0, first, second)
            del labels[second], labels[first]
            labels.append(c)
    return x, labels


def _drop(x: Tensor, labels: list[str], keep: set[str]) -> tuple[Tensor, list[str]]:
    """x summed over the letters that nothing needs any more."""
    gone = tuple(i for i, c in enumerate(labels) if c not in keep)
    if gone:
        x = ops.sum(x, dim=gone, keepdim=False)
    return x, [c for c in labels if c in keep]


def _join(a: Tensor, la: list[str], b: Tensor, lb: list[str], later: set[str], sizes: dict[str, int]) -> tuple[Tensor, list[str]]:
    """One batched product of two operands: letters in both that are needed later are the batch, the others are summed."""
    a, la = _drop(a, la, later | set(lb))
    b, lb = _drop(b, lb, later | set(la))
    shared = [c for c in la if c in lb]
    batch, summed = [c for c in shared if c in later], [c for c in shared if c not in later]
    rows, cols = [c for c in la if c not in lb], [c for c in lb if c not in la]
    a = _arranged(a, la, (batch, rows, summed), sizes)
    b = _arranged(b, lb, (batch, summed, cols), sizes)
    left = [*batch, *rows, *cols]
    return reshape_to(ops.matmul(a, b), tuple(sizes[c] for c in left)), left


def _arranged(x: Tensor, labels: list[str], groups: tuple[list[str], ...], sizes: dict[str, int]) -> Tensor:
    """x as three dimensions, one for each group of letters, sizes of 1 broadcast to the letter's."""
    order = [c for g in groups for c in g]
    x = ops.permute(x, dims=tuple(labels.index(c) for c in order))
    full = tuple(sizes[c] for c in order)
    if tuple(x.shape) != full:
        x = ops.expand(x, shape=full)
    return reshape_to(x, tuple(math.prod(sizes[c] for c in g) for g in groups))


# ---------------------------------------------------------------- nuclear norm, from matrix products alone

# x (a + b x^2 + c x^4), taken on the singular values: LIFT multiplies small ones by 3.4 and keeps large ones between 0.7 and 1.2;
# SETTLE takes those to 1, each step squaring the distance.
_LIFT = (3.4445, -4.7750, 2.0315)
_SETTLE = (1.5, -0.5, 0.0)
_LIFTS = {np.dtype(np.float32): 16, np.dtype(np.float64): 32}  # 3.4^n passes 1 / eps: what is smaller adds nothing to the sum
_SETTLES = 6


def nuclear_norm(x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    """sum of singular values of the matrices along two dims = <x, Q>, Q x's orthogonal factor U V^T, by the Newton-Schulz iteration.

    Its gradient is Q; along singular vectors of singular value 0, where it has none, it is 0.
    """
    if dim is None and x.ndim == 2:
        dim = (0, 1)
    dims = () if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if len(dims) != 2:
        raise ShapeError(f"norm: p='nuc' of x {tuple(x.shape)} over dim {dim}: it is a norm of matrices; give the two dims that hold them")
    normal = normal_dims("norm", dims, x.ndim)
    others = tuple(a for a in range(x.ndim) if a not in normal)
    given = x.array.dtype
    m = ops.permute(ops.cast(x, dtype=dtypes.accumulator(given)), dims=(*others, *normal))
    if m.shape[-1] > m.shape[-2]:  # the smaller product x^T x
        m = m.transpose(-2, -1)
    y = ops.cast(ops.sum(ops.mul(m, _orthogonal_factor(m)), dim=(m.ndim - 2, m.ndim - 1), keepdim=False), dtype=given)
    return no_view(ops.reshape(y, shape=tuple(1 if a in normal else n for a, n in enumerate(x.shape)))) if keepdim else y


def _orthogonal_factor(m: Tensor) -> Tensor:
    """U V^T of m = U S V^T, (..., rows, columns); of the directions whose singular values are not 0."""
    last = (m.ndim - 2, m.ndim - 1)
    if 0 in m.shape:
        return m
    size = ops.amax(ops.abs(m.detach()), dim=last, keepdim=True)
    q = ops.div(m, ops.where(ops.eq(size, 0.0), 1.0, size))  # so that squares neither overflow nor vanish
    length = ops.sqrt(ops.sum(ops.mul(q.detach(), q.detach()), dim=last, keepdim=True))
    q = ops.div(q, ops.where(ops.eq(length, 0.0), 1.0, length))  # no singular value is above 1
    for a, b, c in (_LIFT,) * _LIFTS[m.array.dtype] + (_SETTLE,) * _SETTLES:
        square = ops.matmul(q.transpose(-2, -1), q)
        factor = ops.mul(square, b) if c == 0 else ops.add(ops.mul(square, b), ops.mul(ops.matmul(square, square), c))
        q = ops.add(ops.mul(q, a), ops.matmul(q, factor))
    return q
