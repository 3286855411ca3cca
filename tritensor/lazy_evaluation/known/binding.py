"""Binding of a call to a record: whether it is given what the record was, or what may stand in that's place."""

from __future__ import annotations

from typing import Any

from tritensor.lazy_evaluation.known.fresh import FreshTensor
from tritensor.lazy_evaluation.known.places import Place
from tritensor.lazy_evaluation.known.records import Group, Hand, Leaf, Record, Source
from tritensor.ops.array import layout_of
from tritensor.ops.lazy_array import LazyArray, is_lent, show_computed
from tritensor.tensor.core import Tensor


def is_there(result: Any) -> bool:
    """Whether a result is of tensors that have their arrays."""
    found = tensors_in((result,))
    return bool(found) and all([type(t) is not FreshTensor and type(t._array) is not LazyArray for t in found])


def gives_tensors(args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether there are tensors among arguments."""
    return bool(tensors_in((*args, *named.values())))


def bind(record: Record, args: tuple[Any, ...], named: dict[str, Any]) -> bool:
    """Whether a call is that of a record, whose leaves take the tensors that it is given."""
    if len(args) != record.count or (named.keys() != record.by_name.keys() if named or record.by_name else False):
        return False
    changed: list[tuple[Leaf, Any]] = []
    for place, value in zip(record.places, args):  # noqa: B905 (they are as many: see above)
        if (value is not place.t or type(place) is Leaf) and not _fits(place, value, record, changed):
            return False
    if named:
        for name, place in record.by_name.items():
            if not _fits(place, named[name], record, changed):
                return False
    for leaf, t in changed:
        leaf.t = t
    return True


def _fits(place: Any, value: Any, record: Record, changed: list[tuple[Leaf, Any]]) -> bool:
    kind = type(place)
    if kind is Leaf:
        if place.first is not record:
            return value is place.t
        if type(value) is not place.of or not _lies_as(value, place):
            return False
        if changed and any([leaf is place and t is not value for leaf, t in changed]):  # it was given twice
            return False
        changed.append((place, value))
        return True
    if kind is Group:
        return type(value) is place.make and len(value) == len(place.items) and all(
            [_fits(p, v, record, changed) for p, v in zip(place.items, value, strict=True)]
        )  # fmt: skip
    if value is place.t:
        return True
    try:
        return kind is Place and type(value) is place.kind and bool(place.same == value)
    except (TypeError, ValueError, RuntimeError):  # an array among what is in a tuple: it cannot be compared
        return False


def _lies_as(t: Any, leaf: Leaf) -> bool:
    """Whether a tensor of a leaf's class may stand for it."""
    if t._tracked != leaf.tracked or (t._node is None) != leaf.ends:
        return False
    if type(t._array) is LazyArray:
        show_computed(t)
    if t._layout is not leaf.layout:
        if layout_of(t._array) is not leaf.layout:
            return False
        t._layout = leaf.layout  # for the next time
    return not is_lent(t)


def place_in_graph(t: Any, place: Source | None) -> Any:
    """What is to stay of a tensor's place in the graph when a path is followed: of one that the path makes, whether it has one."""
    return _tracked(t) if type(place) is Hand else (_tracked(t), _node(t))


_tracked, _node = (Tensor.__dict__[n].__get__ for n in ("_tracked", "_node"))


def tensors_in(values: Any) -> list[Any]:
    """The tensors among values, and among what these hold."""
    found: list[Any] = []
    for v in values:
        if isinstance(v, Tensor):
            found.append(v)
        elif type(v) in (tuple, list) or hasattr(v, "_fields"):
            found += tensors_in(v)
    return found
