"""Strided arrays: windows on memory that numpy does not hold, in numpy's view vocabulary; and MetaArray, such a window on no memory at all."""

from __future__ import annotations

import math
from typing import Any, NoReturn, Self

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.device import device, meta
from tritensor.ground.errors import MetaError, ShapeError
from tritensor.ground.strides import contiguous_strides


class StridedArray:
    """A strided window on a storage: the address of its first element, strides in ELEMENTS, a shape and a numpy dtype.

    The view methods (`transpose`, `reshape`, `[...]`, `expand`, `as_strided`) move no data and share the storage.
    """

    __slots__ = ("__weakref__", "dtype", "known_layout", "pointer", "shape", "storage", "strides")

    def __init__(
        self, storage: Any, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None = None, offset: int = 0
    ) -> None:
        self.storage = storage
        self.shape = shape
        self.dtype = dtype
        self.strides = contiguous_strides(shape) if strides is None else strides
        self.pointer = storage.pointer + offset * dtype.itemsize
        self.known_layout: Any = None  # the interned Layout that kernel launches are looked up by, once it is asked for

    def data_ptr(self) -> int:
        """Address of the first element."""
        return self.pointer  # type: ignore[no-any-return]

    @property
    def offset(self) -> int:
        """Elements between the storage's first byte and the first element."""
        return (self.pointer - self.storage.pointer) // self.dtype.itemsize  # type: ignore[no-any-return]

    @property
    def device(self) -> device:
        return self.storage.device  # type: ignore[no-any-return]

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
    def as_strided(self, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Self:
        """A window with its own shape, strides and offset (both in elements, offset from this array's first element)."""
        return self.__class__(self.storage, shape, self.dtype, strides, self.offset + offset)

    def transpose(self, axes: tuple[int, ...]) -> Self:
        return self.as_strided(tuple(self.shape[a] for a in axes), tuple(self.strides[a] for a in axes), 0)

    def expand(self, shape: tuple[int, ...]) -> Self:
        """Broadcast to `shape` by strides of 0."""
        lead = len(shape) - len(self.shape)
        strides = [0] * lead + [0 if s == 1 and t != 1 else k for s, t, k in zip(self.shape, shape[lead:], self.strides, strict=True)]
        return self.as_strided(shape, tuple(strides), 0)

    def reshape(self, shape: tuple[int, ...]) -> Self:
        """A view of another shape; raises ShapeError when the strides do not allow one."""
        strides = reshape_strides(self.shape, self.strides, shape)
        if strides is None:
            raise ShapeError(
                f"view: shape {self.shape} with strides {self.strides} has no view of shape {shape}; use reshape, which copies"
            )
        return self.as_strided(shape, strides, 0)

    def view(self, dtype: np.dtype) -> Self:
        """The same bytes as another element type; see `reinterpreted_layout`."""
        shape, strides = reinterpreted_layout(self.shape, self.strides, self.pointer, self.dtype, np.dtype(dtype))
        out = self.__class__(self.storage, shape, np.dtype(dtype), strides)
        out.pointer = self.pointer
        return out

    def __getitem__(self, index: Any) -> Self:
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
        name = type(self).__name__
        return f"{name}(shape={self.shape}, dtype={dtypes.of(self.dtype).name}, strides={self.strides}, device={self.device})"


class MetaStorage:
    """What tensors on device meta share where others share memory: a number of bytes that nobody holds."""

    __slots__ = ("__weakref__", "nbytes")
    device = meta
    pointer = 0

    def __init__(self, nbytes: int) -> None:
        self.nbytes = nbytes


class MetaArray(StridedArray):
    """An array without memory, on device meta: shape, strides and type as on other devices. Whoever asks for its values, numpy too, gets a MetaError."""

    __slots__ = ()

    @property
    def real(self) -> MetaArray:
        """The real parts, as numpy's arrays have them: a view."""
        return self._part(0)

    @property
    def imag(self) -> MetaArray:
        """The imaginary parts of complex numbers: a view."""
        return self._part(1)

    def _part(self, which: int) -> MetaArray:
        if self.dtype.kind != "c":
            return self
        half = np.dtype(f"f{self.dtype.itemsize // 2}")
        return MetaArray(self.storage, self.shape, half, tuple([2 * s for s in self.strides]), 2 * self.offset + which)

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        raise no_values()

    def __array_ufunc__(self, ufunc: Any, *_: Any, **__: Any) -> NoReturn:
        raise no_values(ufunc.__name__)

    def __array_function__(self, function: Any, *_: Any, **__: Any) -> NoReturn:
        raise no_values(function.__name__)


def no_values(name: str = "tensor", what: str = "the values are asked for") -> MetaError:
    """The error for values that a tensor without memory does not have; `name` is the op or function that asks."""
    return MetaError(
        f"{name}: {what}, and a tensor on device meta has none; "
        "make it where there is memory, module.to_empty(device='cpu') or empty_like(x, device='cpu'), and fill it"
    )


def empty_meta(shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...] | None = None) -> MetaArray:
    """An array without memory: C-ordered, or of strides (in elements) that would fill its memory."""
    return MetaArray(MetaStorage(math.prod(shape) * dtype.itemsize), shape, dtype, strides)


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


def reinterpreted_layout(
    shape: tuple[int, ...], strides: tuple[int, ...], address: int, have: np.dtype, dtype: np.dtype
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and element strides of an array's bytes read as another type: the last dimension shrinks or grows with the width of the elements.

    Raises ShapeError where elements of another width do not lie there whole: the last dimension must be contiguous and hold
    a whole number of them, and so must every stride and the address.
    """
    old, new = have.itemsize, dtype.itemsize
    if old == new:
        return shape, strides
    names = f"view: {dtypes.of(have).name} of shape {shape} and strides {strides} as {dtypes.of(dtype).name}"
    if not shape:
        raise ShapeError(f"{names}: a 0-d tensor keeps the width of its element; reshape it to (1,) first")
    if strides[-1] != 1 and shape[-1] != 1 and 0 not in shape:
        raise ShapeError(f"{names}: the last dimension must be contiguous; use contiguous()")
    if new < old:
        ratio = old // new
        return (*shape[:-1], shape[-1] * ratio), (*[s * ratio for s in strides[:-1]], 1)
    ratio = new // old
    whole = 0 in shape or (all(s % ratio == 0 for s in strides[:-1]) and address % new == 0)
    if shape[-1] % ratio or not whole:
        raise ShapeError(f"{names}: the last size, the strides and the address must be multiples of {ratio} elements; use clone()")
    return (*shape[:-1], shape[-1] // ratio), (*[s // ratio for s in strides[:-1]], 1)
