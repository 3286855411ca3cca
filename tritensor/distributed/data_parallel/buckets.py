"""Buckets: gradients of parameters that become ready together lie in one piece of memory, which one call averages."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

import numpy as np

from tritensor.autograd.node import version_of
from tritensor.distributed.backends.one_process import copy_into
from tritensor.distributed.work import Work
from tritensor.ground.process.future import Future
from tritensor.ground.strides import is_dense
from tritensor.ops.array import Array, CudaArray, device_of, element_strides, empty, is_contiguous
from tritensor.ops.strided_array import MetaArray
from tritensor.ops.table import registry
from tritensor.tensor.core import Tensor

ALIGNED = 128  # bytes: each gradient begins at a multiple, so that kernels and vectors read it at full width


class Bucket:
    """Some parameters of one type and device, and the memory of their gradients."""

    def __init__(self, index: int, numbers: Sequence[int], params: Sequence[Tensor]) -> None:
        self.index, self.numbers, self.params = index, tuple(numbers), tuple(params)
        step = ALIGNED // params[0]._array.itemsize
        self.starts, end = [], 0
        for p in params:
            self.starts.append(end)
            end += -(-p.numel() // step) * step
        self.size = end
        self._flat: Array | None = None
        self.left: set[int] = set()  # parameters whose gradient has not come in this pass
        self.work: Work | None = None
        self.future: Future | None = None

    def begin(self) -> None:
        """A new pass: all gradients are to come. Memory that somebody still looks at (gradients that were kept) is left to them."""
        self.left, self.work, self.future = set(range(len(self.params))), None, None
        # Writing into memory that the program still holds would change gradients that it kept from the last step.
        if self._flat is None or not self._is_unshared():
            first = self.params[0]._array
            self._flat = empty((self.size,), first.dtype, device_of(first))
            self._fill_gaps()

    def _is_unshared(self) -> bool:
        """Whether nobody but this bucket holds the memory, or all who do are the parameters' own gradients, to which this pass adds."""
        held = sum(p._grad is not None and self.holds(i, p._grad._array) for i, p in enumerate(self.params))
        owner = self._flat.storage if isinstance(self._flat, CudaArray) else self._flat
        return sys.getrefcount(owner) <= 3 + held  # this attribute (or its storage), this name, and the question itself

    def _fill_gaps(self) -> None:
        """Zeros between the gradients, which are averaged with them."""
        assert self._flat is not None
        for start, end, p in zip(self.starts, [*self.starts[1:], self.size], self.params, strict=True):
            if start + p.numel() < end:
                fill_zeros(self._flat[start + p.numel() : end])

    @property
    def flat(self) -> Array:
        """The memory of all gradients."""
        assert self._flat is not None
        return self._flat

    def view(self, i: int) -> Array:
        """Parameter i's gradient in it, laid out as the parameter is."""
        array = self.params[i]._array
        start = self.starts[i]
        part = self.flat[start : start + array.size]
        # PyTorch's contract: a gradient has the strides of its parameter, where those are dense.
        if is_contiguous(array) or not is_dense(array.shape, element_strides(array)):
            return part.reshape(array.shape)
        strides = element_strides(array)
        # numpy's as_strided counts bytes, ours elements.
        if isinstance(part, CudaArray):
            return part.as_strided(array.shape, strides, 0)
        return np.lib.stride_tricks.as_strided(part, array.shape, tuple(s * array.itemsize for s in strides))

    def holds(self, i: int, gradient: Array) -> bool:
        """Whether a gradient is parameter i's place in the memory."""
        # Empty arrays have no address of their own to compare.
        if self._flat is None or type(gradient) is not type(self._flat) or not gradient.size:
            return False
        return (
            get_address(gradient) == get_address(self._flat) + self.starts[i] * gradient.itemsize
            and gradient.shape == self.params[i]._array.shape
        )


def get_address(array: Array) -> int:
    """Of the first element."""
    return array.pointer if isinstance(array, CudaArray) else array.__array_interface__["data"][0]


def fill_zeros(out: Array) -> None:
    """out = 0."""
    if type(out) is MetaArray:
        return
    if isinstance(out, CudaArray):
        copy_into(out, registry["full"].forward(shape=out.shape, value=0, dtype=out.dtype, device=out.device))  # type: ignore[misc]
    else:
        out[...] = 0


def divide_into(array: Array, size: int, out: Array) -> None:
    """out = array / size."""
    if isinstance(out, CudaArray):
        # One factor for all elements: on a GPU a product is cheaper than a division.
        registry["mul"].forward(array, 1.0 / size, out=out)  # type: ignore[misc]
    else:
        np.divide(array, size, out=out, casting="unsafe")


def add_into(held: Tensor, array: Array) -> None:
    """held += array, as backward accumulates."""
    if isinstance(held._array, CudaArray):
        registry["add"].forward(held._array, array, out=held._array)  # type: ignore[misc]
    else:
        np.add(held._array, array, out=held._array)
    version_of(held).bump("backward")


def fill_groups(tensors: Sequence[Tensor], order: Iterable[int], caps: Sequence[float], owners: Sequence[int] = ()) -> list[list[int]]:
    """Numbers of tensors of one type, device and owner in groups, which are closed at `caps[i]` bytes for the i-th, the last for all the rest.

    Groups stand in the order in which they become full, those that never do behind them.
    """
    open_: dict[object, list[int]] = {}
    full: list[list[int]] = []
    for number in order:
        array = tensors[number]._array
        kind = (owners[number] if owners else None, array.dtype, device_of(array))
        members = open_.setdefault(kind, [])
        members.append(number)
        # Small groups begin early, large ones waste less time on each message.
        if sum(tensors[n]._array.nbytes for n in members) >= caps[min(len(full), len(caps) - 1)]:
            full.append(open_.pop(kind))
    full.extend(open_.values())
    return full


class GradBucket:
    """The argument of a communication hook: the flat gradients of some parameters, not yet averaged."""

    def __init__(self, bucket: Bucket, count: int) -> None:
        self._bucket, self._count, self._buffer = bucket, count, Tensor.wrap(bucket.flat)

    def index(self) -> int:
        """The bucket's number, in the order of communication."""
        return self._bucket.index

    def buffer(self) -> Tensor:
        """The gradients, one after the other."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Another tensor of that size in their place."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """Views of the gradients, of the parameters' shapes."""
        return [Tensor.wrap(self._bucket.view(i)) for i in range(len(self._bucket.params))]

    def parameters(self) -> list[Tensor]:
        """The parameters whose gradients these are."""
        return list(self._bucket.params)

    def is_last(self) -> bool:
        """Whether it is the last one of a pass."""
        return self._bucket.index == self._count - 1


def assign_buckets(params: Sequence[Tensor], order: Sequence[int], caps: Sequence[float]) -> list[Bucket]:
    """Buckets of the parameters in the order in which their gradients come: the first of `caps` bytes, and so on, the last for all the rest.

    A parameter is in the bucket of its type and device, so those of another begin one of their own. Buckets stand in the order in which
    they become full.
    """
    found = fill_groups(params, order, caps)
    return [Bucket(i, members, [params[n] for n in members]) for i, members in enumerate(found)]
