"""Results where tensors look for them: each storage that is still held gets memory of its own with its value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tritensor.fusion.graph import Value
from tritensor.fusion.running import copy_values, lay, room
from tritensor.ground.strides import repeats
from tritensor.ops.array import device_of, element_strides
from tritensor.ops.lazy_array import PendingStorage, owner_of
from tritensor.ops.strided_array import StridedArray


def store_results(held: Sequence[PendingStorage], leaves: Iterable[Value], failed: Mapping[Value, Exception]) -> None:
    """Give storages their computed arrays. Memory that existed before is written last, when all that was read of it has been."""
    taken = {_memory(v.array) for v in leaves if v.array is not None}
    homes = []
    found = []
    for storage in held:
        value, array = storage.value, storage.value.array
        if value in failed:
            storage.failure = failed[value]
            continue
        if storage.home is not None:
            if array is not storage.home:
                # a copy, where what is to be written is itself memory that is written
                homes.append((storage, copied(array, value.strides) if _memory(array) in taken else array))
            found.append((storage, storage.home))
            continue
        if storage.guessed is not None and not storage.fixed:
            storage.learn(tuple(element_strides(array)))
        if _memory(array) in taken:
            array = copied(array, storage.strides)
        elif storage.fixed or repeats(array.shape, array.strides):  # as a gradient that is handed on may
            array = lay(array, storage.strides)
        taken.add(_memory(array))
        found.append((storage, array))
    for storage, array in homes:
        copy_values(storage.home, array)
    for storage, array in found:
        storage.real, storage.value, storage.segment, storage.home = array, None, None, None


def _memory(array: Any) -> int:
    """What tells whether two arrays lie in one piece of memory: the id of its owner."""
    if isinstance(array, StridedArray):
        return id(array.storage)
    return id(owner_of(array))


def copied(array: Any, strides: tuple[int, ...]) -> Any:
    """A copy of an array that lies so."""
    made = room(tuple(array.shape), array.dtype, strides, device_of(array))
    copy_values(made, array)
    return made
