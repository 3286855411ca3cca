"""Scans: running combinations along a dimension by an associative function of two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor.func.mapping import vmap
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.ground.pytree import tree_flatten
from tritensor.ops.table import normal_dim
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.joining import cat, stack

Combine = Callable[[Any, Any], Any]


def associative_scan(combine_fn: Combine, xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise") -> Any:
    """Along dim, element i is combine_fn of elements 0 to i: of i to the last with reverse. combine_fn sees tensors without dim, and must be associative.

    xs is a tensor, or nested dicts, lists and tuples of tensors of one size along dim; combine_fn takes two such, and returns one. Each round halves
    what is left, so that n elements take about 2 log2(n) calls; gradients flow through.

    combine_mode "pointwise" promises that combine_fn works on each element by itself, and is for tensors on a GPU; "generic" is for all.

    Raises:
        ValueError: a mode or a function that is none, no tensor, an empty dim, "pointwise" of tensors on the CPU.

    >>> from tritensor.func.scans import associative_scan
    >>> a, b = associative_scan(lambda l, r: (l[0] * r[0], l[1] * r[0] + r[1]), (tt.full((4,), 0.5), tt.ones(4)), 0, combine_mode="generic")
    >>> b  # x[i] = a[i] x[i - 1] + b[i]
    tensor([1.0000, 1.5000, 1.7500, 1.8750])
    """
    leaves, spec = tree_flatten(xs)
    along = _check(combine_fn, leaves, dim, combine_mode)
    moved = [x.movedim(along, 0) for x in leaves]
    if reverse:
        moved = [x.flip(0) for x in moved]
    each = vmap(combine_fn)

    def combine(left: Sequence[Tensor], right: Sequence[Tensor]) -> list[Tensor]:
        return tree_flatten(each(spec.unflatten(left), spec.unflatten(right)))[0]

    found = _scan(combine, moved)
    if reverse:
        found = [x.flip(0) for x in found]
    return spec.unflatten([x.movedim(0, along) for x in found])


def _check(combine_fn: Any, leaves: list[Any], dim: int, mode: str) -> int:
    """dim, counted from the front, where the arguments of associative_scan make sense."""
    if not callable(combine_fn):
        raise ArgumentError(f"associative_scan: combine_fn is {combine_fn!r}; Combine_fn must be a callable")
    if mode not in ("pointwise", "generic"):
        raise ArgumentError(f"associative_scan: combine_mode is {mode!r}; give 'pointwise' or 'generic'")
    if not leaves or not all(isinstance(x, Tensor) for x in leaves):
        raise ArgumentError("associative_scan: xs leaves must be a Tensor, and there must be one")
    along = normal_dim("associative_scan", dim, leaves[0].ndim)
    if any(x.ndim <= along or x.shape[along] != leaves[0].shape[along] or not x.shape[along] for x in leaves):
        raise ShapeError(
            f"associative_scan: xs of shapes {[tuple(x.shape) for x in leaves]}; give tensors of one size, not 0, along dimension {along}"
        )
    if mode == "pointwise" and any(x.device.type == "cpu" for x in leaves):
        raise ArgumentError("associative_scan: combine_mode='pointwise' is for tensors on a GPU; give combine_mode='generic'")
    return along


def _scan(combine: Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor]], xs: list[Tensor]) -> list[Tensor]:
    """The scan along dimension 0: pairs are combined and scanned, then the elements between them follow (Blelloch 1990)."""
    n = xs[0].shape[0]
    if n == 1:
        return xs
    odd = _scan(combine, combine([x[0 : n - 1 : 2] for x in xs], [x[1::2] for x in xs]))  # elements 1, 3, ...
    even = [x[:1] for x in xs]
    if n > 2:
        rest = combine([y[: (n - 1) // 2] for y in odd], [x[2::2] for x in xs])
        even = [cat([first, more]) for first, more in zip(even, rest, strict=True)]
    pairs = n // 2
    both = [stack([e[:pairs], o], 1).flatten(0, 1) for e, o in zip(even, odd, strict=True)]
    return [cat([b, e[pairs:]]) for b, e in zip(both, even, strict=True)] if n % 2 else both
