"""Arrays: what ops compute on. On the CPU a numpy.ndarray itself, on a GPU a CudaArray, on device meta a MetaArray, which speak numpy's view vocabulary."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tritensor.cuda.memory.storage import allocate
from tritensor.ground import dtypes, shortcuts
from tritensor.ground.device import cpu, device
from tritensor.ground.errors import DeviceError, DTypeError
from tritensor.ground.process import locks
from tritensor.ground.strides import (
    BACKWARDS,
    CONTIGUOUS,
    IMAGES,
    OWN,
    contiguous_strides,
    dims_by_stride,
    elementwise_strides,
    image_strides,
    memory_extent,
)
from tritensor.ground.transforms import WrappedArray
from tritensor.llvm import malloc
from tritensor.ops.lazy_array import LazyArray, settle
from tritensor.ops.strided_array import MetaArray, StridedArray, empty_meta, no_values, reinterpreted_layout
from tritensor.ops.strided_array import reshape_strides as reshape_strides

malloc.keep()


class Layout:
    """All that a kernel launch depends on of an array but its address; equal ones are one object, so that comparing is `is`."""

    __slots__ = ("__weakref__", "device", "dtype", "residue", "shape", "size", "strides")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, residue: int, device: device) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.residue = residue  # of the address, divided by 16: it decides the width of accesses
        self.device = device
        self.size: Any = None  # the Size that tensors show, once one was asked


# weak: shapes that a program has left behind are forgotten
_layouts: weakref.WeakValueDictionary[Any, Layout] = weakref.WeakValueDictionary()


class CudaArray(StridedArray):
    """A strided window on device memory: a Storage, the address of its first element, strides in ELEMENTS, a shape and a numpy dtype."""

    __slots__ = ()

    def layout(self) -> Layout:
        """The interned Layout of this array, all that a kernel launch asks of it but its address."""
        found: Layout | None = self.known_layout
        if found is None:
            on = self.storage.device
            key = (self.shape, self.strides, self.dtype, self.pointer % 16, on)
            found = _layouts.get(key)
            if found is None:
                found = _layouts[key] = Layout(*key)
            self.known_layout = found
        return found


_numpy_layouts: dict[Any, Layout] = {}
_MANY_LAYOUTS = 1 << 15
_making = locks.lock()


def layout_of(x: Any) -> Layout | None:
    """The interned Layout of an array on the CPU or on a GPU; of numpy's the strides are bytes. None for any other array."""
    if type(x) is not np.ndarray:
        return x.layout() if type(x) is CudaArray else None
    key = x.shape, x.strides, x.dtype
    found = _numpy_layouts.get(key)
    if found is None:
        with _making:
            if len(_numpy_layouts) >= _MANY_LAYOUTS:  # of a program with ever new shapes
                _numpy_layouts.clear()
            found = _numpy_layouts.setdefault(key, Layout(*key, 0, cpu))
    return found


Array: TypeAlias = Any  # np.ndarray | CudaArray | MetaArray: which of them the device says, and a checker cannot follow that


