"""rearrange: dimensions split, moved and joined as a pattern of names says ("b (h w) c -> b c h w"), with views where strides allow."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.ground.pytree import described
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import reshape_to

_REST = "..."


def rearrange(tensor: Tensor | Sequence[Tensor], pattern: str, **axes_lengths: int) -> Tensor:
    """A tensor with its dimensions in another order, some of them split or joined.

    Args:
        tensor: a tensor, or several of one shape, which are stacked along a new first dimension.
        pattern: names of the dimensions before and after `->`; (a b) is one dimension made of two, ... stands for any number, 1 for a size of 1.
        axes_lengths: sizes of names inside parentheses, of which each may lack one.

    Raises:
        ValueError: a pattern that does not fit the tensor, or itself.
    """
    x: Tensor = ops.stack(*tensor, dim=0) if isinstance(tensor, list | tuple) else tensor  # type: ignore[assignment]
    if not isinstance(x, Tensor):
        raise TypeError(f"rearrange: tensor is {described(tensor)}; give a tensor or a list of them")
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ArgumentError(f"rearrange: {pattern!r} has no arrow, or several; write 'before -> after'")
    before, after = (_groups(pattern, side) for side in sides)
    sizes = _sizes(pattern, before, tuple(x._array.shape), axes_lengths)
    names = [n for group in before for n in group]
    wanted = [n for group in after for n in group if n != "1"]
    if sorted(n for n in names if n != "1") != sorted(wanted):
        raise ArgumentError(f"rearrange: {pattern!r}: both sides must hold the same names; 1 can come and go")
    kept = [n for n in names if n != "1"]
    lengths = [sizes[n] for n in kept]  # of ... a tuple
    flat = [n for s in lengths for n in (s if isinstance(s, tuple) else (s,))]
    y = reshape_to(x, tuple(flat))
    places, at = {}, 0
    for name, s in zip(kept, lengths, strict=True):
        width = len(s) if isinstance(s, tuple) else 1
        places[name] = tuple(range(at, at + width))
        at += width
    order = tuple([d for n in wanted for d in places[n]])
    y = ops.permute(y, dims=order) if order != tuple(range(at)) else y  # in its order already: no node for nothing
    shape: list[int] = []
    for group in after:
        parts = [1 if n == "1" else sizes[n] for n in group]
        if len(group) == 1 and isinstance(parts[0], tuple) and group.open:
            shape.extend(parts[0])
        else:
            shape.append(math.prod([math.prod(p) if isinstance(p, tuple) else p for p in parts]))
    return reshape_to(y, tuple(shape))


class _Group(tuple[str, ...]):
    """The names of one dimension; `open`: written without parentheses."""

    open = True


def _groups(pattern: str, side: str) -> list[_Group]:
    found: list[_Group] = []
    inside: list[str] | None = None
    seen: set[str] = set()
    for token in re.findall(r"\.\.\.|[()]|\w+|\S", side):
        if token == "(" and inside is None:
            inside = []
        elif token == ")" and inside is not None:
            group = _Group(inside)
            group.open = False
            found.append(group)
            inside = None
        elif (token.isidentifier() or token in ("1", _REST)) and (token == "1" or token not in seen):
            seen.add(token)
            if inside is None:
                found.append(_Group([token]))
            else:
                inside.append(token)
        else:
            raise ArgumentError(
                f"rearrange: {pattern!r}: {token!r} is out of place; use names, each once on a side, parentheses, 1 and ..."
            )
    if inside is not None:
        raise ArgumentError(f"rearrange: {pattern!r}: a parenthesis is not closed")
    return found


def _sizes(pattern: str, before: list[_Group], shape: tuple[int, ...], given: dict[str, int]) -> dict[str, Any]:
    """The size of each name; of ... a tuple."""
    spare = len(shape) - len(before) + 1
    rest = [i for i, g in enumerate(before) if _REST in g]
    if (not rest and spare != 1) or (rest and spare < 0):
        raise ArgumentError(
            f"rearrange: {pattern!r} names {len(before)} dimensions, the tensor {shape} has {len(shape)}; name them all, or write ... for the rest"
        )
    sizes: dict[str, Any] = dict(given)
    d = 0
    for i, group in enumerate(before):
        if rest and i == rest[0]:
            sizes[_REST] = shape[d : d + spare]
            d += spare
            continue
        n, unknown = shape[d], [name for name in group if name != "1" and name not in sizes]
        known = math.prod([sizes[name] for name in group if name in sizes])
        if len(unknown) > 1 or (known and n % known) or (not unknown and known != n):
            raise ArgumentError(
                f"rearrange: {pattern!r}: dimension {d} of {shape} is not made of {' and '.join(group) or 'nothing'} with {given}"
            )
        if unknown:
            sizes[unknown[0]] = n // known if known else 0
        d += 1
    unused = [k for k in given if not any(k in g for g in before)]  # a misspelt name would pass unseen
    if unused:
        raise ArgumentError(f"rearrange: {pattern!r} has no {', '.join(unused)}; leave its length out")
    return sizes
