"""PyTorch's path of the tree module: `torch.utils._pytree`."""

from tritensor.ground.pytree import LeafSpec as LeafSpec
from tritensor.ground.pytree import PyTree as PyTree
from tritensor.ground.pytree import TreeSpec as TreeSpec
from tritensor.ground.pytree import _broadcast_to_and_flatten as _broadcast_to_and_flatten
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
