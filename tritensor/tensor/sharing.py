"""Moving tensors to memory that other processes see: all tensors of one memory go together, and stay views of one another."""

from __future__ import annotations

import gc
import sys
from typing import Any

import numpy as np

from tritensor.ground.errors import TransformError
from tritensor.ground.process import locks
from tritensor.ground.transforms import WrappedArray
from tritensor.tensor.copying import bytes_of, whole_memory
from tritensor.tensor.core import Tensor
from tritensor.tensor.shared_memory import Segment, create, segment_of

# The classes whose objects hold an array, and where. Storages add themselves.
HOLDERS: dict[type, Any] = {Tensor: Tensor.__dict__["array"]}
_ALONE = 4  # references to the memory's array that do not count: the tensor's own, this file's, and the counting's
_moving = locks.lock()


def shared(holder: Any) -> Segment | None:
    """Move the memory of a tensor on the CPU to a segment, unless it is there already, and with it every tensor that lies in it.

    Returns the segment; None where the tensor has no elements. numpy arrays that programs hold (`x.numpy()`) stay on the memory of before.
    Raises OutOfMemoryError, nothing moved.
    """
    with _moving:
        array = _array_of(holder)
        if type(array) is WrappedArray:
            raise TransformError("share_memory_: inside vmap, grad or jvp a tensor has no memory of its own; share it before the transform")
        if not array.size:
            return None
        found = segment_of(array)
        if found is not None:
            return found
        owner, low, high = whole_memory(array)
        alone = owner is array and sys.getrefcount(owner) <= _ALONE
        segment = create(high - low)
        there = np.asarray(segment)
        there[:] = bytes_of(owner, low, high)
        holders = {id(h): h for h in ([holder] if alone else [holder, *_others(owner, low, high)])}.values()
        windows = [np.ndarray(a.shape, a.dtype, there, a.ctypes.data - low, a.strides) for a in map(_array_of, holders)]
        for h, window in zip(holders, windows, strict=True):
            _slot_of(h).__set__(h, window)
        return segment


def _slot_of(holder: Any) -> Any:
    return next(slot for kind, slot in HOLDERS.items() if issubclass(type(holder), kind))


def _array_of(holder: Any) -> Any:
    return _slot_of(holder).__get__(holder)


def _others(owner: np.ndarray, low: int, high: int) -> list[Any]:
    """The tensors and storages of the program whose arrays lie in a memory. Views of views are found as well, which no list of ours holds."""
    kinds, found = tuple(HOLDERS), []
    for candidate in gc.get_objects():
        if not issubclass(type(candidate), kinds):
            continue
        try:
            a = _array_of(candidate)
        except AttributeError:  # being made by another thread
            continue
        if type(a) is np.ndarray and a.size and low <= a.ctypes.data < high and np.may_share_memory(a, owner):
            found.append(candidate)
    return found
