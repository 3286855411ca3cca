"""Moving tensors to memory that other processes see: all tensors of one memory go together, and stay views of one another."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np

from tritensor.ground.errors import TransformError
from tritensor.ground.process import locks
from tritensor.ground.thread_state import run_waiting
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.lazy_array import LazyArray, settle
from tritensor.tensor.copying import memory_owner, view_bytes
from tritensor.tensor.core import Tensor
from tritensor.tensor.shared_memory import Segment, create, find_segment

# The classes whose objects hold an array, and where. Storages add themselves.
ARRAY_SLOTS: dict[type, Any] = {Tensor: Tensor.__dict__["_array"]}
_UNSHARED_REFERENCES = 4  # references to the memory's array that do not count: the tensor's own, this file's, and the counting's
_move_lock = locks.lock()


def move_to_shared_memory(holder: Any) -> Segment | None:
    """Move the memory of a tensor on the CPU to a segment, unless it is there already, and with it every tensor that lies in it.

    Returns the segment; None where the tensor has no elements. numpy arrays that programs hold (`x.numpy()`) stay on the memory of before.
    Raises OutOfMemoryError, nothing moved.
    """
    with _move_lock:
        run_waiting()  # memory that moves is not waited for
        array = settle(_get_array(holder))
        if type(array) is WrappedArray:
            raise TransformError("share_memory_: inside vmap, grad or jvp a tensor has no memory of its own; share it before the transform")
        if not array.size:
            return None
        # Memory that is shared already is never moved again: another process may be looking at it.
        found = find_segment(array)
        if found is not None:
            return found
        owner, low, high = memory_owner(array)
        # The walk over all objects costs milliseconds; an array that nobody else refers to needs none.
        alone = owner is array and sys.getrefcount(owner) <= _UNSHARED_REFERENCES
        segment = create(high - low)
        there = np.asarray(segment)
        there[:] = view_bytes(owner, low, high)
        holders = {id(h): h for h in ([holder] if alone else [holder, *_other_holders(owner, low, high)])}.values()
        windows = [np.ndarray(a.shape, a.dtype, there, a.ctypes.data - low, a.strides) for a in map(_get_array, holders)]
        for h, window in zip(holders, windows, strict=True):
            _array_slot(h).__set__(h, window)
        return segment


def _array_slot(holder: Any) -> Any:
    return next(slot for kind, slot in ARRAY_SLOTS.items() if issubclass(type(holder), kind))


def _get_array(holder: Any) -> Any:
    array = _array_slot(holder).__get__(holder)
    return array.settled() if type(array) is LazyArray and not array.pending else array


def _other_holders(owner: np.ndarray, low: int, high: int) -> list[Any]:
    """The tensors and storages of the program whose arrays lie in a memory. Views of views are found as well, which no list of ours holds."""
    classes, found = tuple(ARRAY_SLOTS), []
    for candidate in gc.get_objects():
        # type() and issubclass, not isinstance: proxies answer __class__, and asking them may run their code.
        if not issubclass(type(candidate), classes):
            continue
        try:
            a = _get_array(candidate)
        except AttributeError:  # being made by another thread
            continue
        if type(a) is np.ndarray and a.size and low <= a.ctypes.data < high and np.may_share_memory(a, owner):
            found.append(candidate)
    return found
