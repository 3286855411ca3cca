"""Paths of a tree's leaves: for each the keys, indices and attributes that lead to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tritensor.ground.pytree import IsLeaf, TreeSpec, _kind_of, is_namedtuple_instance, tree_flatten


@dataclass(frozen=True, slots=True)
class SequenceKey:
    """A place in a list, a tuple or a deque."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """What stands at the place."""
        return sequence[self.idx]


@dataclass(frozen=True, slots=True)
class MappingKey:
    """A key of a dictionary."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Mapping[Any, Any]) -> Any:
        """What stands under the key."""
        return mapping[self.key]


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """An attribute of an object, as of a named tuple."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The attribute's value."""
        return getattr(obj, self.name)


KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple[KeyEntry, ...]


def _children(tree: Any) -> Iterable[tuple[Any, Any]] | None:
    """(key, child) of a container; None of a leaf."""
    kind = _kind_of(tree)
    if kind is None:
        return None
    if kind.flatten_with_keys_fn is not None:
        return kind.flatten_with_keys_fn(tree)[0]
    if is_namedtuple_instance(tree):
        return [(GetAttrKey(name), value) for name, value in zip(tree._fields, tree, strict=True)]
    if isinstance(tree, dict):
        return [(MappingKey(k), v) for k, v in tree.items()]
    if not isinstance(tree, list | tuple) and not hasattr(tree, "maxlen"):
        raise ValueError(
            f"tree_flatten_with_path: {type(tree).__name__} was registered without keys; give register_pytree_node flatten_with_keys_fn"
        )
    return [(SequenceKey(i), v) for i, v in enumerate(tree)]


def _walk(tree: Any, path: KeyPath, is_leaf: IsLeaf) -> Iterator[tuple[KeyPath, Any]]:
    found = None if is_leaf is not None and is_leaf(tree) else _children(tree)
    if found is None:
        yield path, tree
        return
    for key, child in found:
        yield from _walk(child, (*path, key), is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """(path, leaf) of each leaf from left to right. Raises ValueError for a container of a class that was registered without keys."""
    return list(_walk(tree, (), is_leaf))


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """(path, leaf) of each leaf from left to right, and the tree's shape."""
    return tree_leaves_with_path(tree, is_leaf), tree_flatten(tree, is_leaf)[1]


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the same shape that holds `func(path, leaf)`, further trees' leaves behind the leaf."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(r) for r in rests]
    return spec.unflatten([func(path, *given) for (path, *given) in ((*pair, *more) for pair, *more in zip(found, *others, strict=True))])


def keystr(kp: Iterable[KeyEntry]) -> str:
    """A path as one writes it: `['a'][0].x`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[KeyEntry]) -> Any:
    """What stands at a path of a tree."""
    for key in kp:
        obj = key.get(obj)
    return obj
