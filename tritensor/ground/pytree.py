"""Trees of values: nested dicts, lists, tuples and named tuples taken apart into leaves and put together again, as `torch.utils._pytree` does."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

PyTree = Any


class NodeDef(NamedTuple):
    """How one type of container is taken apart, (container) -> (children, what else is needed), and put together, (children, that) -> container."""

    flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]]
    unflatten_fn: Callable[[Iterable[Any], Any], Any]
    flatten_with_keys_fn: Callable[[Any], tuple[Iterable[tuple[Any, Any]], Any]] | None = None  # children as (key, child)


SUPPORTED_NODES: dict[type, NodeDef] = {
    dict: NodeDef(lambda d: (d.values(), list(d)), lambda values, keys: dict(zip(keys, values, strict=True))),
    list: NodeDef(lambda x: (x, None), lambda values, _: list(values)),
    tuple: NodeDef(lambda x: (x, None), lambda values, _: tuple(values)),
    OrderedDict: NodeDef(lambda d: (d.values(), list(d)), lambda values, keys: OrderedDict(zip(keys, values, strict=True))),
    defaultdict: NodeDef(
        lambda d: (d.values(), [d.default_factory, list(d)]),
        lambda values, given: defaultdict(given[0], zip(given[1], values, strict=True)),
    ),
    deque: NodeDef(lambda d: (d, d.maxlen), lambda values, most: deque(values, most)),
}
_NAMED = NodeDef(lambda x: (x, type(x)), lambda values, kind: kind(*values))
SUPPORTED_NODES[namedtuple] = _NAMED  # type: ignore[index]  # by PyTorch's key for all of them


def is_namedtuple(obj: object | type) -> bool:
    """Whether an object, or a class, is a named tuple."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_class(cls: type) -> bool:
    """Whether a class was made by namedtuple or NamedTuple."""
    fields = getattr(cls, "_fields", None)
    return isinstance(cls, type) and issubclass(cls, tuple) and isinstance(fields, tuple) and callable(getattr(cls, "_make", None))


def is_namedtuple_instance(obj: object) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], tuple[list[Any], Any]], unflatten_fn: Callable[[Iterable[Any], Any], Any], *_words: Any,
    flatten_with_keys_fn: Callable[[Any], tuple[list[tuple[Any, Any]], Any]] | None = None, **_named: Any,
) -> None:  # fmt: skip
    """Let objects of a class be containers. Raises ValueError for a class that is one already. What further words name is for exporters.

    flatten_with_keys_fn gives children as (key, child), for the paths of tree_flatten_with_path.
    """
    # a second registration would change trees that were flattened under the first
    if cls in SUPPORTED_NODES:
        raise ValueError(f"register_pytree_node: {cls.__name__} is a container already; register each class once")
    SUPPORTED_NODES[cls] = NodeDef(flatten_fn, unflatten_fn, flatten_with_keys_fn)


def _kind_of(tree: Any) -> NodeDef | None:
    # by the exact class, as in PyTorch: an object of a class derived from dict or list is a leaf
    found = SUPPORTED_NODES.get(type(tree))
    return found if found is not None else _NAMED if is_namedtuple_instance(tree) else None


def _get_node_type(tree: Any) -> Any:
    """The key of a value's kind in SUPPORTED_NODES, where it is a container: its type, or `namedtuple` for all of these."""
    return namedtuple if is_namedtuple_instance(tree) else type(tree)


