"""Adoption: memory that there is becomes lazy when a tensor is written in place, where nobody but that tensor, its base and their views looks at it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tritensor.ops.array import CudaArray, element_strides, first_address, same_memory
from tritensor.ops.lazy_array import Holder, LazyArray, cease_to_share, owner_of
from tritensor.tensor.aliasing.views import find_views
from tritensor.tensor.core import Tensor


def adopt(x: Tensor, segment: Any) -> list[tuple[Tensor, Any]]:
    """Let a tensor, the tensor that it is a view of and all views of that look at their memory as it will be, so that a write can wait in a Segment.

    Gives them with the arrays that they had, the root first; none where somebody else would see the write late: a numpy array that shares the memory, a
    tensor that detach() or .data gave, a table of addresses."""
    family = _family(x, segment)
    if not family:
        return []
    root = family[0]
    offsets = [first_address(t._array) - first_address(root._array) for t in family]
    counters = [t._version_counter for t in family]
    for key, (counter, _) in tuple(segment.versions.items()):  # from now on writes are noted; those of views that are gone, too
        if counter in counters:
            del segment.versions[key]
    before = [(t, t._array) for t in family]
    if type(root._array) is np.ndarray:
        cease_to_share(_owner(root._array))
    whole = segment.hold(segment.leaf(root._array), home=root._array)
    for (t, array), first in zip(before, offsets, strict=True):
        if t is root:
            t._set_array(whole)
            continue
        window = LazyArray(whole.storage, tuple(array.shape), array.dtype, tuple(element_strides(array)))
        window.first = first
        t._set_array(window)
    return before


def may_adopt(x: Tensor, segment: Any) -> bool:
    """Whether a write to a tensor can wait."""
    return bool(_family(x, segment))


def is_adopted(array: Any, before: Any) -> bool:
    """Whether an array is memory that is written when a path runs, and another array looked at it before."""
    return type(array) is LazyArray and array.storage.home is not None and same_memory(array.storage.home, before)


def _family(x: Tensor, segment: Any) -> list[Tensor]:
    """All tensors that look at a tensor's memory, the base first; none where somebody else does."""
    root = x if x._view_path is None else x._view_path[0]
    family = [root, *find_views(root)]
    kind = type(root._array)
    if kind not in (np.ndarray, CudaArray) or any([type(t._array) is not kind for t in family]) or not _is_private(family, segment):
        return []
    owner = _owner(root._array)
    if any([_owner(t._array) is not owner for t in family]):  # `.data =` has let one look elsewhere
        return []
    return family if 0 not in root._array.shape and all([first_address(t._array) >= first_address(root._array) for t in family]) else []


def _references(holder: Any) -> int:
    """The references to a holder's array, but for those that counting makes."""
    return sys.getrefcount(holder._array) - _COUNTING


_COUNTING = 0
_COUNTING = _references(Holder(object())) - 1  # which differs between versions of Python


def _is_private(family: list[Tensor], segment: Any) -> bool:
    """Whether all references to the memory are those of a family's tensors, and of the segment's leaves."""
    if type(family[0]._array) is np.ndarray and not family[0]._array.flags.writeable:
        return False
    owner: Any = Holder(_owner(family[0]._array))
    if owner._array is None:
        return False
    noted = segment.cursor.arrays_noted()
    held = {id(t._array): t._array for t in family}
    held |= {k: v.array for k, v in segment.leaves.items() if v.array is not None}
    for t in (owner, *family):
        mine = id(t._array)
        known = sum([s._array is t._array for s in (owner, *family)]) + (mine in held) + (mine in segment.leaves)
        known += noted.count(mine)
        if _references(t) > known + sum([_holds(a, t) for a in held.values()]):
            return False
    return True


def _owner(array: Any) -> Any:
    """What holds an array's memory: a storage, or the array of numpy's that has allocated it; None where it is a buffer of others."""
    if type(array) is CudaArray:
        return array.storage
    owner = owner_of(array)
    return owner if type(owner) is np.ndarray and owner.base is None else None


def _holds(array: Any, owner: Any) -> bool:
    """Whether an array holds a reference to the owner of its memory."""
    return (array.storage if type(array) is CudaArray else array.base) is owner._array
