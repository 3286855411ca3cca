"""DLPack by ctypes: a tensor's memory as a capsule for other libraries, and theirs as an array (https://dmlc.github.io/dlpack, version 1.1)."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from tritensor.cuda.memory.storage import HostStorage
from tritensor.cuda.runtime.active import emulated
from tritensor.cuda.streams.stream import ExternalStream, current_stream
from tritensor.ground import dtypes
from tritensor.ground.device import device
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ArgumentError, DeviceError, DTypeError
from tritensor.ground.strides import contiguous_strides
from tritensor.ops.array import Array, CudaArray, device_of, element_strides
from tritensor.ops.lazy_array import note_shared, settle
from tritensor.ops.strided_array import MetaArray

VERSION = (1, 1)
CPU, CUDA, CUDA_HOST = 1, 2, 3
READ_ONLY, COPIED = 1, 2  # flags
_CODES = {"int": 0, "uint": 1, "float": 2, "complex": 5, "bool": 6}
_CODE_BY_NAME = {"bfloat16": 4, "float8_e4m3fn": 10, "float8_e5m2": 12}
_DTYPES = {(_CODE_BY_NAME.get(d.name, _CODES.get(d.kind)), 8 * d.itemsize): d for d in dtypes.ALL}


class _Tensor(ctypes.Structure):
    """DLTensor."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    """DLManagedTensor: what a capsule called "dltensor" points at."""

    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


class _Versioned(ctypes.Structure):
    """DLManagedTensorVersioned: what a capsule called "dltensor_versioned" points at."""

    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]  # fmt: skip


_STRUCTURES = {b"dltensor_versioned": _Versioned, b"dltensor": _Managed}
_USED_NAMES = {b"dltensor_versioned": b"used_dltensor_versioned", b"dltensor": b"used_dltensor"}
_api = ctypes.pythonapi
_Destructor = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_SetName", _api))
# A destructor is handed a capsule that is being freed: a reference of Python's to it would free it again.
_is_valid_raw = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_get_pointer_raw = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_exported: dict[int, tuple[Any, ...]] = {}  # what lives until its consumer calls the deleter, by the structure's address


@_Deleter
def _delete(address: int) -> None:
    _exported.pop(address, None)


@_Destructor
def _drop_capsule(capsule: int) -> None:
    """A capsule that nobody has taken goes: so does what it stands for."""
    for name in _STRUCTURES:
        if _is_valid_raw(capsule, name):
            _exported.pop(_get_pointer_raw(capsule, name), None)


def device_id(array: Array) -> tuple[int, int]:
    """(device type, index), as `__dlpack_device__` gives it."""
    if type(array) is MetaArray:
        raise ArgumentError("dlpack: the tensor is on device meta, which DLPack does not know: there is no memory to share")
    on = device_of(array)
    return (CUDA, on.index or 0) if on.type == "cuda" else (CPU, 0)


def export_array(array: Array, stream: Any, versioned: bool, copied: bool) -> Any:
    """A capsule of an array, memory shared. Raises BufferError for an emulated device's, ArgumentError for a stream that is none."""
    if type(array) is MetaArray:
        raise BufferError("dlpack: the tensor is on device meta: there is no memory to share")
    array = settle(array)
    kind = dtypes.of(array.dtype)
    where = device_id(array)
    if isinstance(array, CudaArray):
        # Emulated memory is host memory under a cuda label: a consumer would hand the pointer to the driver.
        if emulated():
            raise BufferError(
                f"dlpack: the tensor is on {array.device}, which is emulated: no other library finds it there; use .cpu() first"
            )
        _order_streams(stream, where[1])
    elif stream is not None and stream != -1:
        raise ArgumentError(f"dlpack: stream {stream!r} for a tensor on the CPU, which has none; leave it out")
    sizes = (ctypes.c_int64 * max(len(array.shape), 1))(*array.shape)
    strides = (ctypes.c_int64 * max(len(array.shape), 1))(*element_strides(array))
    address = array.data_ptr() if isinstance(array, CudaArray) else array.ctypes.data
    code = _CODE_BY_NAME.get(kind.name, _CODES.get(kind.kind))
    tensor = _Tensor(address, where[0], where[1], len(array.shape), code, 8 * kind.itemsize, 1, sizes, strides, 0)
    # Python keeps the structure, shape, strides and array alive until the consumer's deleter call.
    deleter = ctypes.cast(_delete, ctypes.c_void_p)
    # Only the versioned structure has flags: an old consumer never hears that memory is read-only.
    if versioned:
        read_only = isinstance(array, np.ndarray) and not array.flags.writeable
        made: Any = _Versioned(*VERSION, None, deleter, READ_ONLY * read_only + COPIED * copied, tensor)
        name = b"dltensor_versioned"
    else:
        made, name = _Managed(tensor, None, deleter), b"dltensor"
    at = ctypes.addressof(made)
    _exported[at] = (made, sizes, strides, array)
    note_shared(array)
    return _new_capsule(at, name, ctypes.cast(_drop_capsule, ctypes.c_void_p))


