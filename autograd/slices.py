"""Gradients of slices: of a tensor that was taken apart, they are put together once all have come, not each padded with zeros and added up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.array import CudaArray
from tritensor.table import ops, registry

TAKEN = "index_view"  # the op of basic indexing, by which split, chunk, unbind and a loop over a tensor take it apart
_ALL = slice(None)


class Slices:
    """A gradient that is not yet whole: those of slices of a tensor of `shape`, each with its index, and what came for the tensor as such.

    Putting n slices together moves what they hold once; padding each would move the whole tensor n times. PyTorch does the same for split
    and unbind (one node with several outputs) and pads what a loop takes by x[i]; here they are alike.
    """

    __slots__ = ("parts", "rest", "shape")

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.parts: list[tuple[tuple[Any, ...], Any]] = []
        self.rest: Any = None

    def plus(self, x: Any, add: Callable[[Any, Any], Any]) -> Slices:
        """x, of the tensor's shape, has come as well."""
        self.rest = x if self.rest is None else add(self.rest, x)
        return self

    def whole(self, add: Callable[[Any, Any], Any]) -> Any:
        """The gradient of the tensor: an array, or a tensor where the parts are tensors (the graph is recorded)."""
        tensors = hasattr(self.parts[0][1], "array")
        joined = _joined(self.shape, self.parts)
        if joined is not None:
            name, parts, dim = joined
            found = getattr(ops, name)(*parts, dim=dim) if tensors else _run(name, parts, dim=dim)
        elif tensors:
            padded = [ops.pad_view(g, shape=self.shape, index=index) for index, g in self.parts]
            found = padded[0]
            for one in padded[1:]:
                found = add(found, one)
        else:
            found = _summed(self.shape, self.parts)
        return found if self.rest is None else add(found, self.rest)


def deliver(
    pending: dict[Any, Any], edge: Any, shape: tuple[int, ...], index: tuple[Any, ...], g: Any, add: Callable[[Any, Any], Any]
) -> None:
    """The gradient g of x[index] has come for `edge`, the place of x."""
    at = pending.get(edge)
    if type(at) is not Slices:
        made = Slices(shape)
        pending[edge] = made if at is None else made.plus(at, add)
        at = made
    at.parts.append((index, g))


def _run(name: str, parts: list[Any], **attrs: Any) -> Any:
    op = registry[name]
    return (op.forward if type(parts[0]) is CudaArray else op.reference)(*parts, **attrs)  # type: ignore[misc]


def _joined(shape: tuple[int, ...], parts: list[tuple[tuple[Any, ...], Any]]) -> tuple[str, list[Any], int] | None:
    """(cat or stack, the parts in order, dim) where they are neighbours along one dimension and fill it; None where they are anything else."""
    dim = len(parts[0][0]) - 1
    if dim < 0 or len(parts) < 2:
        return None
    lead = (_ALL,) * dim
    places = []
    for index, g in parts:
        if len(index) != dim + 1 or index[:dim] != lead:
            return None
        last = index[dim]
        if isinstance(last, slice):
            start, stop, step = last.indices(shape[dim])
            if step != 1:
                return None
            places.append((start, max(start, stop), g))
        elif last is None:
            return None
        else:
            start = last + shape[dim] if last < 0 else last
            places.append((start, start + 1, g))
    sliced = [isinstance(index[dim], slice) for index, _ in parts]
    if any(sliced) and not all(sliced):
        return None
    places = sorted((p for p in places if p[0] < p[1]), key=lambda p: p[0])
    edges = [0, *(stop for _, stop, _ in places)]
    if not places or edges[-1] != shape[dim] or any(start != edge for (start, _, _), edge in zip(places, edges, strict=False)):
        return None
    return "cat" if sliced[0] else "stack", [g for _, _, g in places], dim


def _summed(shape: tuple[int, ...], parts: list[tuple[tuple[Any, ...], Any]]) -> Any:
    """Zeros, and every slice's gradient added where it was taken."""
    (index, g), *others = parts
    if type(g) is not CudaArray:
        found = np.zeros(shape, g.dtype)
        found[index] = g
        for index, g in others:
            found[index] += g
        return found
    fill, copy, add = (registry[name].forward for name in ("full", "copy", "add"))
    on_device: Any = fill(shape=shape, value=0, dtype=g.dtype, device=g.device)  # type: ignore[misc]
    copy(g, out=on_device[index])  # type: ignore[misc]
    for index, g in others:
        if g.size:
            place = on_device[index]
            add(place, g, out=place)  # type: ignore[misc]
    return on_device
