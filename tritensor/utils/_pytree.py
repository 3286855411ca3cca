"""PyTorch's path of the tree module: `torch.utils._pytree`."""

from collections.abc import Iterable
from typing import Any

from tritensor.ground.pytree import SUPPORTED_NODES as SUPPORTED_NODES
from tritensor.ground.pytree import LeafSpec as LeafSpec
from tritensor.ground.pytree import NodeDef as NodeDef
from tritensor.ground.pytree import PyTree as PyTree
from tritensor.ground.pytree import TreeSpec as TreeSpec
from tritensor.ground.pytree import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from tritensor.ground.pytree import _get_node_type as _get_node_type
from tritensor.ground.pytree import is_namedtuple as is_namedtuple
from tritensor.ground.pytree import is_namedtuple_class as is_namedtuple_class
from tritensor.ground.pytree import is_namedtuple_instance as is_namedtuple_instance
from tritensor.ground.pytree import register_pytree_node as register_pytree_node
from tritensor.ground.pytree import tree_all as tree_all
from tritensor.ground.pytree import tree_all_only as tree_all_only
from tritensor.ground.pytree import tree_any as tree_any
from tritensor.ground.pytree import tree_any_only as tree_any_only
from tritensor.ground.pytree import tree_flatten as tree_flatten
from tritensor.ground.pytree import tree_is_leaf as tree_is_leaf
from tritensor.ground.pytree import tree_iter as tree_iter
from tritensor.ground.pytree import tree_leaves as tree_leaves
from tritensor.ground.pytree import tree_map as tree_map
from tritensor.ground.pytree import tree_map_ as tree_map_
from tritensor.ground.pytree import tree_map_only as tree_map_only
from tritensor.ground.pytree import tree_map_only_ as tree_map_only_
from tritensor.ground.pytree import tree_structure as tree_structure
from tritensor.ground.pytree import tree_unflatten as tree_unflatten
from tritensor.ground.pytree_paths import GetAttrKey as GetAttrKey
from tritensor.ground.pytree_paths import KeyEntry as KeyEntry
from tritensor.ground.pytree_paths import KeyPath as KeyPath
from tritensor.ground.pytree_paths import MappingKey as MappingKey
from tritensor.ground.pytree_paths import SequenceKey as SequenceKey
from tritensor.ground.pytree_paths import key_get as key_get
from tritensor.ground.pytree_paths import keystr as keystr
from tritensor.ground.pytree_paths import tree_flatten_with_path as tree_flatten_with_path
from tritensor.ground.pytree_paths import tree_leaves_with_path as tree_leaves_with_path
from tritensor.ground.pytree_paths import tree_map_with_path as tree_map_with_path
from tritensor.tensor.size import Size

Context = Any
_register_pytree_node = register_pytree_node  # PyTorch's older name


# Libraries register dictionaries of their own by these.
def _dict_flatten(d: dict[Any, Any]) -> tuple[list[Any], list[Any]]:
    """(values, keys)."""
    return list(d.values()), list(d)


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[KeyEntry, Any]], list[Any]]:
    """([(key's entry, value)], keys)."""
    return [(MappingKey(k), v) for k, v in d.items()], list(d)


def _dict_unflatten(values: Iterable[Any], context: list[Any]) -> dict[Any, Any]:
    """The dictionary of these keys."""
    return dict(zip(context, values, strict=True))


# Here, and not beside the class, which is loaded by programs that never look at a tree.
register_pytree_node(Size, lambda x: (list(x), None), lambda values, _: Size(values))
