"""einsum: sums of products in Einstein's notation, pair by pair as batched matrix products, in an order that keeps them small."""

from __future__ import annotations

import functools
import importlib
import importlib.util
import math
import string
from collections.abc import Sequence
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import reshape_to
from tritensor.tensor.public_api.publish import function


@function(method=False)
def einsum(equation: Any, *operands: Any) -> Tensor:
    """Sum of products in Einstein's notation: `einsum("bij,bjk->bik", x, y)`; "..." stands for broadcast dimensions.

    Also as operands with lists of numbers below 52 for letters: `einsum(x, [0, 1, 2], y, [0, 2, 3], [0, 1, 3])`.
    Operands are joined in pairs, from left to right or in opt_einsum's order where that is installed, each join one batched matrix product; a product
    lies in C order. Raises ValueError for an equation that cannot be read, ShapeError where one letter stands for two sizes.

    >>> a, b = tt.arange(6.0).reshape(2, 3), tt.ones(3, 2)
    >>> tt.einsum("ij,jk->ik", a, b)  # a @ b
    tensor([[ 3.,  3.],
            [12., 12.]])
    >>> tt.einsum("ij->", a)  # the sum
    tensor(15.)
    >>> tt.einsum("ii->i", tt.eye(3))  # the diagonal
    tensor([1., 1., 1.])
    """
    if not isinstance(equation, str):
        equation, operands = _write_equation(equation, *operands)
    # einsum(equation, [a, b]): PyTorch's older form.
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    terms, output, sizes = _parse(equation, operands)
    if not operands:
        raise ArgumentError(f"einsum: {equation!r} and no operand; give one for each term")
    held = [_take_diagonals(x, labels) for x, labels in zip(operands, terms, strict=True)]
    for pair in _find_path(terms, output, sizes, operands) if len(held) > 2 else [(0, 1)] * (len(held) > 1):
        _join_chosen(held, pair, output, sizes)
    (current, labels) = held[0]
    current, labels = _sum_out(current, labels, set(output))
    if list(output) == labels:
        return current
    y = ops.permute(current, dims=tuple(labels.index(c) for c in output))
    return y if len(operands) == 1 else y.contiguous()  # of one operand alone it is a view, of a product it lies in order


def _join_chosen(held: list[tuple[Tensor, list[str]]], chosen: Sequence[int], output: list[str], sizes: dict[str, int]) -> None:
    """The chosen operands joined one after the other; what comes of it stands last."""
    picked = [held[i] for i in sorted(chosen)]
    for i in sorted(chosen, reverse=True):
        del held[i]
    current, labels = picked[0]
    # Labels that no later operand and no output has are summed in this product.
    for at, (other, other_labels) in enumerate(picked[1:], 2):
        later = set(output).union(*[left for _, left in held], *[left for _, left in picked[at:]])
        last = not held and at == len(picked)
        if last and _comes_first(other_labels, labels, output):  # rows before columns, and nothing is left to copy
            current, labels, other, other_labels = other, other_labels, current, labels
        current, labels = _multiply_pair(current, labels, other, other_labels, later, sizes)
    held.append((current, labels))


@functools.cache
def _opt_einsum() -> Any:
    """The package opt_einsum where it is installed, None elsewhere."""
    if importlib.util.find_spec("opt_einsum") is None:
        return None
    return importlib.import_module("opt_einsum")


def _find_path(terms: list[list[str]], output: list[str], sizes: dict[str, int], operands: Sequence[Tensor]) -> list[tuple[int, ...]]:
    """Which operands to join at each step: opt_einsum's path where it is installed, else from left to right, as PyTorch does.

    Positions are those in the list of what is left, to whose end the joined one goes.
    """
    package = _opt_einsum()
    # Left to right is PyTorch's order without opt_einsum.
    if package is None:
        n = len(terms)
        return [(0, 1), *[(0, n - 1 - k) for k in range(1, n - 1)]]  # the joined one is last, the next operand first
    letters = {c: package.get_symbol(k) for k, c in enumerate(sizes)}
    equation = ",".join(["".join([letters[c] for c in t]) for t in terms]) + "->" + "".join([letters[c] for c in output])
    return list(package.contract_path(equation, *[tuple(x.shape) for x in operands], shapes=True)[0])


def _comes_first(a: list[str], b: list[str], output: list[str]) -> bool:
    """Whether the first letter of the output that only one of two operands has is one of a's."""
    # The operand whose label comes first in the output gives the rows: then the product lies as asked.
    alone = [c for c in output if (c in a) != (c in b)]
    return bool(alone) and alone[0] in a


def _write_equation(*given: Any) -> tuple[str, tuple[Any, ...]]:
    """The equation and operands of einsum's other form: operand, numbers, operand, numbers, ..., and perhaps the output's numbers."""
    letters = string.ascii_uppercase + string.ascii_lowercase  # the order in which an output that is not given comes

    def term(numbers: Any) -> str:
        for n in numbers:
            if n is not Ellipsis and not (isinstance(n, int) and 0 <= n < len(letters)):
                raise ArgumentError(
                    f"einsum: {n!r} in {numbers!r} is no number from 0 to {len(letters) - 1} and no Ellipsis; give such ones"
                )
        return "".join(["..." if n is Ellipsis else letters[n] for n in numbers])

    left = ",".join([term(numbers) for numbers in given[1::2]])
    return (f"{left}->{term(given[-1])}" if len(given) % 2 else left), given[: len(given) - len(given) % 2 : 2]


