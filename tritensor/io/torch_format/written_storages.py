"""Storages to be written for the tensors of an object: tensors that share elements share one, and no other element is in it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.dtypes import DType
from tritensor.ground.strides import contiguous_strides, memory_extent
from tritensor.io.device_mapping import location_tag
from tritensor.ops.array import CudaArray, device_of, element_strides, to_host
from tritensor.ops.lazy_array import compute_now
from tritensor.tensor.copying import storage_vector, view_bytes
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.types.storages import UntypedStorage, make_storage


class Storage:
    """One storage of the file: a span of memory from address `low` on, or, with low None, one tensor's elements without what lies between.

    `key` is its name in the file, once it is asked for.
    """

    def __init__(self, dtype: DType, location: str, numel: int, low: int | None, held: list[Any]) -> None:
        self.dtype, self.location, self.numel = dtype, location, numel
        self.low, self.held = low, held  # arrays that keep the memory alive
        self.key: str | None = None

    @property
    def nbytes(self) -> int:
        return self.numel * self.dtype.itemsize

    def data(self) -> memoryview:
        """The bytes: on the CPU those of the memory itself; a GPU's are brought here."""
        first = self.held[0]
        if not self.numel:
            return memoryview(b"")
        if self.low is None:
            host = to_host(first)
            return memoryview(np.ascontiguousarray(host.transpose(_axes_by_stride(first))).reshape(-1).view(np.uint8).data)
        if isinstance(first, CudaArray):
            span = np.empty(self.nbytes, np.uint8)
            first.storage.read(span, self.low - first.storage.pointer)
            return memoryview(span.data)
        return memoryview(view_bytes(self.held, self.low, self.low + self.nbytes, read_only=True).data)


def _axes_by_stride(x: Any) -> list[int]:
    """The axes from the outermost in memory to the innermost."""
    strides = element_strides(x)
    return sorted(range(len(strides)), key=lambda axis: -abs(strides[axis]))


class Window(NamedTuple):
    """The elements of a storage that are a tensor's."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


class _Span(NamedTuple):
    """The memory from a tensor's first element to its last."""

    array: Any
    low: int  # address of the first byte
    high: int  # behind the last
    strides: tuple[int, ...]


def assign_windows(tensors: Iterable[Tensor]) -> dict[int, Window]:
    """The window of each tensor, by the tensor's id. Raises RuntimeError where two see the same bytes as different types, as PyTorch does."""
    found: dict[int, Window] = {}
    spans: dict[str, list[tuple[int, _Span]]] = {}
    for t in tensors:
        compute_now(t)
        span = _find_span(t)
        if span is None:
            found[id(t)] = _store_alone(t._array)
        else:
            spans.setdefault(str(device_of(t._array)), []).append((id(t), span))
    for members in spans.values():
        members.sort(key=lambda member: (member[1].low, -member[1].high))
        group, high = members[:1], members[0][1].high
        for member in members[1:]:
            if member[1].low >= high:  # a gap: what comes from here on shares nothing with what came before
                _store_shared(group, found)
                group = []
            high = max(high, member[1].high)
            group.append(member)
        _store_shared(group, found)
    return found


def _find_span(t: Tensor) -> _Span | None:
    """The span of a tensor's memory; None for one that cannot share a storage: it has no elements, runs backwards, or not by whole elements."""
    x = t._array
    if not isinstance(x, np.ndarray | CudaArray) or x.size == 0:
        return None
    if isinstance(x, np.ndarray) and any(s % x.itemsize for s in x.strides):  # a field of a record array
        return None
    strides = tuple(s if n != 1 else max(int(s), 0) for n, s in zip(x.shape, element_strides(x), strict=True))
    if any(s < 0 for s in strides):
        return None
    _, last = memory_extent(x.shape, strides)
    low = x.pointer if isinstance(x, CudaArray) else x.ctypes.data
    return _Span(x, int(low), int(low) + (int(last) + 1) * x.itemsize, tuple(int(s) for s in strides))


def _store_alone(x: Any) -> Window:
    """A storage of one tensor's elements, without gaps, in the order in which they lie."""
    x = x if isinstance(x, np.ndarray | CudaArray) else to_host(x)
    shape = tuple(int(n) for n in x.shape)
    strides, step = [0] * len(shape), 1
    for axis in reversed(_axes_by_stride(x)):
        strides[axis] = step
        step *= max(shape[axis], 1)
    storage = Storage(dtypes.of(x.dtype), _location(x), math.prod(shape), None, [x])
    return Window(storage, 0, shape, tuple(strides) if math.prod(shape) else contiguous_strides(shape))


def _location(x: Any) -> str:
    """The file's tag for an array's device."""
    return location_tag(make_storage(UntypedStorage, storage_vector(x, np.dtype(np.uint8))))


def _store_shared(group: list[tuple[int, _Span]], found: dict[int, Window]) -> None:
    """One storage for tensors that share memory."""
    first = group[0][1]
    low, high = first.low, max(span.high for _, span in group)
    kind, width = dtypes.of(first.array.dtype), first.array.itemsize
    for _, span in group:
        if span.array.dtype != first.array.dtype or (span.low - low) % width:
            raise RuntimeError(
                f"save: a tensor of {kind.name} and one of {dtypes.of(span.array.dtype).name} see the same memory: Cannot save multiple tensors "
                "or storages that view the same data as different types; clone() one of them"
            )
    numel = (high - low) // width
    if numel > first.array.size and len({(s.low, s.strides, tuple(s.array.shape)) for _, s in group}) == 1:
        window = _store_alone(first.array)  # a view with gaps: nothing is written of what lies between
        found.update({key: window for key, _ in group})
        return
    storage = Storage(kind, _location(first.array), numel, low, [span.array for _, span in group])
    for key, span in group:
        found[key] = Window(storage, (span.low - low) // width, tuple(int(n) for n in span.array.shape), span.strides)