class TreeSpec:
    """The shape of a tree: the type of each container, and as many children as it has. `LeafSpec()` is that of a leaf."""

    __slots__ = ("children_specs", "context", "num_leaves", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self.context = context
        self.children_specs = children_specs
        self.num_leaves: int = sum([c.num_leaves for c in children_specs]) if type is not None else 1

    def is_leaf(self) -> bool:
        """Whether this is a leaf and no container."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The shapes of what the outermost container holds."""
        return list(self.children_specs)

    @property
    def num_children(self) -> int:
        """How many parts the container has."""
        return len(self.children_specs)

    @property
    def num_nodes(self) -> int:
        """How many containers and leaves there are, this one among them."""
        return 1 + sum([c.num_nodes for c in self.children_specs])

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this shape with these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What stands in a tree at the places of this shape's leaves. Raises ValueError where the tree's containers are others."""
        if self.type is None:
            return [tree]  # whatever stands there, a container too: so a tree may be larger than the shape that it follows
        found = _children_as(tree, self)
        if found is None:
            kind = _kind_of(tree)
            have = 0 if kind is None else len(list(kind.flatten_fn(tree)[0]))
            keys = f" with the keys {_keys(self)}" if self.type in _DICTS and type(tree) in _DICTS else ""
            raise ValueError(
                f"tree: a {type(tree).__name__} of {have} stands where a {self.type.__name__} of {len(self.children_specs)}{keys} is expected; "
                "give trees of one shape"
            )
        return [x for spec, child in zip(self.children_specs, found, strict=True) for x in spec.flatten_up_to(child)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self.type is other.type and self.context == other.context and self.children_specs == other.children_specs

    def __hash__(self) -> int:
        return hash((self.type, self.num_leaves, len(self.children_specs)))  # not of the context, which may be a list of keys

    def __repr__(self) -> str:
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


_DICTS = (dict, OrderedDict, defaultdict)


def _keys(spec: TreeSpec) -> list[Any]:
    """The keys of a dictionary's shape."""
    found: list[Any] = spec.context[1] if spec.type is defaultdict else spec.context
    return found


def _children_as(tree: Any, spec: TreeSpec) -> list[Any] | None:
    """What a container holds, in the order of a shape; None where it is of another. Dictionaries of any kind go together, by their keys."""
    # the order in which keys were inserted is no part of a dictionary's shape
    if spec.type in _DICTS and type(tree) in _DICTS:
        keys = _keys(spec)
        return [tree[k] for k in keys] if tree.keys() == set(keys) else None
    kind = _kind_of(tree)
    if kind is None or type(tree) is not spec.type:
        return None
    children, context = kind.flatten_fn(tree)
    found = list(children)
    # a deque's greatest length is no part of what it holds, as in PyTorch
    fits = len(found) == len(spec.children_specs) and (context == spec.context or spec.type is deque)
    return found if fits else None


class LeafSpec(TreeSpec):
    """The shape of a leaf."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(None, None, [])


def outline(spec: TreeSpec) -> str:
    """A shape as messages show it: `(*, {a: *})`."""
    if spec.type is None:
        return "*"
    parts = [outline(c) for c in spec.children_specs]
    if issubclass(spec.type, dict):
        keys = spec.context if isinstance(spec.context, list) else []
        return "{" + ", ".join(f"{k}: {p}" for k, p in zip(keys, parts, strict=False)) + "}"
    inner = ", ".join(parts)
    if spec.type is list:
        return f"[{inner}]"
    return f"({inner}{',' if len(parts) == 1 else ''})" if spec.type is tuple else f"{spec.type.__name__}({inner})"


def described(x: Any) -> str:
    """The type of a value as messages name it: "a str", "an int"."""
    name = type(x).__name__
    return f"an {name}" if name[0] in "aeiou" else f"a {name}"


_LEAF = LeafSpec()
IsLeaf = Callable[[Any], bool] | None


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether a value is no container, or one that `is_leaf` takes as it is."""
    return (is_leaf is not None and is_leaf(tree)) or _kind_of(tree) is None


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree from left to right, and its shape. None is a leaf."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: IsLeaf) -> TreeSpec:
    kind = None if is_leaf is not None and is_leaf(tree) else _kind_of(tree)
    if kind is None:
        leaves.append(tree)
        return _LEAF
    children, context = kind.flatten_fn(tree)
    return TreeSpec(type(tree), context, [_flatten(c, leaves, is_leaf) for c in children])


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of a shape with these leaves. Raises ValueError for another number of them."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten: treespec is a {type(treespec).__name__}; give what tree_flatten returned second")
    given = list(leaves)
    if len(given) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: {len(given)} leaves for a tree of {treespec.num_leaves}; give one for each place")
    return _unflatten(iter(given), treespec)


def _unflatten(leaves: Iterator[Any], spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    children = [_unflatten(leaves, c) for c in spec.children_specs]
    kind = SUPPORTED_NODES.get(spec.type) or _NAMED
    return kind.unflatten_fn(children, spec.context)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree from left to right."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """The shape of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """A tree of the same shape that holds `func` of each leaf, and of what stands there in `rests`."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten([func(*given) for given in zip(leaves, *[spec.flatten_up_to(r) for r in rests], strict=True)])


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Call `func` of each leaf, as tree_map does, and return the tree as it was."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def _matcher(kinds: Any) -> Callable[[Any], bool]:
    if isinstance(kinds, type | tuple) or hasattr(kinds, "__args__"):  # the latter: int | float
        return lambda x: isinstance(x, kinds)
    found: Callable[[Any], bool] = kinds
    return found


def tree_map_only(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """tree_map of the leaves of a type, several types, or of which a function says so; the others stay."""
    chosen = _matcher(type_or_types_or_pred)
    return tree_map(lambda x: func(x) if chosen(x) else x, tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """tree_map_ of such leaves."""
    chosen = _matcher(type_or_types_or_pred)
    return tree_map_(lambda x: func(x) if chosen(x) else x, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether a function is true of all leaves."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether a function is true of a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """tree_all of the leaves of a type."""
    chosen = _matcher(type_or_types)
    return all(pred(x) for x in tree_iter(tree, is_leaf) if chosen(x))


def tree_any_only(type_or_types: Any, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """tree_any of the leaves of a type."""
    chosen = _matcher(type_or_types)
    return any(pred(x) for x in tree_iter(tree, is_leaf) if chosen(x))


def broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """The leaves of `tree` for every leaf of a larger shape, one that stands for a whole container repeated; None where it does not fit."""
    if treespec.type is None:
        return [tree] if tree_is_leaf(tree, is_leaf) else None
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    parts = _children_as(tree, treespec)
    if parts is None:
        return None
    found: list[Any] = []
    for part, spec in zip(parts, treespec.children_specs, strict=True):
        below = broadcast_to_and_flatten(part, spec, is_leaf)
        if below is None:
            return None
        found.extend(below)
    return found


_broadcast_to_and_flatten = broadcast_to_and_flatten
