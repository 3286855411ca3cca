"""Moving arrays between the host and GPUs, and from one GPU to another; with or without waiting for the copy."""

from __future__ import annotations

import numpy as np

from tritensor.cuda.memory import pinned
from tritensor.cuda.runtime.active import runtime
from tritensor.ground.device import device
from tritensor.ground.strides import dims_by_stride, preserve_format, strides_in_format
from tritensor.ground.thread_state import here, stream_of
from tritensor.ops.array import Array, CudaArray, element_strides, empty, from_host, is_contiguous, to_host
from tritensor.ops.lazy_array import settle
from tritensor.ops.strided_array import MetaArray, no_values


def moved(x: Array, on: device, wait: bool = True) -> Array:
    """A copy of an array on another device, laid out as x is; gaps are closed and repeats undone.

    Args:
        x: the array; one on a GPU that is copied without waiting has to be dense.
        on: where to.
        wait: for the copy to be done. Without, a copy from pinned memory (whose values must stay until then) runs while the host
            goes on, one from ordinary memory is taken over by the driver before this returns, and one to the host is valid,
            in pinned memory, when the stream has been waited for.
    """
    x = settle(x)
    if type(x) is MetaArray:
        raise no_values("to", f"a copy to {on} asks for values")
    if is_contiguous(x):
        return _copy(x, on, wait)
    order = dims_by_stride(strides_in_format(tuple(x.shape), element_strides(x), preserve_format))
    return _copy(x.transpose(order), on, wait).transpose(tuple([order.index(d) for d in range(len(order))]))


def _copy(x: Array, on: device, wait: bool) -> Array:
    """The same for the order of dimensions in which x lies in memory: the copy is C-ordered."""
    if on.type == "meta":
        return empty(x.shape, x.dtype, on)
    if not isinstance(x, CudaArray):
        return from_host(x, on) if wait else _copy_up(x, on)
    if on.type == "cpu":
        return np.require(to_host(x), requirements="C") if wait or x.size == 0 else _copy_down(x)
    # by way of the host: this floor has no kernel to copy with
    if not x.is_contiguous():
        return from_host(to_host(x), on)
    out = empty(x.shape, x.dtype, on)
    if x.size:
        there = x.device.index or 0
        # the source may die before the copy is done, and its block go to another stream
        runtime().record_stream(x.storage, stream_of(there))
        runtime().copy_on_device(out.storage, 0, x.storage, x.offset * x.itemsize, x.nbytes)
    return out


def _copy_up(x: np.ndarray, on: device) -> Array:
    """To a GPU, not waiting."""
    out = empty(x.shape, x.dtype, on)
    source = np.require(x, requirements="C")
    if not source.size:
        return out
    if pinned.block_of(source) is None and here.capture is not None:
        out.storage.write(source, 0)  # waits, and so says what a capture forbids: a replay would read memory that may be gone
        return out
    if here.recorder is not None:
        here.recorder.spoil("it writes device memory from the host")
    index = on.index or 0
    runtime().copy_to_device(out.storage, 0, source, wait=False)
    # the array may be dropped while the copy still reads it
    pinned.used(source, index, stream_of(index))
    return out


def _copy_down(x: CudaArray) -> np.ndarray:
    """To pinned memory, not waiting."""
    if here.recorder is not None:
        here.recorder.spoil("it reads device memory from the host")
    index = x.device.index or 0
    out = pinned.empty(x.shape, x.dtype)
    pinned.used(out, index, stream_of(index))
    runtime().record_stream(x.storage, stream_of(index))
    runtime().copy_to_host(out, x.storage, x.offset * x.itemsize, wait=False)
    return out
