"""Tensors between devices: to, cuda, cpu; pinned host memory for copies that do not wait; memory that several streams use."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.autograd.function import Function
from tritensor.cuda.memory import pinned
from tritensor.cuda.runtime.active import runtime
from tritensor.ground import dtypes
from tritensor.ground.device import as_device, device
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import DeviceError
from tritensor.ground.strides import as_format, is_dense, preserve_format
from tritensor.ops.table import ops
from tritensor.ops.transfer import moved
from tritensor.tensor.casting import cast
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.public_api.publish import function


class _ToDevice(Function):
    """A copy on another device; the gradient travels back."""

    @staticmethod
    def forward(x: Tensor, where: device, wait: bool) -> Tensor:  # type: ignore[override]
        return new_tensor(moved(x._array, where, wait))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.source = inputs[0].device

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor, where: device, wait: bool) -> Any:
        return _ToDevice.apply(x, where, wait), in_dims[0]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        return _ToDevice.apply(g, ctx.source, True), None, None


class _Pinned(Function):
    """A copy in pinned memory; its gradient is an ordinary tensor."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:  # type: ignore[override]
        out = pinned.empty(x._array.shape, x._array.dtype)
        np.copyto(out, x._array)
        return new_tensor(out)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """Nothing is kept."""

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], x: Tensor) -> Any:
        return _Pinned.apply(x), in_dims[0]

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        return g


def _cast_if_given(x: Tensor, want: DType | None) -> Tensor:
    if want is None or x._array.dtype == want.numpy:
        return x
    return cast(x, want.numpy)


@function(free=False, also={"other": "args"})
def to(
    x: Tensor, *args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False, copy: bool = False, memory_format: Any = None
) -> Tensor:
    """x on another device and/or as another dtype: `x.to("cuda")`, `x.to(float16)`, `x.to(other)`; itself when nothing changes.

    Args:
        non_blocking: do not wait for a copy between host and GPU. From pinned memory (`pin_memory`) the host goes on while it runs,
            and x must not be written until then; ordinary memory is taken over by the driver first. A copy to the host comes in
            pinned memory, and its values are there after `cuda.synchronize()` (or an event or stream has been waited for).
        copy: a new tensor also where nothing changes.
        memory_format: contiguous_format or channels_last; preserve_format, the default, keeps x's layout where x has no gaps.

    Complex numbers as real ones lose their imaginary part, with one warning.

    Raises DeviceError where there is no such device, ShapeError for a format of another number of dimensions.

    >>> tt.tensor([1.7]).to(tt.int32)
    tensor([1], dtype=tritensor.int32)
    """
    flags = []
    for a in args:
        if isinstance(a, Tensor):
            device, dtype = a.device, a.dtype
        elif isinstance(a, DType | np.dtype | type):
            dtype = a
        elif isinstance(a, bool):
            flags.append(a)
        elif a is not None:
            device = a
    # x.to(device, dtype, non_blocking, copy), by place.
    if flags:
        non_blocking, copy = (*flags, copy)[:2]
    want = None if dtype is None else dtypes.as_dtype(dtype)
    where = x.device if device is None else as_device(device)
    y = x
    if where != x.device:
        if x.is_cuda:
            # Cast on the GPU first: after a copy that does not wait, the host must not read the values.
            if where.type == "cpu" and non_blocking:
                if want is not None and want.triton is None:
                    non_blocking = False  # no kernel makes this type, so the host must, from values that are there
                y = _cast_if_given(y, want if non_blocking else None)
            # A copy by the driver moves whole memory: gaps are closed first.
            if (non_blocking or where.type == "cuda") and not is_dense(y._array.shape, y._array.strides):
                y = ops.copy(y, memory_format=preserve_format)
        y = _ToDevice.apply(y, where, not non_blocking)
    y = _cast_if_given(y, want)
    wanted = as_format("to", memory_format, preserve_format)
    if (copy and y is x) or (wanted is not preserve_format and not y.is_contiguous(wanted)):
        y = ops.copy(y, memory_format=wanted)
    return y


@function(free=False)
def cfloat(x: Tensor, memory_format: Any = preserve_format) -> Tensor:
    """x as complex64; itself when it is."""
    return to(x, dtype=dtypes.complex64, memory_format=memory_format)


@function(free=False)
def cdouble(x: Tensor, memory_format: Any = preserve_format) -> Tensor:
    """x as complex128; itself when it is."""
    return to(x, dtype=dtypes.complex128, memory_format=memory_format)


@function(free=False)
def cpu(x: Tensor, memory_format: Any = preserve_format) -> Tensor:
    """x on the CPU; itself when it is there."""
    return to(x, device="cpu", memory_format=memory_format)


@function(free=False)
def cuda(x: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = preserve_format) -> Tensor:
    """x on a GPU; itself when it is there. `non_blocking` as in `to`. Raises DeviceError when there is none."""
    return to(x, device="cuda" if device is None else device, non_blocking=non_blocking, memory_format=memory_format)


@function(free=False)
def pin_memory(x: Tensor, device: Any = None) -> Tensor:
    """A copy of x in pinned host memory, from and to which a GPU copies by itself; x itself when it lies there.

    The memory goes back to a cache with the last tensor on it. `device` is accepted for PyTorch's sake: pinned memory serves all GPUs.

    Raises DeviceError for a tensor on a GPU, and where there is no GPU; OutOfMemoryError where no more memory can be pinned.
    """
    if not x.is_cpu:
        raise DeviceError(f"pin_memory: the tensor is on {x.device}; only memory of the host can be pinned; call it on .cpu()")
    return x if pinned.block_of(x._array) is not None else _Pinned.apply(x)


@function(free=False)
def is_pinned(x: Tensor, device: Any = None) -> bool:
    """Whether x lies in pinned host memory."""
    return x.is_cpu and pinned.block_of(x._array) is not None


@function(free=False, also={"s": "stream"})
def record_stream(x: Tensor, stream: Any) -> None:
    """Say that work on a stream uses x: its memory is not handed out again before the work queued there when x dies is done.

    Needed where a tensor made on one stream is used on another one without the first waiting for it. Raises DeviceError for a tensor
    on the CPU, or a stream of another GPU.
    """
    if not x.is_cuda:
        raise DeviceError("record_stream: the tensor is on the CPU, whose memory no stream uses; call it on the copy on the GPU")
    index = x.device.index or 0
    if stream.device_index != index:
        raise DeviceError(f"record_stream: the tensor is on cuda:{index}, the stream belongs to cuda:{stream.device_index}")
    runtime().record_stream(x._array.storage, stream.cuda_stream)
