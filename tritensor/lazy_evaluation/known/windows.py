"""Windows: what a path reads, and hands out, of memory that is there, beside its leaves' own arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tritensor.ground.strides import memory_extent
from tritensor.lazy_evaluation.known.fresh import fresh
from tritensor.lazy_evaluation.known.records import Derived, Group, Hand, Leaf, Record, Source, Trail, View
from tritensor.ops.array import element_strides, first_address, same_memory


def derive(segment: Any, seen: set[int], leaves: Sequence[Leaf]) -> tuple[Derived, ...] | None:
    """What a call has read of memory that is no leaf's own array, nor was read before (`seen`): windows on leaves. None where it is nobody's."""
    found = []
    mine = {id(leaf.array) for leaf in leaves}
    for key, value in segment.leaves.items():
        if key in seen or key in mine:
            continue
        leaf = _leaf_below(value.array, leaves)
        if leaf is None:
            return None
        strides = tuple(element_strides(value.array))
        found.append(Derived(value, leaf, strides, first_address(value.array) - first_address(leaf.array)))
    return tuple(found)


def view_of(cursor: Any, t: Any, leaves: Sequence[Leaf]) -> View | None:
    """The place of a tensor that looks at a leaf's memory; None where it is nobody's, or writes to it are counted elsewhere."""
    array = t._array
    leaf = _leaf_below(array, leaves)
    if leaf is None or not leaf.is_there or (t._view_path is None and t._version_counter is not leaf.t._version_counter):
        return None
    view = View(cursor, array, bool(t._tracked), leaf, first_address(array) - first_address(leaf.array))
    view.t = fresh(view)
    return view


def _leaf_below(array: Any, leaves: Sequence[Leaf]) -> Leaf | None:
    """The leaf that memory is a window on; None where several touch it, as of these another run may give one without the other, and where it is forgotten."""
    found = [leaf for leaf in leaves if same_memory(leaf.array, array)]
    return found[0] if len(found) == 1 and found[0].is_there and _is_within(array, found[0].array) else None


def _is_within(array: Any, other: Any) -> bool:
    """Whether all that an array spans lies in what another one does."""
    (low, high), (lowest, highest) = _span(array), _span(other)
    return lowest <= low and high <= highest


def _span(array: Any) -> tuple[int, int]:
    """The address of the first byte of an array that has elements, and that behind the last."""
    low, high = memory_extent(tuple(array.shape), tuple(element_strides(array)))
    at = first_address(array)
    return at + low * array.itemsize, at + (high + 1) * array.itemsize


def takers(held: list[View], trail: Trail) -> list[Record] | None:
    """The records that take views which are held, in order; None where one of them takes what the path computes as well."""
    needed: set[int] = {id(v) for v in held}
    found = []
    for record in reversed(trail.records):
        if any([id(v) in needed for v in record.views]):
            found.append(record)
            given = list(places_in((*record.places, *record.by_name.values())))
            if any([type(p) is Hand for p in given]):
                return None
            needed.update([id(p) for p in given])
    return found[::-1]


def places_in(places: Iterable[Source]) -> Iterator[Source]:
    """Places, and those of groups."""
    for p in places:
        if type(p) is Group:
            yield from places_in(p.items)
        yield p