def _parse(equation: str, operands: Sequence[Tensor]) -> tuple[list[list[str]], list[str], dict[str, int]]:
    """Letters of each operand and of the output, an ellipsis replaced by labels of its own, and the size of each letter."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    given = left.split(",")
    if len(given) != len(operands):
        raise ArgumentError(f"einsum: {equation!r} names {len(given)} operands, {len(operands)} were given; give one tensor for each")
    terms, widest = [], 0
    for term, x in zip(given, operands, strict=True):
        letters = term.replace("...", "")
        if term.count("...") > 1 or not all(c in string.ascii_letters for c in letters):
            raise ArgumentError(f"einsum: {term!r} in {equation!r}: a term is letters and at most one ellipsis")
        extra = x.ndim - len(letters)
        if extra < 0 or (extra and "..." not in term):
            raise ShapeError(f"einsum: {term!r} names {len(letters)} dimensions, its operand {tuple(x.shape)} has {x.ndim}; name each once")
        dots = [f"{i}" for i in range(extra, 0, -1)]  # counted from the right, as broadcasting does
        before, _, after = term.partition("...")
        terms.append([*before, *dots, *after] if "..." in term else list(letters))
        widest = max(widest, extra if "..." in term else 0)
    # Digits cannot be letters of an equation, so they name the dims of an ellipsis.
    all_dots = [f"{i}" for i in range(widest, 0, -1)]
    if arrow:
        first, dotted, last = right.partition("...")
        output = [*first, *(all_dots if dotted else []), *last]
    else:
        letters_given = [c for t in terms for c in t]
        output = all_dots + sorted(c for c in set(letters_given) if letters_given.count(c) == 1 and c.isalpha())
    sizes: dict[str, int] = {}
    for labels, x in zip(terms, operands, strict=True):
        own: dict[str, int] = {}
        for c, n in zip(labels, x.shape, strict=True):
            if own.setdefault(c, n) != n:
                raise ShapeError(f"einsum: {equation!r}: {c!r} stands twice at one operand, for sizes {own[c]} and {n}")
            # Sizes of 1 broadcast, as in PyTorch's einsum and unlike numpy's.
            if sizes.setdefault(c, n) != n:
                if 1 not in (n, sizes[c]):
                    raise ShapeError(
                        f"einsum: {equation!r}: {c!r} is {sizes[c]} in one operand and {n} in another; these must be equal, or 1"
                    )
                sizes[c] = n if sizes[c] == 1 else sizes[c]
    unknown = [c for c in output if c not in sizes]
    if unknown or len(set(output)) != len(output):
        raise ArgumentError(f"einsum: {equation!r}: the output must name letters of the operands, each once")
    return terms, output, sizes


def _take_diagonals(x: Tensor, labels: list[str]) -> tuple[Tensor, list[str]]:
    """x with repeated letters reduced to their diagonal."""
    labels = list(labels)
    for c in sorted(set(labels)):
        # Three of a letter: the diagonal of two becomes the last dim, and is paired again.
        while labels.count(c) > 1:
            first = labels.index(c)
            second = labels.index(c, first + 1)
            x = x.diagonal(0, first, second)
            del labels[second], labels[first]
            labels.append(c)
    return x, labels


def _sum_out(x: Tensor, labels: list[str], keep: set[str]) -> tuple[Tensor, list[str]]:
    """x summed over the letters that nothing needs any more."""
    gone = tuple(i for i, c in enumerate(labels) if c not in keep)
    if gone:
        given = x._array.dtype
        x = ops.sum(x, dim=gone, keepdim=False)
        x = x if x._array.dtype == given or given == np.bool_ else ops.cast(x, dtype=given)  # of small integers too, as products are
    return x, [c for c in labels if c in keep]


def _multiply_pair(a: Tensor, la: list[str], b: Tensor, lb: list[str], later: set[str], sizes: dict[str, int]) -> tuple[Tensor, list[str]]:
    """One batched product of two operands: letters in both that are needed later are the batch, the others are summed."""
    a, la = _sum_out(a, la, later | set(lb))
    b, lb = _sum_out(b, lb, later | set(la))
    shared = [c for c in la if c in lb]
    batch, summed = [c for c in shared if c in later], [c for c in shared if c not in later]
    rows, cols = [c for c in la if c not in lb], [c for c in lb if c not in la]
    if not summed or (batch and not rows and not cols and a._array.dtype.itemsize > 2):  # products of one number or vector each
        left = [*batch, *rows, *cols, *summed]
        y = ops.mul(_align_dims(a, la, left), _align_dims(b, lb, left))
        return _sum_out(y, left, later) if summed else (y, left)
    a = _group_dims(a, la, (batch, rows, summed), sizes)
    b = _group_dims(b, lb, (batch, summed, cols), sizes)
    left = [*batch, *rows, *cols]
    return reshape_to(ops.matmul(a, b), tuple(sizes[c] for c in left)), left


def _align_dims(x: Tensor, labels: list[str], order: list[str]) -> Tensor:
    """x with a dimension for each letter of `order`, of size 1 where it has none, so that it broadcasts."""
    x = ops.permute(x, dims=tuple(labels.index(c) for c in order if c in labels))
    shape = dict(zip([c for c in order if c in labels], x.shape, strict=True))
    return reshape_to(x, tuple(shape.get(c, 1) for c in order))


def _group_dims(x: Tensor, labels: list[str], groups: tuple[list[str], ...], sizes: dict[str, int]) -> Tensor:
    """x as three dimensions, one for each group of letters, sizes of 1 broadcast to the letter's."""
    order = [c for g in groups for c in g]
    x = ops.permute(x, dims=tuple(labels.index(c) for c in order))
    full = tuple(sizes[c] for c in order)
    if tuple(x.shape) != full:
        x = ops.expand(x, shape=full)
    return reshape_to(x, tuple(math.prod(sizes[c] for c in g) for g in groups))
