"""Many arrays by one launch, through a table of their addresses: the norm of all, and all multiplied by one number in place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order, write
from tritensor.ops.array import CudaArray
from tritensor.ops.replay import Corner, address_of
from tritensor.ops.table import FLOATS, Sample, Spec, Work, op, refuse_kind

ORDERS = (1.0, 2.0, math.inf)  # of the norms that there are kernels for
BLOCK = 1024  # elements that a program holds
CHUNK = 8192  # elements that it walks
ROOMS = (16, 128)  # arrays that a launch of `_note` takes: 2 KB of the 4 KB of arguments
_I64, _F64 = np.dtype(np.int64), np.dtype(np.float64)
_BEYOND = tl.constexpr(1 << 62)


# table[first + k] = (address, elements, chunks before it) of the k-th of `count` arrays
@triton.jit
def _note(table, addresses, sizes, first, before, count, CHUNK: tl.constexpr):
    for k in tl.static_range(len(sizes)):
        if k < count:
            place = table + 3 * (first + k)
            tl.store(place, addresses[k].to(tl.int64))
            tl.store(place + 1, sizes[k])
            tl.store(place + 2, before)
            before += tl.cdiv(sizes[k], CHUNK)


@triton.jit
def _chunk_of(table, rows, STEPS: tl.constexpr, CHUNK: tl.constexpr):
    """The address of the array that this program's chunk is of, where the chunk begins in it, and the array's elements: found by halving."""
    chunk = tl.program_id(0).to(tl.int64)
    row = chunk * 0
    for k in tl.static_range(STEPS):
        middle = row + (1 << (STEPS - 1 - k))
        inside = middle < rows
        before = tl.load(table + 3 * middle + 2, mask=inside, other=_BEYOND)
        row = tl.where(before <= chunk, middle, row)
    place = table + 3 * row
    return tl.load(place), (chunk - tl.load(place + 2)) * CHUNK, tl.load(place + 1)


@triton.jit
def _pointers(address, start, kind: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr):
    place = address.to(tl.pointer_type(kind)) + start + tl.arange(0, BLOCK)
    if ALIGNED:
        place = tl.multiple_of(place, (16,))
    return place


@triton.jit
def _joined(kept, x, ORDER: tl.constexpr):
    """`kept` and the elements x put together: the sum of |x| or of x^2, or the larger of both, NaN before all."""
    if ORDER == 2:
        return kept + x * x
    if ORDER == 1:
        return kept + tl.abs(x)
    return tl.maximum(kept, tl.abs(x), propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _sum(a, b):
    return a + b


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _total(kept, ORDER: tl.constexpr):
    if ORDER == 1 or ORDER == 2:
        return tl.reduce(kept, 0, _sum)
    return tl.reduce(kept, 0, _larger)


# parts[c] = sum |x|^ORDER, or the largest |x|, over chunk c
@triton.jit
def _norm_parts(
    table, rows, like, parts, ORDER: tl.constexpr, ALIGNED: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr
):
    kind = like.dtype.element_ty
    compute = parts.dtype.element_ty
    address, start, n = _chunk_of(table, rows, STEPS, CHUNK)
    kept = tl.zeros((BLOCK,), compute)
    # A mask with a bound that does not divide by 16 makes every access scalar: only an array's last chunk pays for it.
    if start + CHUNK <= n:
        for k in range(0, CHUNK, BLOCK):
            kept = _joined(kept, tl.load(_pointers(address, start + k, kind, ALIGNED, BLOCK)).to(compute), ORDER)
    else:
        for k in range(0, CHUNK, BLOCK):
            inside = start + k + tl.arange(0, BLOCK) < n
            x = tl.load(_pointers(address, start + k, kind, ALIGNED, BLOCK), mask=inside, other=0)
            kept = _joined(kept, x.to(compute), ORDER)
    tl.store(parts + tl.program_id(0), _total(kept, ORDER))


# norm = (sum of the parts)^(1 / ORDER), or the largest of them, by one program
@triton.jit
def _norm(parts, norm, n, ORDER: tl.constexpr, BLOCK: tl.constexpr):
    kept = tl.zeros((BLOCK,), parts.dtype.element_ty)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(parts + i, mask=i < n, other=0)
        kept = _joined(kept, x, 1 if ORDER == 2 else ORDER)
    total = _total(kept, ORDER)
    tl.store(norm, maths.sqrt(total) if ORDER == 2 else total)


# x *= factor for a chunk of an array; found = 1 where an element is infinite or NaN before
@triton.jit
def _scale(table, rows, like, factor, found, ALIGNED: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr):
    kind = like.dtype.element_ty
    compute = tl.float64 if kind == tl.float64 else tl.float32
    by = tl.load(factor).to(compute)
    address, start, n = _chunk_of(table, rows, STEPS, CHUNK)
    kept = tl.zeros((BLOCK,), compute)  # NaN where an element was infinite or NaN
    if start + CHUNK <= n:
        for k in range(0, CHUNK, BLOCK):
            place = _pointers(address, start + k, kind, ALIGNED, BLOCK)
            x = tl.load(place).to(compute)
            kept += x - x
            tl.store(place, (x * by).to(kind))
    else:
        for k in range(0, CHUNK, BLOCK):
            place = _pointers(address, start + k, kind, ALIGNED, BLOCK)
            inside = start + k + tl.arange(0, BLOCK) < n
            x = tl.load(place, mask=inside, other=0).to(compute)
            kept += x - x
            tl.store(place, (x * by).to(kind), mask=inside)
    if found is not None:
        tl.store(found, tl.full((), 1, found.dtype.element_ty), mask=_total(kept, 1) != 0)  # every program that stores, stores the same


class _Table:
    """Addresses, sizes and chunks of dense arrays of one type on one GPU, written there by launches: a CUDA graph can hold them."""

    def __init__(self, arrays: Sequence[CudaArray]) -> None:
        self.rows = len(arrays)
        self.table = allocate((self.rows, 3), _I64, arrays[0])
        self.chunks = 0
        for start in range(0, self.rows, ROOMS[-1]):
            some = arrays[start : start + ROOMS[-1]]
            room = next(n for n in ROOMS if n >= len(some))
            nothing = (np.int64(0),) * (room - len(some))
            addresses, sizes = (*map(address_of, some), *nothing), (*[np.int64(x.size) for x in some], *nothing)
            launch(_note, (1,), self.table, addresses, sizes, np.int64(start), np.int64(self.chunks), np.int32(len(some)), CHUNK=CHUNK)
            self.chunks += sum(-(-x.size // CHUNK) for x in some)
        self.aligned = not any([x.pointer % 16 for x in arrays])

    def walk(self, kernel: Any, *args: Any, **constexprs: Any) -> None:
        """A program of `kernel` for each chunk."""
        steps = max(self.rows - 1, 0).bit_length()
        given = {"ALIGNED": self.aligned, "STEPS": steps, "BLOCK": BLOCK, "CHUNK": CHUNK, **constexprs}
        launch(kernel, (self.chunks,), self.table, np.int64(self.rows), *args, **given)


@cache
def _norm_corner(order: float) -> Corner:
    def norm_of_all(*arrays: CudaArray) -> CudaArray:
        kept = dtypes.accumulator(arrays[0].dtype)
        norm = allocate((), kept, arrays[0])
        table = _Table(arrays)
        parts = allocate((table.chunks,), kept, arrays[0])
        table.walk(_norm_parts, arrays[0], parts, ORDER=order)
        launch(_norm, (1,), parts, norm, np.int64(table.chunks), ORDER=order, BLOCK=BLOCK)
        return norm

    return Corner(norm_of_all, "norm_of_all forward")


def norm_of_all(arrays: Sequence[CudaArray], order: float) -> CudaArray:
    """The norm of all elements of some arrays, dense ones of one real floating type on one GPU, as one vector: a 0-d array.

    `order` is one of ORDERS. float32, also of 16-bit arrays; float64 of float64. The order of the sum is fixed. Two launches, and one for each
    128 arrays that notes their addresses.
    """
    norm: CudaArray = _norm_corner(order)(*arrays)
    return norm


def _scale_arrays(factor: CudaArray, found: CudaArray | None, *arrays: CudaArray) -> None:
    _Table(arrays).walk(_scale, arrays[0], factor, found)


_scale_corner = Corner(_scale_arrays, "scale_all forward")


def scale_all(arrays: Sequence[CudaArray], factor: CudaArray, found: CudaArray | None) -> None:
    """Multiply some arrays, dense ones of one real floating type on one GPU, by a number there, in place.

    `found`, a number there, becomes 1 where an element was infinite or NaN before, and else stays. One launch, and one for each 128 arrays.
    """
    _scale_corner(factor, found, *arrays)


# The two ops of one array, by which the kernels are tested and timed.
_SHAPES = ((3, 5), (), (0,), (1030,), (2 * CHUNK + 77,))


def _norm_reference(x: np.ndarray, *, order: float) -> np.ndarray:
    """The norm of all elements as one vector, of order 1, 2 or inf, in float32 of 16-bit floats."""
    return np.asarray(np.abs(x).max(initial=0) if order == math.inf else (np.abs(x) ** order).sum() ** (1 / order))


def _norm_shape(x: Any, *, order: float) -> Spec:
    refuse_kind("norm_of_all", x.dtype, ("float",))
    if order not in ORDERS:
        raise ValueError(f"norm_of_all: order is {order!r}; it takes 1, 2 and inf")
    return Spec((), dtypes.accumulator(x.dtype))


def _norm_forward(x: CudaArray, *, order: float) -> CudaArray:
    x = to_c_order(x)
    return norm_of_all([x], float(order))


def _norm_samples(rng: np.random.Generator) -> list[Sample]:
    found = [Sample(rng.standard_normal(s), order=p) for s, p in zip(_SHAPES, (*ORDERS, 2.0, 1.0), strict=True)]
    return [*found, Sample(np.array([1.0, np.nan, 3.0]), order=math.inf)]


op(
    "norm_of_all", _norm_reference, shape=_norm_shape, forward=_norm_forward, samples=_norm_samples, differentiable=False, dtypes=FLOATS,
    sizes=lambda rng: [Sample(rng.standard_normal((4096, 4096)), order=2.0)],
    work=lambda x, *, order: Work(2 * x.size, x.size * x.dtype.itemsize),
)  # fmt: skip


def _scale_reference(x: np.ndarray, found: np.ndarray, factor: np.ndarray) -> None:
    """x times a number, in place; `found` becomes 1 where an element was infinite or NaN before, and else stays."""
    if not np.isfinite(x).all():
        found[...] = 1
    with np.errstate(all="ignore"):
        x *= factor.reshape(())


def _scale_shape(x: Any, found: Any, factor: Any) -> Spec:
    for label, given in (("x", x), ("found", found), ("factor", factor)):
        refuse_kind("scale_all", given.dtype, ("float",), label)
    for label, given in (("found", found), ("factor", factor)):
        if math.prod(given.shape) != 1:
            raise ShapeError(f"scale_all: {label} has shape {tuple(given.shape)}; it is one number")
    return Spec(tuple(x.shape), x.dtype)


def _scale_forward(x: CudaArray, found: CudaArray, factor: CudaArray) -> None:
    held = to_c_order(x)
    scale_all([held], factor, found)
    if held is not x:
        write(x, held)


def _scale_samples(rng: np.random.Generator) -> list[Sample]:
    half, strange = np.array(0.5), np.array([1.0, np.inf, 3.0])
    return [*[Sample(rng.standard_normal(s), np.zeros(()), half) for s in _SHAPES], Sample(strange, np.zeros(()), half)]


op(
    "scale_all", _scale_reference, shape=_scale_shape, forward=_scale_forward, samples=_scale_samples, differentiable=False, dtypes=FLOATS,
    mutates=("x", "found"), sizes=lambda rng: [Sample(rng.standard_normal((4096, 4096)), np.zeros(()), np.array(0.5))],
    work=lambda x, found, factor: Work(x.size, 2 * x.size * x.dtype.itemsize),
)  # fmt: skip