def _order_streams(stream: Any, index: int) -> None:
    """Let the consumer's stream wait for what was queued on ours: None and 1 are the legacy default stream, 2 the per-thread one, -1 asks for nothing."""
    if stream == -1:
        return
    if stream is not None and (not isinstance(stream, int) or stream < 1):
        raise ArgumentError(f"dlpack: stream {stream!r}; give a handle, 1 or 2 for CUDA's default streams, or -1 for no waiting")
    own = current_stream(index)
    handle = 0 if stream in (None, 1) else stream
    # Work on one stream is ordered by itself; an event would cost a call.
    if handle != own.cuda_stream:
        ExternalStream(handle, index).wait_stream(own)


class _ForeignMemory:
    """Memory of another library's; its deleter is called with this object's end."""

    def __init__(self, address: int, deleter: int | None) -> None:
        self.address, self.deleter = address, _Deleter(deleter) if deleter else None
        self.__array_interface__: dict[str, Any] = {}

    def __del__(self) -> None:
        if self.deleter is not None:
            self.deleter(self.address)


def import_array(source: Any) -> Array:
    """An array on the memory of anything that speaks DLPack, or of a capsule. Raises DeviceError and DTypeError for what cannot be taken."""
    capsule = source if type(source).__name__ == "PyCapsule" else _request_capsule(source)
    name = next((n for n in _STRUCTURES if _is_valid(capsule, n)), None)
    if name is None:
        raise ArgumentError("from_dlpack: the capsule is no DLPack capsule, or has been taken before; a capsule serves once")
    address = _get_pointer(capsule, name)
    made: Any = _STRUCTURES[name].from_address(address)
    tensor = made.tensor
    kind = _DTYPES.get((tensor.code, tensor.bits))
    if tensor.device_type not in (CPU, CUDA, CUDA_HOST):
        raise DeviceError(
            f"from_dlpack: the memory is on a device of DLPack's type {tensor.device_type}; CPU and CUDA are taken, copy it there first"
        )
    if kind is None or tensor.lanes != 1:
        raise DTypeError(
            f"from_dlpack: elements of DLPack's type {tensor.code} with {tensor.bits} bits and {tensor.lanes} lanes; convert them first"
        )
    if name == b"dltensor_versioned" and made.major != VERSION[0]:
        raise BufferError(f"from_dlpack: DLPack {made.major}.{made.minor}; version {VERSION[0]} is understood")
    # Renamed so that the capsule's destructor leaves the memory to us, and nobody takes it twice.
    _set_name(capsule, _USED_NAMES[name])
    owner = _ForeignMemory(address, made.deleter)
    read_only = name == b"dltensor_versioned" and bool(made.flags & READ_ONLY)
    return _cuda_array(tensor, kind, owner) if tensor.device_type == CUDA else _host_array(tensor, kind, owner, read_only)


def _request_capsule(source: Any) -> Any:
    """The capsule of an object: the newest kind that it has, ordered after its work on our stream."""
    options: dict[str, Any] = {}
    if int(source.__dlpack_device__()[0]) == CUDA:
        options["stream"] = current_stream(int(source.__dlpack_device__()[1])).cuda_stream or 1
    try:
        # Version 1 lets the producer say read-only and copied.
        return source.__dlpack__(max_version=VERSION, **options)
    except TypeError:  # of before version 1
        return source.__dlpack__(**options)


def _layout(tensor: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(shape, strides in elements)."""
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.strides:
        return shape, tuple(tensor.strides[i] for i in range(tensor.ndim))
    return shape, contiguous_strides(shape)


def _host_array(tensor: Any, kind: DType, owner: _ForeignMemory, read_only: bool) -> np.ndarray:
    shape, strides = _layout(tensor)
    # Producers give a null pointer for no elements, which numpy refuses.
    if 0 in shape:
        return np.empty(shape, kind.numpy)
    plain = np.dtype(f"u{kind.itemsize}") if kind.name in _CODE_BY_NAME else kind.numpy  # numpy has no name for those
    owner.__array_interface__ = {
        "data": ((tensor.data or 0) + tensor.byte_offset, read_only),
        "shape": shape,
        "strides": tuple(s * kind.itemsize for s in strides),
        "typestr": plain.str,
        "version": 3,
    }
    found = np.asarray(owner)
    note_shared(found)
    return found if plain == kind.numpy else found.view(kind.numpy)


def _cuda_array(tensor: Any, kind: DType, owner: _ForeignMemory) -> CudaArray:
    shape, strides = _layout(tensor)
    reach = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0
    storage = HostStorage(
        (tensor.data or 0) + tensor.byte_offset, reach * kind.itemsize, device("cuda", tensor.device_id), lambda _: owner.address
    )
    return CudaArray(storage, shape, kind.numpy, strides)
