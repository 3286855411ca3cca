"""Batches on their way to the loader: a pickle of what is small, and of large arrays the pieces of shared memory that they lie in.

What `default_collate` made lies in a piece already; other tensors and numpy arrays are copied into one, once. Views of one memory stay views of one.
"""

from __future__ import annotations

import io
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from tritensor.data.workers.memory_pool import SMALL, Pool, Use
from tritensor.ground.dtypes import of as dtype_of
from tritensor.ground.errors import DeviceError, GradError
from tritensor.multiprocessing.reductions import tensor_on
from tritensor.ops.array import CudaArray, device_of
from tritensor.tensor.copying import bytes_of, compact, whole_memory
from tritensor.tensor.core import Tensor
from tritensor.tensor.shared_memory import base_of

Place = tuple[int, int, int]  # a piece's number, the offset in it, bytes


class _Beside:
    """What of a batch goes beside its pickle: `places` in pieces; `uses` keeps these until the batch is under way."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self.places: list[Place] = []
        self.uses: list[Use] = []
        self._copies: dict[tuple[int, int], Use] = {}  # by address and bytes: what views share goes once

    def takes(self, buffer: pickle.PickleBuffer) -> bool:
        """Whether a buffer goes inside the pickle. One in a piece is noted, a large one elsewhere is copied into one."""
        seen = buffer.raw()
        if seen.nbytes < SMALL:
            return True
        memory = np.frombuffer(seen, np.uint8)
        holder = memoryview(buffer).obj
        use: Any = base_of(holder) if isinstance(holder, np.ndarray) else None
        if type(use) is Use:
            first = memory.ctypes.data - use.address
        else:
            use, first = self._copied(memory), 0
        self.places.append((use.piece.number, first, memory.nbytes))
        self.uses.append(use)
        return False

    def _copied(self, memory: np.ndarray) -> Use:
        """A piece with the same bytes; that of the copy before where views share the memory."""
        key = memory.ctypes.data, memory.nbytes
        if key not in self._copies:
            use = self._copies[key] = self.pool.take(memory.nbytes)
            np.asarray(use)[: memory.nbytes] = memory
        return self._copies[key]


class _Packer(ForkingPickler):
    """Pickles one batch."""

    def __init__(self, file: io.BytesIO, beside: _Beside) -> None:
        super().__init__(file, 5, True, beside.takes)  # not a method of its own: a circle would keep the batch until the collector comes
        self.pool = beside.pool
        self._buffers: dict[tuple[int, int], pickle.PickleBuffer] = {}  # by address and bytes, as views share them

    def reducer_override(self, obj: Any) -> Any:
        """How tensors and scattered arrays go; everything else as always."""
        if isinstance(obj, Tensor):
            # a class with a pickle of its own, such as a parameter without a shape, keeps it
            return self._tensor(obj) if type(obj).__reduce_ex__ is Tensor.__reduce_ex__ else NotImplemented
        if type(obj) is np.ndarray and obj.nbytes >= SMALL and obj.dtype.kind not in "OSU" and not obj.flags.forc:
            dense = self.pool.empty(obj.shape, obj.dtype)
            dense[...] = obj
            return dense.__reduce_ex__(5)
        return NotImplemented

    def _tensor(self, tensor: Tensor) -> Any:
        array = tensor.array
        named = f"a batch holds a tensor of shape {tuple(array.shape)}"
        if not tensor.is_leaf:
            raise GradError(
                f"DataLoader: {named} that an op computed and that requires grad; its graph stays in the worker: return x.detach()"
            )
        if isinstance(array, CudaArray):
            raise DeviceError(
                f"DataLoader: {named} on {device_of(array)}; workers hand over memory of the CPU: move the batch to the GPU in the training loop "
                "(pin_memory=True lets that copy run beside the computation)"
            )
        memory, array = self._memory_of(array) if array.size else (None, array)
        offset = array.ctypes.data - memory.ctypes.data if memory is not None else 0
        plan = (dtype_of(array.dtype).name, array.shape, array.strides, offset)
        return tensor_on, (type(tensor), self._buffer(memory), plan, tensor.tracked, getattr(tensor, "__dict__", None) or {})

    def _memory_of(self, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the bytes that are sent for an array, the array in them): the memory that it lies in, a copy where it is a small part of that."""
        base = base_of(array)
        if type(base) is Use:
            return np.asarray(base), array
        owner, low, high = whole_memory(array)
        if high - low > 2 * array.nbytes:
            array = compact(array)
            owner, low, high = whole_memory(array)
        return bytes_of(owner, low, high), array

    def _buffer(self, memory: np.ndarray | None) -> pickle.PickleBuffer | None:
        if memory is None:
            return None
        key = memory.ctypes.data, memory.nbytes
        if key not in self._buffers:
            self._buffers[key] = pickle.PickleBuffer(memory)  # type: ignore[arg-type]
        return self._buffers[key]


def packed(batch: Any, pool: Pool) -> tuple[bytes, list[Place], list[Use]]:
    """(a batch's pickle, the places of its large arrays, what keeps these until they are under way). Raises what pickling raises."""
    file, beside = io.BytesIO(), _Beside(pool)
    _Packer(file, beside).dump(batch)
    return file.getvalue(), beside.places, beside.uses
