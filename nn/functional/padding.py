"""Padding: a constant, a reflection, the edge repeated, or the other side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tritensor.dtypes import bool_
from tritensor.errors import ShapeError
from tritensor.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.publishing.publish import checked

Sides = Sequence[tuple[int, int]]


@checked
def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """Surround with more: pad is (left, right) of the last dimension, then of the one before it, and so on; negative cuts off.

    Args:
        mode: "constant" fills with `value` (0). The others pad the last one, two or three dimensions of (channels, ...) or (batch, channels, ...):
            "reflect" mirrors at the edge element (fewer than the dimension has), "replicate" repeats it, "circular" goes on at the other side.

    Raises:
        ShapeError: sizes that do not fit. ValueError: an unknown mode, or a value for one that takes none.
    """
    if mode not in ("constant", *_ALONG):
        raise ValueError(f"pad: mode {mode!r} is not known; give 'constant', 'reflect', 'replicate' or 'circular'")
    if len(pad) % 2 or len(pad) > 2 * input.ndim:
        raise ShapeError(
            f"pad: {tuple(pad)} for input {tuple(input.shape)}: give two sizes per dimension, the last dimension first, at most {2 * input.ndim}"
        )
    lead = input.ndim - len(pad) // 2
    sides = [(0, 0)] * lead + [(int(pad[2 * k]), int(pad[2 * k + 1])) for k in reversed(range(len(pad) // 2))]
    for n, (before, after) in zip(input.shape, sides, strict=True):
        gone = n < max(-before, 0) + max(-after, 0) and mode == "constant"  # what others add can be cut again
        if gone or n + before + after < 0:
            raise ShapeError(f"pad: {tuple(pad)} takes more off input {tuple(input.shape)} than there is")
    if mode == "constant":
        return _constant(input, sides, value)
    if value:
        raise ValueError(f"pad: mode {mode!r} takes no value, {value} was given")
    if len(pad) not in (2, 4, 6) or lead not in (1, 2):
        raise ShapeError(
            f"pad: {tuple(pad)} for input {tuple(input.shape)} in mode {mode!r}: it pads the last 1, 2 or 3 dimensions behind (channels,) or "
            "(batch, channels)"
        )
    y = input
    for dim, (before, after) in enumerate(sides):
        if before or after:
            y = _ALONG[mode](y, dim, before, after)
    return input.clone() if y is input else y


def _cut(x: Tensor, sides: Sides) -> Tensor:
    """x without what negative sizes take off."""
    if all(before >= 0 and after >= 0 for before, after in sides):
        return x
    return x[tuple(slice(max(-before, 0), n - max(-after, 0)) for n, (before, after) in zip(x.shape, sides, strict=True))]


def _constant(input: Tensor, sides: Sides, value: float | None) -> Tensor:
    out = _cut(input, sides)
    shape = tuple(n + max(before, 0) + max(after, 0) for n, (before, after) in zip(out.shape, sides, strict=True))
    index = tuple(slice(max(before, 0), max(before, 0) + n) for n, (before, _) in zip(out.shape, sides, strict=True))
    y = ops.pad_view(out, shape=shape, index=index)
    if value is None or value == 0:
        return y
    inside = ops.pad_view(ops.full(shape=tuple(out.shape), value=True, dtype=bool_.numpy, device=out.device), shape=shape, index=index)
    return ops.where(inside, y, value)


# One dimension: what is cut off a reflection or a repetition is cut last, since it may be of what was added at the other side.
def _between(left: list[Tensor], x: Tensor, right: list[Tensor], dim: int, before: int, after: int) -> Tensor:
    y = ops.cat(*left, x, *right, dim=dim) if left or right else x
    return y.narrow(dim, max(-before, 0), y.shape[dim] + min(before, 0) + min(after, 0))


def _reflect(x: Tensor, dim: int, before: int, after: int) -> Tensor:
    n = x.shape[dim]
    if max(before, after) >= n or n + before + after < 1:
        raise ShapeError(
            f"pad: {before} and {after} reflected at dim {dim} of {tuple(x.shape)}: each must be less than its size {n}, and something must be left"
        )
    left = [x.narrow(dim, 1, before).flip(dim)] if before > 0 else []
    right = [x.narrow(dim, n - 1 - after, after).flip(dim)] if after > 0 else []
    return _between(left, x, right, dim, before, after)


def _replicate(x: Tensor, dim: int, before: int, after: int) -> Tensor:
    n = x.shape[dim]
    if n == 0 or n + before + after < 1:
        raise ShapeError(
            f"pad: {before} and {after} repeated at dim {dim} of {tuple(x.shape)}: there must be an element, and one must be left"
        )

    def repeated(at: int, count: int) -> list[Tensor]:
        shape = tuple(count if a == dim else m for a, m in enumerate(x.shape))
        return [ops.expand(x.narrow(dim, at, 1), shape=shape)] if count > 0 else []

    return _between(repeated(0, before), x, repeated(n - 1, after), dim, before, after)


def _circular(x: Tensor, dim: int, before: int, after: int) -> Tensor:
    n = x.shape[dim]
    if max(before, after) > n:
        raise ShapeError(f"pad: {before} and {after} wrapped at dim {dim} of {tuple(x.shape)}: neither may be more than its size {n}")
    x = _cut(x, [(before, after) if a == dim else (0, 0) for a in range(x.ndim)])
    n = x.shape[dim]
    if n == 0 and max(before, after) > 0:
        raise ShapeError(f"pad: {before} and {after} wrapped at dim {dim}: cutting leaves nothing to wrap")
    left, right = max(before, 0), max(after, 0)
    pieces = [x.narrow(dim, n - left % n, left % n)] if left and left % n else []
    pieces += [x] * ((left // n if left else 0) + 1 + (right // n if right else 0))
    pieces += [x.narrow(dim, 0, right % n)] if right and right % n else []
    return ops.cat(*pieces, dim=dim) if len(pieces) > 1 else x


_ALONG: dict[str, Callable[[Tensor, int, int, int], Tensor]] = {"reflect": _reflect, "replicate": _replicate, "circular": _circular}
