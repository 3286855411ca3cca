"""Pickles of batches for the loader, large arrays out of band: as spans of the pieces of shared memory that they lie in.

What `default_collate` made lies in a piece already; other tensors and numpy arrays are copied into one, once. Views of one memory stay views of one.
"""

from __future__ import annotations

import io
import pickle
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from tritensor.data.workers.memory_pool import SMALL, MemoryPool, PieceUse
from tritensor.ground.dtypes import of as dtype_of
from tritensor.ground.errors import DeviceError, GradError
from tritensor.multiprocessing.reductions import make_tensor_on
from tritensor.ops.array import CudaArray, device_of
from tritensor.ops.lazy_array import compute_now
from tritensor.tensor.copying import copy_compact, memory_owner, view_bytes
from tritensor.tensor.core import Tensor
from tritensor.tensor.host_values import is_instance
from tritensor.tensor.shared_memory import memory_base

Span = tuple[int, int, int]  # a piece's number, the offset in it, bytes


class _OutOfBand:
    """The buffers of a batch that its pickle leaves out: their `spans`; `uses` keeps the pieces until the batch is sent."""

    def __init__(self, pool: MemoryPool) -> None:
        self.pool = pool
        self.spans: list[Span] = []
        self.uses: list[PieceUse] = []
        self._copies: dict[tuple[int, int], PieceUse] = {}  # by address and bytes: what views share goes once

    def keep_in_band(self, buffer: pickle.PickleBuffer) -> bool:
        """Whether a buffer goes inside the pickle. Else its span is noted; one that lies in no piece is copied into one."""
        raw = buffer.raw()
        if raw.nbytes < SMALL:
            return True
        memory = np.frombuffer(raw, np.uint8)
        holder = memoryview(buffer).obj
        use: Any = memory_base(holder) if isinstance(holder, np.ndarray) else None
        if type(use) is PieceUse:
            first = memory.ctypes.data - use.address
        else:
            use, first = self._copy_to_piece(memory), 0
        self.spans.append((use.piece.number, first, memory.nbytes))
        self.uses.append(use)
        return False

    def _copy_to_piece(self, memory: np.ndarray) -> PieceUse:
        """A piece with the same bytes; that of the copy before where views share the memory."""
        key = memory.ctypes.data, memory.nbytes
        if key not in self._copies:
            use = self._copies[key] = self.pool.take(memory.nbytes)
            np.asarray(use)[: memory.nbytes] = memory
        return self._copies[key]


class _Packer(ForkingPickler):
    """Pickles one batch."""

    def __init__(self, file: io.BytesIO, out_of_band: _OutOfBand) -> None:
        # not a method of the pickler: a circle of references would keep the batch until the collector comes
        super().__init__(file, 5, True, out_of_band.keep_in_band)
        self.pool = out_of_band.pool
        self._buffers: dict[tuple[int, int], pickle.PickleBuffer] = {}  # by address and bytes, as views share them

    def reducer_override(self, obj: Any) -> Any:
        """The reduction of a tensor or a scattered array; everything else goes as always."""
        if isinstance(obj, Tensor):
            # a class with a pickle of its own, such as a parameter without a shape, keeps it
            return self._reduce_tensor(obj) if type(obj).__reduce_ex__ is Tensor.__reduce_ex__ else NotImplemented
        # pickle would copy an array with gaps into the stream; made dense in a piece it is copied once, and not sent
        if type(obj) is np.ndarray and obj.nbytes >= SMALL and obj.dtype.kind not in "OSU" and not obj.flags.forc:
            dense = self.pool.empty(obj.shape, obj.dtype)
            dense[...] = obj
            return dense.__reduce_ex__(5)
        return NotImplemented

    def _reduce_tensor(self, tensor: Tensor) -> Any:
        compute_now(tensor)
        array = tensor._array
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
        if tensor.is_meta or is_instance(tensor):  # no memory of its own: what such a class holds is packed by itself
            return Tensor.__reduce_ex__(tensor, 4)
        memory, array = self._find_memory(array) if array.size else (None, array)
        offset = array.ctypes.data - memory.ctypes.data if memory is not None else 0
        plan = (dtype_of(array.dtype).name, array.shape, array.strides, offset)
        return make_tensor_on, (type(tensor), self._shared_buffer(memory), plan, tensor._tracked, getattr(tensor, "__dict__", None) or {})

    def _find_memory(self, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the bytes that are sent for an array, the array in them): the memory that it lies in, a copy where it is a small part of that."""
        base = memory_base(array)
        if type(base) is PieceUse:
            return np.asarray(base), array
        owner, low, high = memory_owner(array)
        if high - low > 2 * array.nbytes:
            array = copy_compact(array)
            owner, low, high = memory_owner(array)
        return view_bytes(owner, low, high), array

    def _shared_buffer(self, memory: np.ndarray | None) -> pickle.PickleBuffer | None:
        if memory is None:
            return None
        key = memory.ctypes.data, memory.nbytes
        if key not in self._buffers:
            self._buffers[key] = pickle.PickleBuffer(memory)  # type: ignore[arg-type]
        return self._buffers[key]


def pack_batch(batch: Any, pool: MemoryPool) -> tuple[bytes, list[Span], list[PieceUse]]:
    """(a batch's pickle, the spans of its large arrays, the uses that keep them until the batch is sent). Raises what pickling raises."""
    file, out_of_band = io.BytesIO(), _OutOfBand(pool)
    _Packer(file, out_of_band).dump(batch)
    return file.getvalue(), out_of_band.spans, out_of_band.uses
