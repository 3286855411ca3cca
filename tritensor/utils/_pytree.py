"""PyTorch's path of the tree module: `torch.utils._pytree`."""

from tritensor.utils.pytree import LeafSpec as LeafSpec
from tritensor.utils.pytree import PyTree as PyTree
from tritensor.utils.pytree import TreeSpec as TreeSpec
from tritensor.utils.pytree import _broadcast_to_and_flatten as _broadcast_to_and_flatten
from tritensor.utils.pytree import is_namedtuple as is_namedtuple
from tritensor.utils.pytree import is_namedtuple_class as is_namedtuple_class
from tritensor.utils.pytree import is_namedtuple_instance as is_namedtuple_instance
from tritensor.utils.pytree import register_pytree_node as register_pytree_node
from tritensor.utils.pytree import tree_all as tree_all
from tritensor.utils.pytree import tree_all_only as tree_all_only
from tritensor.utils.pytree import tree_any as tree_any
from tritensor.utils.pytree import tree_any_only as tree_any_only
from tritensor.utils.pytree import tree_flatten as tree_flatten
from tritensor.utils.pytree import tree_is_leaf as tree_is_leaf
from tritensor.utils.pytree import tree_iter as tree_iter
from tritensor.utils.pytree import tree_leaves as tree_leaves
from tritensor.utils.pytree import tree_map as tree_map
from tritensor.utils.pytree import tree_map_ as tree_map_
from tritensor.utils.pytree import tree_map_only as tree_map_only
from tritensor.utils.pytree import tree_map_only_ as tree_map_only_
from tritensor.utils.pytree import tree_structure as tree_structure
from tritensor.utils.pytree import tree_unflatten as tree_unflatten
