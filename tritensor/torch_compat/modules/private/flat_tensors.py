"""torch._utils: many tensors as one buffer and back, and tensors by type in chunks of a size, which programs that average gradients reach for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from tritensor.ground.errors import ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import public


def _given(name: str, tensors: Any) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}: tensors is one tensor of shape {tuple(tensors.shape)}; give a list of them")
    found = list(tensors)
    for i, t in enumerate(found):
        if not isinstance(t, Tensor):
            raise TypeError(f"{name}: tensors[{i}] is of type {type(t).__name__}; give tensors")
    return found


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """One tensor with the elements of all, one after the other; of one contiguous tensor a view. Raises ValueError for none."""
    given = _given("_flatten_dense_tensors", tensors)
    if not given:
        raise ValueError("_flatten_dense_tensors: the list of tensors is empty; give at least one")
    flat = [t.contiguous().view(-1) for t in given]  # a view where it can be: one tensor is not copied
    made: Tensor = flat[0] if len(flat) == 1 else public["cat"](flat)
    return made


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of a buffer that _flatten_dense_tensors made, with the shapes of `tensors`. Raises RuntimeError for a buffer that is too short."""
    given = _given("_unflatten_dense_tensors", tensors)
    needed = sum(t.numel() for t in given)
    if not isinstance(flat, Tensor) or flat.ndim != 1 or flat.numel() < needed:
        told = f"of shape {tuple(flat.shape)}" if isinstance(flat, Tensor) else f"a {type(flat).__name__}"
        raise ShapeError(
            f"_unflatten_dense_tensors: flat is {told}, and the tensors have {needed} elements; give what _flatten_dense_tensors made"
        )
    views, start = [], 0
    for t in given:
        views.append(flat.narrow(0, start, t.numel()).view(t.shape))
        start += t.numel()
    return tuple(views)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Lists of tensors of one type, each of at most `size_limit` bytes, or of one tensor that alone has more; in order within a type."""
    chunks: defaultdict[str, list[Tensor]] = defaultdict(list)
    sizes: defaultdict[str, int] = defaultdict(int)
    for t in _given("_take_tensors", tensors):
        kind = str(t.type())
        if sizes[kind] and sizes[kind] + t.nbytes > size_limit:  # a tensor that alone has more makes a chunk of its own
            yield chunks[kind]
            chunks[kind], sizes[kind] = [], 0
        chunks[kind].append(t)
        sizes[kind] += t.nbytes
    for chunk in chunks.values():
        if chunk:
            yield chunk


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Tensors, in order within their types as _take_tensors leaves them, in the order of the types of `ordered_tensors`."""
    by_type: defaultdict[str, list[Tensor]] = defaultdict(list)
    for t in _given("_reorder_tensors_as", tensors):
        by_type[str(t.type())].append(t)
    rows = {kind: iter(row) for kind, row in by_type.items()}
    found = []
    for i, t in enumerate(_given("_reorder_tensors_as", ordered_tensors)):
        nxt = next(rows.get(str(t.type()), iter(())), None)
        if nxt is None:
            raise ValueError(
                f"_reorder_tensors_as: ordered_tensors[{i}] is a {t.type()}, of which there are no more in tensors; give as many"
            )
        found.append(nxt)
    return tuple(found)
