"""Tensors sent to other processes: their memory moves to a shared segment, and the segment's file is passed on.

`multiprocessing`'s pickler, which queues, pipes, pools and arguments of processes use, has a reducer for every class of tensors; `pickle` itself and
`copy` know nothing of it and copy the values.
"""

from __future__ import annotations

import os
import weakref
from multiprocessing import reduction
from multiprocessing.reduction import ForkingPickler
from typing import Any

import numpy as np

from tritensor.ground.dtypes import as_dtype
from tritensor.ground.dtypes import of as dtype_of
from tritensor.ground.errors import DeviceError, GradError, TransformError
from tritensor.ground.process import locks
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import CudaArray, device_of
from tritensor.ops.lazy_array import compute_now
from tritensor.tensor.core import Tensor
from tritensor.tensor.host_values import new_instance
from tritensor.tensor.overriding.protocol import subclass_watchers
from tritensor.tensor.shared_memory import Segment, add_name, open_name, remove_name, take_over_name
from tritensor.tensor.sharing import move_to_shared_memory

_segments: weakref.WeakValueDictionary[str, Segment] = (
    weakref.WeakValueDictionary()
)  # by key: what is sent twice, or back, is one memory here


def reduce_tensor(tensor: Tensor) -> tuple[Any, ...]:
    """A tensor as what rebuilds it in another process, on the same memory.

    Raises GradError for a tensor that an op computed and that requires grad, DeviceError for one on a GPU.
    """
    compute_now(tensor)
    array = tensor._array
    kind = type(tensor).__name__
    # A graph lives in one process: its nodes hold functions and other tensors.
    if not tensor.is_leaf:
        raise GradError(
            f"multiprocessing: a {kind} of shape {tuple(array.shape)} that an op computed, and that requires grad, cannot be sent: its graph stays in "
            "this process, since autograd does not support crossing process boundaries; send x.detach()"
        )
    if isinstance(array, CudaArray):
        raise DeviceError(
            f"multiprocessing: a {kind} of shape {tuple(array.shape)} on {device_of(array)} cannot be sent: GPU memory is not shared between "
            "processes here; send x.cpu(), or make the tensor where it is needed"
        )
    if type(array) is WrappedArray:
        raise TransformError(
            f"multiprocessing: a {kind} inside vmap, grad or jvp cannot be sent: it stands for many; send what the transform returns"
        )
    if tensor.is_meta:  # a pickle says all of it
        return Tensor.__reduce_ex__(tensor, 4)
    del array  # so that `shared` sees whether the tensor alone holds it
    segment = move_to_shared_memory(tensor)
    array = tensor._array
    offset = array.ctypes.data - segment.address if segment is not None else 0
    plan = (dtype_of(array.dtype).name, array.shape, array.strides, offset)
    return rebuild_tensor, (type(tensor), segment, plan, tensor._tracked, getattr(tensor, "__dict__", None) or {})


def rebuild_tensor(cls: type[Tensor], segment: Segment | None, *rest: Any) -> Tensor:
    """The tensor that `reduce_tensor` was given, on the memory it lies in."""
    return make_tensor_on(cls, None if segment is None else np.asarray(segment), *rest)


def make_tensor_on(cls: type[Tensor], buffer: Any, plan: tuple[Any, ...], requires_grad: bool, attributes: dict[str, Any]) -> Tensor:
    """A tensor of a class on a buffer of bytes (None: without elements); `plan` is (name of the dtype, shape, strides and offset in bytes)."""
    dtype, shape, strides, offset = plan
    kind = as_dtype(dtype).numpy
    tensor = new_instance(cls, np.empty(shape, kind) if buffer is None else np.ndarray(shape, kind, buffer, offset, strides))
    tensor._tracked = requires_grad
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor


def reduce_segment(segment: Segment) -> tuple[Any, ...]:
    """A segment as its file: a descriptor that is passed on, or one more name in /dev/shm."""
    _segments[segment.key] = segment
    file: Any = add_name(segment) if segment.name else reduction.DupFd(segment.descriptor)
    return rebuild_segment, (segment.key, segment.nbytes, file, os.getpid())


def rebuild_segment(key: str, nbytes: int, file: Any, sender: int) -> Segment:
    """The segment of a key: the one that is mapped here already, or a new mapping of the file. Raises RuntimeError where the sender is gone."""
    with _map_lock:
        return _map_segment(key, nbytes, file, sender)


_map_lock = locks.lock()  # two threads that receive tensors of one segment at once have one mapping


def _map_segment(key: str, nbytes: int, file: Any, sender: int) -> Segment:
    found = _segments.get(key)
    by_name = isinstance(file, str)
    try:
        # The segment is mapped here: the name that travelled is not needed, and must not stay behind.
        if by_name and found is not None:
            remove_name(file)
            return found
        name = take_over_name(file) if by_name else ""
        descriptor = open_name(name) if by_name else file.detach()
    except (OSError, EOFError) as error:
        raise RuntimeError(
            f"multiprocessing: a tensor of {nbytes:,} bytes has lost its memory before it was received: process {sender}, which sent it, does not "
            f"answer ({type(error).__name__}: {error}); let it live until the tensor has been received"
        ) from error
    if found is not None:
        os.close(descriptor)
        return found
    _segments[key] = segment = Segment(descriptor, nbytes, key, name)
    return segment


def _register(cls: type[Tensor]) -> None:
    """Register reduce_tensor for a class of tensors that does not define its own pickling."""
    # A subclass that pickles itself has state that rebuild_tensor does not know.
    if hasattr(cls, "becomes") or (cls.__reduce_ex__ is Tensor.__reduce_ex__ and cls.__reduce__ is Tensor.__reduce__):
        ForkingPickler.register(cls, reduce_tensor)


def init_reductions() -> None:
    """Register the reducers with Python's multiprocessing, for all classes of tensors that exist and those defined later."""
    ForkingPickler.register(Segment, reduce_segment)
    # ForkingPickler looks classes up exactly: each subclass needs its own entry.
    waiting = [Tensor]
    while waiting:
        cls = waiting.pop()
        _register(cls)
        waiting += cls.__subclasses__()
    subclass_watchers.append(_register)
