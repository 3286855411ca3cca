"""Predicates of tensors: on the CPU, shared, dense. Those of kinds that are not here (sparse, quantized, other devices) are False."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.dtypes import as_dtype
from tritensor.ground.errors import ArgumentError, GradError
from tritensor.ground.providers import provider
from tritensor.ground.transforms import WrappedArray
from tritensor.ops.array import device_of
from tritensor.ops.lazy_array import settle
from tritensor.ops.strided_array import MetaArray, no_values
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import function
from tritensor.tensor.shared_memory import is_shared as in_shared_memory
from tritensor.tensor.sharing import move_to_shared_memory

_NEVER = {
    "is_sparse": "no tensor is sparse",
    "is_sparse_csr": "no tensor is sparse",
    "is_quantized": "no tensor is quantized",
    "is_nested": "every tensor is one array",
    "is_mkldnn": "every tensor lies as its strides say",
    "is_mps": "devices are the CPU and CUDA's",
    "is_xpu": "devices are the CPU and CUDA's",
    "is_xla": "devices are the CPU and CUDA's",
    "is_ipu": "devices are the CPU and CUDA's",
    "is_maia": "devices are the CPU and CUDA's",
    "is_mtia": "devices are the CPU and CUDA's",
    "is_vulkan": "devices are the CPU and CUDA's",
}


def _publish_false(name: str, why: str) -> None:
    def answer(self: Tensor) -> bool:
        return False

    answer.__name__ = name
    answer.__doc__ = f"False: {why}."
    setattr(Tensor, name, property(answer))


for _name, _why in _NEVER.items():
    _publish_false(_name, _why)


def _is_cpu(self: Tensor) -> bool:
    """Whether the tensor is on the CPU."""
    return device_of(self._array).type == "cpu"


def _is_meta(self: Tensor) -> bool:
    """Whether there are no values: the tensor is on device meta, and has a shape, strides and a type alone."""
    array = self._array
    return type(array) is MetaArray or (type(array) is WrappedArray and array.device.type == "meta")


def _is_view(self: Tensor) -> bool:
    """Whether the tensor is a view of another one, which `_base` is."""
    return self._base is not None


def _get_name(self: Tensor) -> None:
    """None: tensors have no names."""
    return


def _grad_dtype(self: Tensor) -> Any:
    """The type of this tensor's gradient: its own."""
    return self.dtype


def _set_grad_dtype(self: Tensor, value: Any) -> None:
    # PyTorch allows another type of gradient; here grad has its tensor's type.
    if value is not self.dtype:
        raise GradError(
            f"grad_dtype: {as_dtype(value).name} for a tensor of {self.dtype.name}; a gradient has its tensor's type, cast the tensor"
        )


Tensor._is_view = _is_view  # type: ignore[assignment, method-assign]
Tensor.is_cpu = property(_is_cpu)  # type: ignore[assignment, method-assign]
Tensor.is_meta = property(_is_meta)  # type: ignore[assignment, method-assign]
Tensor.name = property(_get_name)  # type: ignore[assignment, method-assign]
Tensor.grad_dtype = property(_grad_dtype, _set_grad_dtype)  # type: ignore[assignment, method-assign]


@function
def is_distributed(x: Tensor) -> bool:
    """False: a tensor is in one process."""
    return x._array is None  # never; what is no tensor has none to ask


@function(free=False)
def is_coalesced(x: Tensor) -> bool:
    """Raises RuntimeError, as of every tensor that is not sparse; none is."""
    raise ArgumentError("is_coalesced: the tensor is strided, and only sparse ones are coalesced or not; leave the question out")


@function(free=False)
def sparse_dim(x: Tensor) -> int:
    """0: no dimension is sparse."""
    return 0


@function(free=False)
def dense_dim(x: Tensor) -> int:
    """The number of dimensions: all are dense."""
    return len(x._array.shape)


@function(free=False)
def to_dense(x: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself, which is dense, or cast to dtype."""
    return x if dtype is None else x.to(dtype)


@function(free=False)
def is_shared(x: Tensor) -> bool:
    """Whether another process could see this memory: True on a GPU, as in PyTorch; on the CPU after share_memory_(), or where it came from
    another process."""
    return x.is_cuda or (type(array := settle(x._array)) is np.ndarray and in_shared_memory(array))


@function(free=False)
def share_memory_(x: Tensor) -> Tensor:
    """Move the memory that x lies in to where other processes see it, with all tensors that lie in it, and return x.

    A tensor that is then sent through `tritensor.multiprocessing`, or forked, is not copied: what one process writes the others read. numpy arrays
    on the memory of before stay there, and so does what another thread writes meanwhile. On a GPU nothing is done, as in
    PyTorch. Raises OutOfMemoryError where there is no room, nothing moved.
    """
    # GPU memory is shared with other processes by the driver's handles, not by this.
    if x.is_meta:
        raise no_values("share_memory_", "another process would see values")
    if not x.is_cuda:
        move_to_shared_memory(x)
        provider("multiprocessing")  # from now on Python's queues send tensors without a copy
    return x


@function(free=False)
def const_data_ptr(x: Tensor) -> int:
    """Address of the first element, for reading."""
    return x.data_ptr()
