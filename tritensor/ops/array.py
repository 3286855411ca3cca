"""Arrays: what ops compute on. On the CPU a numpy.ndarray itself, on a GPU a CudaArray that speaks numpy's view vocabulary."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from tritensor.cuda.memory.storage import Storage, allocate
from tritensor.ground import dtypes
from tritensor.ground.device import cpu, device
from tritensor.ground.errors import DeviceError, ShapeError
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

malloc.keep()


class Layout:
    """All that a kernel launch depends on of an array but its address; equal ones are one object, so that comparing is `is`."""

    __slots__ = ("__weakref__", "device", "dtype", "residue", "shape", "strides")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype, residue: int, device: device) -> None:
        self.shape = shape
        self.strides = strides
        self.dtype = dtype
        self.residue = residue  # of the address, divided by 16: it decides the width of accesses
        self.device = device


# weak: shapes that a program has left behind are forgotten
_layouts: weakref.WeakValueDictionary[Any, Layout] = weakref.WeakValueDictionary()


class CudaArray:
    """A strided window on device memory: a Storage, the address of its first element, strides in ELEMENTS, a shape and a numpy dtype.

    The view methods (`transpose`, `reshape`, `[...]`, `expand`, `as_strided`) move no data and share the storage.
    """

    __slots__ = ("__weakref__", "dtype", "known_layout", "pointer", "shape", "storage", "strides")

    def __init__(
        self, storage: Storage, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None = None, offset: int = 0
    ) -> None:
        self.storage = storage
        self.shape = shape
        self.dtype = dtype
        self.strides = contiguous_strides(shape) if strides is None else strides
        self.pointer = storage.pointer + offset * dtype.itemsize
        self.known_layout: Layout | None = None

    # what a kernel launch asks
    def data_ptr(self) -> int:
        """Address of the first element."""
        return self.pointer

    @property
    def offset(self) -> int:
        """Elements between the storage's first byte and the first element."""
        return (self.pointer - self.storage.pointer) // self.dtype.itemsize

    def layout(self) -> Layout:
        """The interned Layout of this array."""
        found = self.known_layout
        if found is None:
            on = self.storage.device
            key = (self.shape, self.strides, self.dtype, self.pointer % 16, on)
            found = _layouts.get(key)
            if found is None:
                found = _layouts[key] = Layout(*key)
            self.known_layout = found
        return found

    @property
    def device(self) -> device:
        return self.storage.device

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def is_contiguous(self) -> bool:
        step = 1
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size == 0:
                return True
            if size != 1:
                if stride != step:
                    return False
                step *= size
        return True

    # views
    def as_strided(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> CudaArray:
        """A window with its own shape, strides and offset (both in elements, offset from this array's first element)."""
        return CudaArray(self.storage, shape, self.dtype, strides, self.offset + offset)

    def transpose(self, axes: tuple[int, ...]) -> CudaArray:
        return self.as_strided(tuple(self.shape[a] for a in axes), tuple(self.strides[a] for a in axes), 0)

    def expand(self, shape: tuple[int, ...]) -> CudaArray:
        """Broadcast to `shape` by strides of 0."""
        lead = len(shape) - len(self.shape)
        strides = [0] * lead + [0 if s == 1 and t != 1 else k for s, t, k in zip(self.shape, shape[lead:], self.strides, strict=True)]
        return self.as_strided(shape, tuple(strides), 0)

    def reshape(self, shape: tuple[int, ...]) -> CudaArray:
        """A view of another shape; raises ShapeError when the strides do not allow one."""
        strides = reshape_strides(self.shape, self.strides, shape)
        if strides is None:
            raise ShapeError(
                f"view: shape {self.shape} with strides {self.strides} has no view of shape {shape}; use reshape, which copies"
            )
        return self.as_strided(shape, strides, 0)

    def view(self, dtype: np.dtype) -> CudaArray:
        """The same bytes as another element type; see `reinterpreted`."""
        shape, strides = reinterpreted(self, np.dtype(dtype))
        out = CudaArray(self.storage, shape, np.dtype(dtype), strides)
        out.pointer = self.pointer
        return out

    def __getitem__(self, index: Any) -> CudaArray:
        """Basic indexing only: a tuple of ints, slices, None and at most one Ellipsis, already checked."""
        index = index if isinstance(index, tuple) else (index,)
        used = sum(i is not None and i is not Ellipsis for i in index)
        full = (slice(None),) * (len(self.shape) - used)
        if Ellipsis in index:
            at = index.index(Ellipsis)
            index = index[:at] + full + index[at + 1 :]
        else:
            index = index + full
        shape, strides, offset, axis = [], [], 0, 0
        for i in index:
            if i is None:
                shape.append(1)
                strides.append(0)
                continue
            size, stride = self.shape[axis], self.strides[axis]
            axis += 1
            if isinstance(i, slice):
                start, stop, step = i.indices(size)
                count = len(range(start, stop, step))
                shape.append(count)
                strides.append(stride * step)
                # an empty slice may begin behind the end, and its address must stay inside
                offset += start * stride if count else 0
            else:
                offset += (i + size if i < 0 else i) * stride
        return self.as_strided(tuple(shape), tuple(strides), offset)

    def __repr__(self) -> str:
        return f"CudaArray(shape={self.shape}, dtype={dtypes.of(self.dtype).name}, strides={self.strides}, device={self.device})"


Array: TypeAlias = Any  # np.ndarray | CudaArray: which of the two the device says, and a checker cannot follow that


def reshape_strides(shape: tuple[int, ...], strides: tuple[int, ...], new: tuple[int, ...]) -> tuple[int, ...] | None:
    """Element strides under which memory of (shape, strides) reads as `new`, or None when only a copy can.

    Both shapes hold the same number of elements. Runs of old axes that lie densely are matched with runs of new axes.
    """
    if math.prod(shape) == 0:
        return contiguous_strides(new)
    old = [(n, s) for n, s in zip(shape, strides, strict=True) if n != 1]
    chunks: list[list[int]] = []  # [elements, stride of the innermost] for every dense run
    for n, s in old:
        if chunks and chunks[-1][1] == n * s:
            chunks[-1] = [chunks[-1][0] * n, s]
        else:
            chunks.append([n, s])
    out: list[int] = []
    inner = 1  # size of the dimension behind
    for size in reversed(new):
        if size == 1:  # steps over what is behind it
            out.append(out[-1] * inner if out else strides[-1] if strides else 1)
            inner = 1
            continue
        inner = size
        if not chunks or chunks[-1][0] % size:
            return None
        left, step = chunks[-1]
        out.append(step)
        chunks[-1] = [left // size, step * size]
        if chunks[-1][0] == 1:
            chunks.pop()
    return tuple(reversed(out))


def element_strides(x: Array) -> tuple[int, ...]:
    """Strides in elements of any array (numpy counts bytes)."""
    if isinstance(x, CudaArray):
        return x.strides
    return tuple(s // x.itemsize for s in x.strides)


def is_contiguous(x: Array) -> bool:
    """True where the elements lie in C order without gaps."""
    return x.is_contiguous() if isinstance(x, CudaArray) else x.flags.c_contiguous


def device_of(x: Array) -> device:
    """The device that holds the array."""
    return x.storage.device if isinstance(x, CudaArray) else x.device if type(x) is WrappedArray else cpu


def reinterpreted(x: Array, dtype: np.dtype) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and element strides of x's bytes read as another type: the last dimension shrinks or grows with the width of the elements.

    Raises ShapeError where elements of another width do not lie there whole: the last dimension must be contiguous and hold
    a whole number of them, and so must every stride and the address.
    """
    shape, strides = tuple(x.shape), element_strides(x)
    old, new = x.dtype.itemsize, dtype.itemsize
    if old == new:
        return shape, strides
    names = f"view: {dtypes.of(x.dtype).name} of shape {shape} and strides {strides} as {dtypes.of(dtype).name}"
    if not shape:
        raise ShapeError(f"{names}: a 0-d tensor keeps the width of its element; reshape it to (1,) first")
    if strides[-1] != 1 and shape[-1] != 1 and 0 not in shape:
        raise ShapeError(f"{names}: the last dimension must be contiguous; use contiguous()")
    if new < old:
        ratio = old // new
        return (*shape[:-1], shape[-1] * ratio), (*[s * ratio for s in strides[:-1]], 1)
    ratio = new // old
    inner: Any = x
    while type(inner) is WrappedArray:
        inner = inner.value.array
    address = inner.data_ptr() if isinstance(inner, CudaArray) else inner.ctypes.data
    whole = 0 in shape or (all(s % ratio == 0 for s in strides[:-1]) and address % new == 0)
    if shape[-1] % ratio or not whole:
        raise ShapeError(f"{names}: the last size, the strides and the address must be multiples of {ratio} elements; use clone()")
    return (*shape[:-1], shape[-1] // ratio), (*[s // ratio for s in strides[:-1]], 1)


def as_strided(x: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0) -> Array:
    """A view of any shape, strides and offset in elements, counted from x's first element; the caller keeps it in bounds."""
    if isinstance(x, CudaArray):
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
    return x.expand(shape) if isinstance(x, CudaArray) else np.broadcast_to(x, shape)


def empty(shape: tuple[int, ...], dtype: np.dtype, on: device, strides: tuple[int, ...] | None = None) -> Array:
    """An uninitialised array: C-ordered, or of strides (in elements) that fill its memory."""
    if on.type == "cpu":
        if strides is None:
            return np.empty(shape, dtype)
        order = dims_by_stride(strides)
        return np.empty([shape[d] for d in order], dtype).transpose(np.argsort(order))
    if dtypes.of(dtype).triton is None:
        raise _no_kernel_type(dtype, on)
    return CudaArray(allocate(math.prod(shape) * dtype.itemsize, on), shape, dtype, strides)


def empty_elementwise(shape: tuple[int, ...], dtype: np.dtype, on: device, operands: Sequence[Any]) -> Array:
    """An uninitialised result of an elementwise op, laid out as its operands are; numbers among them have no say."""
    layouts = tuple([(x.shape, element_strides(x)) for x in operands if isinstance(x, CudaArray | np.ndarray)])
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


def _no_kernel_type(dtype: np.dtype, on: device) -> DeviceError:
    """The error for a type that kernels do not know yet."""
    return DeviceError(
        f"{dtypes.of(dtype).name} lives on the CPU only, no kernel takes it; keep the tensor there or use .real/.imag, asked for: {on}"
    )


def empty_like(x: Array, dtype: np.dtype | None = None) -> Array:
    """An uninitialised C-ordered array of x's shape on x's device."""
    return empty(x.shape, x.dtype if dtype is None else dtype, device_of(x))


def to_host(x: Array) -> np.ndarray:
    """The values as a numpy array; waits for the device. A numpy array is returned as it is."""
    if not isinstance(x, CudaArray):
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
        x = x.value.array
    return to_host(x)


def from_host(x: np.ndarray, on: device) -> Array:
    """A copy of host values on a device (on the CPU: a C-ordered copy)."""
    if on.type == "cpu":
        # a copy here, too: a tensor must not change with the caller's array
        return np.array(x, order="C")
    out = empty(x.shape, x.dtype, on)
    assert isinstance(out, CudaArray)
    if x.size:
        out.storage.write(np.require(x, requirements="C"), 0)
    return out


def same_memory(a: Array, b: Array) -> bool:
    """True where two arrays can touch a common element (by their spans; never wrongly False)."""
    # inside a transform: what lies below is what is written
    while type(a) is WrappedArray:
        a = a.value.array
    while type(b) is WrappedArray:
        b = b.value.array
    if isinstance(a, CudaArray) or isinstance(b, CudaArray):
        return isinstance(a, CudaArray) and isinstance(b, CudaArray) and a.storage is b.storage
    return bool(np.may_share_memory(a, b))
