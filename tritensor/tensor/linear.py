"""Matrix products: matmul and its named cases, sums of products (addmm and kin), outer, tensordot and einsum."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence
from typing import Any

from tritensor.errors import ShapeError
from tritensor.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.publish import function
from tritensor.tensor.shaping import reshape_to


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
    """dot of two real vectors."""
    _dims("vdot", input=(input, 1), other=(other, 1))
    return ops.matmul(input, other)


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


@function(method=False, names=("linalg_multi_dot",))
def chain_matmul(*matrices: Tensor) -> Tensor:
    """The product of several matrices, left to right."""
    if not matrices:
        raise ValueError("chain_matmul: no matrix was given")
    out = matrices[0]
    for m in matrices[1:]:
        out = mm(out, m)
    return out


@function(method=False)
def tensordot(a: Tensor, b: Tensor, dims: int | Tensor | Sequence[Any] = 2) -> Tensor:
    """Sum of products over `dims`: the last `dims` of a with the first of b, or a pair of lists that name them.

    Raises ShapeError where the named dimensions differ in size.
    """
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
def einsum(equation: str, *operands: Any) -> Tensor:
    """Sum of products in Einstein's notation: `einsum("bij,bjk->bik", x, y)`; "..." stands for broadcast dimensions.

    Operands are joined from left to right, each join one batched matrix product. Raises ValueError for an equation that
    cannot be read, ShapeError where one letter stands for two sizes.
    """
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    terms, output, sizes = _parse(equation, operands)
    current, labels = _diagonal(operands[0], terms[0])
    for at in range(1, len(operands)):
        other, other_labels = _diagonal(operands[at], terms[at])
        later = set(output).union(*terms[at + 1 :])
        current, labels = _join(current, labels, other, other_labels, later, sizes)
    current, labels = _drop(current, labels, set(output))
    return ops.permute(current, dims=tuple(labels.index(c) for c in output)) if list(output) != labels else current


def _parse(equation: str, operands: Sequence[Tensor]) -> tuple[list[list[str]], list[str], dict[str, int]]:
    """Letters of each operand and of the output, the ellipsis spelled out in letters of its own, and the size of each letter."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    given = left.split(",")
    if len(given) != len(operands):
        raise ValueError(f"einsum: {equation!r} names {len(given)} operands, {len(operands)} were given")
    terms, widest = [], 0
    for term, x in zip(given, operands, strict=True):
        letters = term.replace("...", "")
        if not all(c in string.ascii_letters for c in letters):
            raise ValueError(f"einsum: {term!r} in {equation!r}: a term is letters and at most one ellipsis")
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
        raise ValueError(f"einsum: {equation!r}: the output must name letters of the operands, each once")
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
