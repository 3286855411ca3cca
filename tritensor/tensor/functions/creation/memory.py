"""Tensors on memory as it is: of any strides, in a memory order of dimensions, on somebody's buffer."""

from __future__ import annotations

import os
from operator import index as as_index
from typing import Any

import numpy as np

from tritensor.cuda.memory import pinned
from tritensor.ground import dtypes
from tritensor.ground.device import as_device
from tritensor.ground.errors import ArgumentError, MissingFileError, ShapeError
from tritensor.ground.strides import contiguous_strides, memory_extent
from tritensor.ops import array
from tritensor.ops.lazy_array import note_shared
from tritensor.ops.strided_array import StridedArray
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.creation.constructors import numpy_type
from tritensor.tensor.functions.shaping.reshaping import parse_sizes
from tritensor.tensor.public_api.publish import function


def _make_strided(name: str, size: Any, stride: Any, kind: np.dtype, on: Any, pin: bool = False) -> Tensor:
    """Uninitialised memory as large as the strides reach, seen through them."""
    shape, steps = parse_sizes(name, (size,)), parse_sizes(name, (stride,))
    if len(shape) != len(steps):
        raise ShapeError(f"{name}: size {shape} and stride {steps} differ in length; give a stride for each dimension")
    if min(shape, default=0) < 0 or min(steps, default=0) < 0:
        raise ShapeError(f"{name}: size {shape} and stride {steps} must be 0 or more")
    count = 0 if 0 in shape else int(memory_extent(shape, steps)[1]) + 1
    memory: Any = pinned.empty((count,), kind) if pin and on.type == "cpu" else array.empty((count,), kind, on)
    # numpy's constructor takes bytes, a StridedArray elements.
    if isinstance(memory, StridedArray):
        return new_tensor(memory.as_strided(shape, steps, 0))
    return new_tensor(np.ndarray(shape, kind, memory, 0, tuple([s * kind.itemsize for s in steps])))


@function(method=False, maker=True)
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, device: Any = None, pin_memory: bool = False) -> Tensor:
    """Uninitialised memory of a shape and strides, in elements.

    Raises ShapeError for strides of another number, or negative ones.
    """
    return _make_strided("empty_strided", size, stride, numpy_type(dtype), as_device(device), pin_memory)


@function(method=False, maker=True)
def empty_permuted(size: Any, physical_layout: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Uninitialised memory of a shape without gaps, its dimensions from the outermost in memory to the innermost as listed.

    Raises ShapeError where the layout does not name each dimension once.
    """
    shape, order = parse_sizes("empty_permuted", (size,)), parse_sizes("empty_permuted", (physical_layout,))
    if sorted(order) != list(range(len(shape))):
        raise ShapeError(f"empty_permuted: physical_layout {order} must name each of the {len(shape)} dimensions of {shape} once")
    inner = contiguous_strides(tuple([shape[d] for d in order]))
    steps = [0] * len(shape)
    for d, step in zip(order, inner, strict=True):
        steps[d] = step
    return _make_strided("empty_permuted", shape, steps, numpy_type(dtype), as_device(device))


@function(free=False, maker=True)
def new_empty_strided(x: Tensor, size: Any, stride: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """empty_strided of this tensor's dtype and device."""
    kind = x._array.dtype if dtype is None else numpy_type(dtype)
    return _make_strided("new_empty_strided", size, stride, kind, x.device if device is None else as_device(device))


@function(method=False)
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A vector on the memory of anything with Python's buffer protocol; writes are seen on both sides.

    Args:
        count: elements; negative for all that follow.
        offset: bytes to leave out at the start.

    A buffer that cannot be written makes a tensor that cannot. Raises ValueError where the bytes do not hold `count` elements, or no whole number.
    """
    kind = dtypes.as_dtype(dtype)
    memory = memoryview(buffer)
    size = memory.nbytes
    # PyTorch refuses both; numpy would give an empty array of no memory.
    if size == 0 or count == 0:
        raise ArgumentError(f"frombuffer: the buffer has {size} bytes, count is {count}; neither may be 0")
    if not 0 <= offset < size:
        raise ArgumentError(f"frombuffer: offset {offset} does not lie in the buffer of {size} bytes")
    left = size - offset
    if count < 0 and left % kind.itemsize:
        raise ArgumentError(f"frombuffer: {left} bytes are no whole number of {kind.name}, of {kind.itemsize} bytes; give a count")
    n = left // kind.itemsize if count < 0 else int(count)
    if n * kind.itemsize > left:
        raise ArgumentError(f"frombuffer: {n} elements of {kind.name} need {n * kind.itemsize} bytes, {left} are there")
    found = np.frombuffer(memory, kind.numpy, n, offset)
    note_shared(found)
    made = new_tensor(found)
    return made.requires_grad_() if requires_grad else made


@function(method=False, maker=True)
def from_file(filename: Any, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A vector of `size` elements on a file mapped into memory. shared=True: writes reach the file, which is made or grows where it is too small;
    otherwise they stay with the tensor.

    Raises FileNotFoundError, and ValueError for a negative size, a device that is not the CPU, and a file with too few bytes.
    """
    count, kind, path = as_index(size or 0), numpy_type(dtype), os.fspath(filename)
    if as_device(device).type != "cpu":
        raise ArgumentError(f"from_file: device is {device}; a file is mapped into the CPU's memory, move the tensor with .to({device!r})")
    if count < 0:
        raise ArgumentError(f"from_file: size is {count}; give the number of elements, 0 or more")
    if not shared and not os.path.exists(path):
        raise MissingFileError(f"from_file: no file {path!r}; give one that exists, or shared=True, which makes it")
    if count == 0:
        # mmap cannot map nothing.
        return new_tensor(np.empty((0,), kind))
    have = os.path.getsize(path) if os.path.exists(path) else 0
    need = count * kind.itemsize
    if have < need:
        if not shared:
            raise ArgumentError(
                f"from_file: {count} elements of {dtypes.of(kind).name} need {need} bytes, {path!r} has {have}; give a smaller size"
            )
        # Append mode makes the file where it is missing and leaves what is in it.
        with open(path, "ab") as file:
            file.truncate(need)
    mapped = np.memmap(path, np.uint8, "r+" if shared else "c", shape=(need,)).view(np.ndarray).view(kind)
    if shared:
        note_shared(mapped)
    return new_tensor(mapped)