def element_strides(x: Array) -> tuple[int, ...]:
    """Strides in elements of any array (numpy counts bytes)."""
    if isinstance(x, StridedArray):
        return x.strides
    size = x.itemsize
    return tuple([s // size for s in x.strides])


def is_contiguous(x: Array) -> bool:
    """True where the elements lie in C order without gaps."""
    return x.is_contiguous() if isinstance(x, StridedArray) else x.flags.c_contiguous


def device_of(x: Array) -> device:
    """The device that holds the array."""
    return x.storage.device if isinstance(x, StridedArray) else x.device if type(x) is WrappedArray else cpu


def reinterpreted(x: Array, dtype: np.dtype) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and element strides of x's bytes read as another type; see `reinterpreted_layout`, which raises ShapeError where that cannot be."""
    inner: Any = x
    while type(inner) is WrappedArray:
        inner = inner.value._array
    address = inner.pointer if isinstance(inner, StridedArray) else inner.ctypes.data
    return reinterpreted_layout(tuple(x.shape), element_strides(x), address, x.dtype, dtype)


def as_strided(x: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Array:
    """A view of any shape, strides and offset in elements, counted from x's first element; the caller keeps it in bounds."""
    if isinstance(x, StridedArray):
        return x.as_strided(shape, strides, offset)
    if x.itemsize == 1 and x.dtype.isbuiltin == 2:  # numpy's as_strided does not know float8
        return as_strided(x.view(np.uint8), shape, strides, offset).view(x.dtype)
    if x.size == 0 or offset == 0:
        start = x
    else:
        start = np.lib.stride_tricks.as_strided(x, (1,), (x.itemsize,))  # a base whose address can be moved
        start = np.lib.stride_tricks.as_strided(start, (offset + 1,), (x.itemsize,))[offset:]
    return np.lib.stride_tricks.as_strided(start, shape, tuple(s * x.itemsize for s in strides))


def expand(x: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast to `shape` without moving data; the result can be written through numpy only where no stride is 0."""
    return x.expand(shape) if isinstance(x, StridedArray) else np.broadcast_to(x, shape)


def empty(shape: tuple[int, ...], dtype: np.dtype, on: device, strides: tuple[int, ...] | None = None) -> Array:
    """An uninitialised array: C-ordered, or of strides (in elements) that fill its memory."""
    if on.type == "cpu":
        if strides is None:
            return np.empty(shape, dtype)
        order = dims_by_stride(strides)
        return np.empty([shape[d] for d in order], dtype).transpose(np.argsort(order))
    if on.type == "meta":
        return empty_meta(shape, dtype, strides)
    if dtypes.of(dtype).triton is None:
        raise DeviceError(
            f"{dtypes.of(dtype).name} lives on the CPU only, no kernel takes it; keep the tensor there or use .real/.imag, asked for: {on}"
        )
    return CudaArray(allocate(math.prod(shape) * dtype.itemsize, on), shape, dtype, strides)


def empty_elementwise(shape: tuple[int, ...], dtype: np.dtype, on: device, operands: Sequence[Any]) -> Array:
    """An uninitialised result of an elementwise op, laid out as its operands are; numbers among them have no say."""
    layouts = tuple([(x.shape, element_strides(x)) for x in operands if isinstance(x, StridedArray | np.ndarray)])
    return empty(shape, dtype, on, elementwise_strides(shape, layouts))


def to_layout(rule: str, x: Any, arrays: Sequence[Any]) -> np.ndarray:
    """A result that numpy made of `arrays`, as an array (not one of its scalars), laid out as an op's rule says: x itself where numpy's own order is that."""
    if type(x) is not np.ndarray:
        x = np.asarray(x)
    if rule == OWN or x.ndim < 2:
        return x
    if rule == CONTIGUOUS or 0 in x.shape:
        return x if x.flags.c_contiguous else _in_c_order(x)
    given = [a for a in arrays if isinstance(a, np.ndarray)]
    if x.flags.c_contiguous and all([a.flags.c_contiguous and (rule != IMAGES or 1 not in a.shape) for a in given]):
        return x  # with axes of size 1 an image in C order may have its channels last, too
    layouts = tuple([(a.shape, element_strides(a)) for a in (reversed(given) if rule == BACKWARDS else given)])
    return lying(x, (image_strides if rule == IMAGES else elementwise_strides)(x.shape, layouts))


def lying(x: np.ndarray, strides: tuple[int, ...]) -> np.ndarray:
    """x itself where it has these strides, in elements, or a copy that has; those of dimensions of size 1 say nothing."""
    if all([n == 1 or have == step * x.itemsize for n, have, step in zip(x.shape, x.strides, strides, strict=True)]):
        return x
    if strides == contiguous_strides(x.shape):
        return _in_c_order(x)
    y = empty(x.shape, x.dtype, cpu, strides)
    np.copyto(y, x)
    return y


_MANY = 4096  # elements from which on a copy by tiles pays


def _in_c_order(x: np.ndarray) -> np.ndarray:
    """A copy in C order. Where the first dimension lies innermost and the others before it, as convolutions compute, in tiles that stay in
    the cache, which numpy's copy does not do."""
    if x.size < _MANY or x.strides[0] != x.itemsize or not (last := x.transpose(*range(1, x.ndim), 0)).flags.c_contiguous:
        return np.array(x, order="C")
    n = x.shape[0]
    rows, y = last.reshape(-1, n), np.empty(x.shape, x.dtype)
    columns = y.reshape(n, -1)
    step = max(8192 // n, 16)
    for start in range(0, len(rows), step):
        columns[:, start : start + step] = rows[start : start + step].T
    return y


def refuse_no_kernel_type(op: str, dtype: np.dtype) -> None:
    """Raise DTypeError, for a result of an op on a GPU, where kernels do not know its type."""
    if dtypes.of(dtype).triton is None:
        raise DTypeError(f"{op}: {dtypes.of(dtype).name} lives on the CPU only; move the tensor there first with .cpu()")


def empty_like(x: Array, dtype: np.dtype | None = None) -> Array:
    """An uninitialised C-ordered array of x's shape on x's device."""
    return empty(x.shape, x.dtype if dtype is None else dtype, device_of(x))


def to_host(x: Array) -> np.ndarray:
    """The values as a numpy array; waits for the device. A numpy array is returned as it is."""
    shortcuts.note_values_read()
    if not isinstance(x, CudaArray):
        if type(x) is MetaArray:
            raise no_values()
        if type(x) is LazyArray:
            return to_host(x.settled())
        return x.on_host() if type(x) is WrappedArray else x
    if x.size == 0:
        # no memory, and no wait for the device
        return np.empty(x.shape, x.dtype)
    # One copy of the span between the first and the last element, then strided on the host: no kernel needed.
    low, high = memory_extent(x.shape, x.strides)
    span = np.empty((high - low + 1) * x.itemsize, np.uint8)  # as bytes: as_strided does not know float8
    x.storage.read(span, (x.offset + low) * x.itemsize)
    view = np.ndarray(x.shape, x.dtype, span, -low * x.itemsize, tuple(s * x.itemsize for s in x.strides))
    return view if view.flags.c_contiguous else view.copy()


def all_values(x: Array) -> np.ndarray:
    """The values for a check: inside a transform those of the tensor below, under vmap of all examples together. Waits for the device."""
    while type(x) is WrappedArray:
        x = x.value._array
    return to_host(x)


def from_host(x: np.ndarray, on: device) -> Array:
    """A copy of host values on a device (on the CPU: a C-ordered copy)."""
    if on.type == "cpu":
        # a copy here, too: a tensor must not change with the caller's array
        return np.array(x, order="C")
    out = empty(x.shape, x.dtype, on)
    if x.size and type(out) is CudaArray:  # device meta keeps no values
        out.storage.write(np.require(x, requirements="C"), 0)
    return out


def first_address(x: Array) -> int:
    """Where an array's first element lies; of a wrapped one that of what it wraps."""
    if type(x) is WrappedArray:
        return first_address(x.value._array)
    return x.pointer if isinstance(x, StridedArray) else int(x.ctypes.data)


def same_memory(a: Array, b: Array) -> bool:
    """True where two arrays can touch a common element (by their spans; never wrongly False)."""
    # inside a transform: what lies below is what is written
    while type(a) is WrappedArray:
        a = a.value._array
    while type(b) is WrappedArray:
        b = b.value._array
    if type(a) is LazyArray or type(b) is LazyArray:
        if type(a) is type(b) and a.storage is b.storage:
            return True
        if (type(a) is LazyArray and a.pending) or (type(b) is LazyArray and b.pending):
            return False  # it has memory of its own, or what nobody else looks at
        a, b = settle(a), settle(b)
    if isinstance(a, StridedArray) or isinstance(b, StridedArray):
        return isinstance(a, StridedArray) and isinstance(b, StridedArray) and a.storage is b.storage
    return bool(np.may_share_memory(a, b))
