"""Copies of tensors with the memory they lie in: views of one memory that are deep-copied together are views of one copy."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.autograd import engine
from tritensor.ground import dtypes
from tritensor.ground.device import as_device
from tritensor.ground.strides import memory_extent
from tritensor.ops.array import CudaArray, device_of, element_strides, from_host
from tritensor.ops.lazy_array import settle
from tritensor.ops.strided_array import MetaArray, MetaStorage, StridedArray

_BYTE = np.dtype(np.uint8)


def copy_with_storage(x: Any, memo: dict[Any, Any]) -> Any:
    """x's window on a copy of the whole memory it lies in; `memo`, that of copy.deepcopy, holds the memories copied so far."""
    if isinstance(x, StridedArray):
        storage = memo.get(("storage", id(x.storage)))
        if storage is None:
            storage = engine.copy(type(x)(x.storage, (x.storage.nbytes,), _BYTE)).storage
            memo["storage", id(x.storage)] = storage
        return type(x)(storage, x.shape, x.dtype, x.strides, x.offset)
    owner = _find_owner(x)
    low, high = _address_span(owner)
    data = memo.get(("storage", low, high))
    if data is None:
        # Keyed by addresses: two numpy arrays on one memory share no object that identifies it.
        data = memo["storage", low, high] = view_bytes(owner, low, high).copy()
    return np.ndarray(x.shape, x.dtype, data, x.ctypes.data - low if x.size else 0, x.strides)


def storage_vector(x: Any, dtype: np.dtype) -> Any:
    """The whole memory that x lies in as a vector of another type, as far as it holds whole elements; it keeps that memory alive."""
    if isinstance(x, StridedArray):
        return type(x)(x.storage, (x.storage.nbytes // dtype.itemsize,), dtype)
    owner = _find_owner(x)
    low, high = _address_span(owner)
    return np.ndarray(((high - low) // dtype.itemsize,), dtype, view_bytes(owner, low, high, read_only=True))


def memory_owner(x: np.ndarray) -> tuple[np.ndarray, int, int]:
    """(the array that owns the memory which x lies in, the address of its first byte, the address behind its last)."""
    owner = _find_owner(x)
    return owner, *_address_span(owner)


class Memory:
    """Bytes at an address, which numpy sees as a vector; it lives as long as the last array on them, as that array's `base`."""

    __slots__ = ("__weakref__", "address", "nbytes")
    read_only = False

    def __init__(self, address: int, nbytes: int) -> None:
        self.address, self.nbytes = address, nbytes

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"shape": (self.nbytes,), "typestr": "|u1", "data": (self.address, self.read_only), "version": 3}


class _OwnedMemory(Memory):
    """Bytes in arrays that have to live as long as they are seen."""

    __slots__ = ("owner", "read_only")

    def __init__(self, owner: Any, low: int, high: int, read_only: bool) -> None:
        self.owner, self.read_only = owner, read_only
        super().__init__(low, high - low)


def view_bytes(owner: Any, low: int, high: int, read_only: bool = False) -> np.ndarray:
    """The bytes from one address to another, behind the last; `owner`, one or more arrays whose memory they are, lives as long."""
    return np.asarray(_OwnedMemory(owner, low, high, read_only))


def copy_compact(x: Any) -> Any:
    """A copy of x alone, without gaps, its axes in the order in which they lie in memory."""
    if not isinstance(x, StridedArray):
        return np.array(x, order="K")
    # The copy kernel writes C order: permuted to memory order before and back after, the axes lie as they did.
    order = tuple(sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis])))
    back = tuple(sorted(range(x.ndim), key=lambda axis: order[axis]))
    return engine.copy(x.transpose(order)).transpose(back)


def pack_array(x: Any) -> tuple[Any, ...]:
    """x as what `unpacked` takes: the bytes from its first to its last element, and how they are read."""
    x = settle(x)
    on, strides = device_of(x), element_strides(x)
    if type(x) is MetaArray:
        return b"", dtypes.of(x.dtype).name, x.shape, strides, x.offset, str(on)
    if isinstance(x, CudaArray):
        low, last = memory_extent(x.shape, x.strides) if x.size else (0, -1)
        data = np.empty((last + 1 - low) * x.itemsize, np.uint8)
        if x.size:
            x.storage.read(data, (x.offset + low) * x.itemsize)
        return data.tobytes(), dtypes.of(x.dtype).name, x.shape, strides, -low, str(on)
    # The bytes in between too: a view's gaps are kept, so that strides stay valid when it is read back.
    start, end = _address_span(x)
    offset = (x.ctypes.data - start) // x.itemsize if x.size else 0
    return view_bytes(x, start, end).tobytes(), dtypes.of(x.dtype).name, x.shape, strides, offset, str(on)


def unpack_array(data: bytes, dtype: str, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, where: str) -> Any:
    """The array that was packed, on its device."""
    kind, on = dtypes.as_dtype(dtype).numpy, as_device(where)
    if on.type == "meta":
        last = memory_extent(shape, strides)[1] if 0 not in shape else -1
        return MetaArray(MetaStorage((offset + last + 1) * kind.itemsize), shape, kind, strides, offset)
    memory = from_host(np.frombuffer(data, np.uint8), on)
    if isinstance(memory, CudaArray):
        return CudaArray(memory.storage, shape, kind, strides, offset)
    return np.ndarray(shape, kind, memory, offset * kind.itemsize, tuple(s * kind.itemsize for s in strides))


def _address_span(x: np.ndarray) -> tuple[int, int]:
    """Addresses of the first byte of an array's elements, and behind the last."""
    at = x.ctypes.data
    if x.size == 0:
        return at, at
    low, last = memory_extent(x.shape, x.strides)
    return at + low, at + last + x.itemsize


def _find_owner(x: np.ndarray) -> np.ndarray:
    """The array whose memory x is a window on; x itself where the memory is no array's (a mapped file, a buffer)."""
    found = x
    while True:
        base: Any = found.base
        if type(base) is not np.ndarray:  # as_strided and broadcast_to put a holder in between
            base = getattr(base, "base", None)
        if type(base) is not np.ndarray:
            break
        found = base
    low, high = _address_span(x)
    # A base chain may end in a smaller array (a buffer re-wrapped): then x is the only owner known.
    first, last = _address_span(found)
    return found if first <= low and high <= last else x
