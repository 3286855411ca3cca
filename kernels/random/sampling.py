"""Random ops: rand, randn, randint, randperm. The same (seed, offset) gives the same numbers, bit for bit, on every device.

What a number is made of (see philox.py for the words and how many blocks an op uses):

- rand: float32 from the upper 24 bits of a 32-bit word, float16 and bfloat16 those rounded down (so never 1, and below any number of their
  own with just that probability); float64 from 53 bits of a 64-bit word.
- randn: pairs of float32 normals from pairs of 32-bit words (float16 and bfloat16 are those rounded), pairs of float64
  normals from pairs of 64-bit words; an odd last number leaves its partner unused.
- randint: low + (w * (high - low) >> W) of a W-bit word w, which is 32 bits wide for up to 2^28 values and 64 for more: no value is
  favoured by more than (high - low) / 2^W.
- randperm: positions in the order of 64-bit words, equal words in the order of their positions.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.ground.device import device as Device
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import assigned
from tritensor.kernels.parts.filling import refuse_negative_size
from tritensor.kernels.parts.indices.radix_sort import sort_keys
from tritensor.kernels.parts.random_words import draws, philox_llvm
from tritensor.kernels.parts.random_words.normal import numpy_polar, polar
from tritensor.kernels.parts.random_words.philox import AHEAD, CHUNK, ahead, draw_origin, in_order, kernel_seed, numpy_words, philox
from tritensor.kernels.random.plain_numbers import normals, uniforms, words
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, op
from tritensor.random import blocks_used, integer_bits

BLOCK = 256  # Philox blocks per program
INT64 = np.dtype(np.int64)


def word_bits(dtype: np.dtype) -> int:
    """Size of the words that a floating number of this type is drawn from."""
    return 64 if dtype == np.float64 else 32


def drawn_blocks(name: str, n: int, dtype: np.dtype, span: int = 1) -> int:
    """Blocks that op `name` uses for n numbers (randint: of `span` values): by how many the generator's offset moves."""
    if name in ("randint", "randperm"):
        return blocks_used(n, 64 if name == "randperm" else integer_bits(span))
    return blocks_used(n, word_bits(dtype))  # the second word of an odd number's last pair lies in the same block


@triton.jit
def _long(low, high):
    return (high.to(tl.uint64) << 32) | low.to(tl.uint64)


@triton.jit
def _blocks(k0, k1, offset, state, BLOCK: tl.constexpr):
    """This program's words."""
    k0, k1, offset = draw_origin(k0, k1, offset, state)
    block = (tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)).to(tl.uint64) + offset
    return philox(block, k0, k1)


# y[i] = (w_i >> (W - B)) * 2^-B, W the size of a word, B 24 or 53; of 16 bits what KEPT, a mask, keeps of it
@triton.jit
def _rand_kernel(y, n, k0, k1, offset, state, KEPT: tl.constexpr, DOUBLE: tl.constexpr, BLOCK: tl.constexpr):
    w0, w1, w2, w3 = _blocks(k0, k1, offset, state, BLOCK)
    if DOUBLE:
        w = tl.interleave(_long(w0, w1), _long(w2, w3))  # (2 BLOCK,)
        value = (w >> 11).to(tl.float64) * 1.1102230246251565e-16
        i = tl.program_id(0).to(tl.int64) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    else:
        w = in_order(w0, w1, w2, w3)  # (4 BLOCK,)
        value = (w >> 8).to(tl.float32) * 5.9604644775390625e-08
        value = (value.to(tl.int32, bitcast=True) & KEPT).to(tl.float32, bitcast=True)
        i = tl.program_id(0).to(tl.int64) * (4 * BLOCK) + tl.arange(0, 4 * BLOCK)
    tl.store(y + i, value.to(y.dtype.element_ty), mask=i < n)


# y[2i], y[2i + 1] = Box-Muller of words 2i and 2i + 1
@triton.jit
def _randn_kernel(y, n, k0, k1, offset, state, DOUBLE: tl.constexpr, BLOCK: tl.constexpr):
    w0, w1, w2, w3 = _blocks(k0, k1, offset, state, BLOCK)
    if DOUBLE:
        a, b = polar(_long(w0, w1), _long(w2, w3))
        z = tl.interleave(a, b)  # (2 BLOCK,)
        i = tl.program_id(0).to(tl.int64) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    else:
        a, b = polar(w0, w1)
        c, d = polar(w2, w3)
        z = in_order(a, b, c, d)  # (4 BLOCK,)
        i = tl.program_id(0).to(tl.int64) * (4 * BLOCK) + tl.arange(0, 4 * BLOCK)
    tl.store(y + i, z.to(y.dtype.element_ty), mask=i < n)


# y[i] = low + hi(w_i * span); span 0 stands for 2^64
@triton.jit
def _randint_kernel(y, n, k0, k1, offset, state, low, span, FULL: tl.constexpr, BITS: tl.constexpr, BLOCK: tl.constexpr):
    w0, w1, w2, w3 = _blocks(k0, k1, offset, state, BLOCK)
    if BITS == 32:
        w = in_order(w0, w1, w2, w3)  # (4 BLOCK,)
        w = tl.umulhi(w, tl.zeros_like(w) + span.to(tl.uint32))
        i = tl.program_id(0).to(tl.int64) * (4 * BLOCK) + tl.arange(0, 4 * BLOCK)
    else:
        w = tl.interleave(_long(w0, w1), _long(w2, w3))  # (2 BLOCK,)
        if not FULL:
            w = tl.umulhi(w, tl.zeros_like(w) + span)
        i = tl.program_id(0).to(tl.int64) * (2 * BLOCK) + tl.arange(0, 2 * BLOCK)
    tl.store(y + i, (low + w.to(tl.int64)).to(y.dtype.element_ty), mask=i < n)


# --- numpy
def _chunked(
    n: int, bits: int, seed: int, offset: int, out: np.ndarray, make: Callable[[np.ndarray, np.ndarray], None], kind: str = ""
) -> np.ndarray:
    """Fill `out` (flat) by machine code of that kind, where there is one, and what is left by make(words, part of out), a cache-sized piece at a time."""
    per_block = 128 // bits
    step = CHUNK * per_block
    for first in range(philox_llvm.fill(kind, out, seed, offset) if kind else 0, n, step):
        part = out[first : first + step]
        words = numpy_words(seed, offset + first // per_block, 4 * blocks_used(part.size, bits))
        make(words if bits == 32 else words.view(np.uint64), part)
    return out


# the bits of a float32 number that a type keeps of it
_KEPT = {"float16": -(1 << 13), "bfloat16": -(1 << 16), "float32": -1, "float64": -1}


# by the letter of a type: the bits of a word that are dropped, the type of the others, the value of the last of them
_UNIFORM = {"f": (np.uint32(8), np.dtype(np.int32), np.float32(2.0**-24)), "d": (np.uint64(11), np.dtype(np.int64), np.float64(2.0**-53))}


def _uniforms_into(words: np.ndarray, out: np.ndarray) -> None:
    dropped, signed, unit = _UNIFORM[out.dtype.char]
    upper = words[: out.size] >> dropped
    np.copyto(out, upper.view(signed), casting="unsafe")  # processors convert signed numbers faster than unsigned ones
    out *= unit


def _uniforms(words: np.ndarray) -> np.ndarray:
    u = np.empty(words.size, np.float64 if words.itemsize == 8 else np.float32)
    _uniforms_into(words, u)
    return u


def _rand(*, shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype, device: Device) -> np.ndarray:
    n = math.prod(shape)
    if dtype.char in "fd" and blocks_used(n, word_bits(dtype)) <= AHEAD:
        return _few_uniforms[dtype.char].draw(n, shape, seed, offset)
    if dtype == np.float64:
        return _chunked(n, 64, seed, offset, np.empty(n, dtype), _uniforms_into).reshape(shape)
    drawn = _chunked(n, 32, seed, offset, np.empty(n, np.float32), _uniforms_into, "uniforms")
    if dtype == np.float32:
        return drawn.reshape(shape)
    bits = drawn.view(np.int32)
    bits &= np.int32(_KEPT[dtypes.of(dtype).name])
    return drawn.astype(dtype).reshape(shape)


def _normals(words: np.ndarray) -> np.ndarray:
    z = np.empty(words.size, np.float64 if words.itemsize == 8 else np.float32)
    z[::2], z[1::2] = numpy_polar(words[::2], words[1::2])
    return z


def _normals_into(words: np.ndarray, out: np.ndarray) -> None:
    if out.size != words.size or out.dtype.itemsize != words.itemsize:
        out[...] = _normals(words)[: out.size]
    else:
        out[::2], out[1::2] = numpy_polar(words[::2], words[1::2])


class _Few:
    """Draws of a few numbers, float32 or float64: out of those that `make` makes of a whole chunk of words, kept from call to call."""

    def __init__(self, make: Callable[[np.ndarray], np.ndarray], dtype: np.dtype) -> None:
        self.make, self.bits = make, 8 * dtype.itemsize
        self.kept: tuple[int, int, int, np.ndarray] = (-1, 0, 0, np.empty(0, dtype))  # seed, first block, numbers, which are read only

    def draw(self, n: int, shape: tuple[int, ...], seed: int, offset: int) -> np.ndarray:
        """n numbers in a shape."""
        key, first, end, numbers = self.kept
        at = (offset - first) * 128 // self.bits
        if key != seed or at < 0 or at + n > end:
            words, start = ahead(seed, offset, blocks_used(n, self.bits))
            numbers, at = self.make(words.reshape(-1).view(np.uint64 if self.bits == 64 else np.uint32)), start * 128 // self.bits
            self.kept = seed, offset - start, len(numbers), numbers
        return numbers[at : at + n].reshape(shape).copy()


_few_uniforms, _few_normals = (
    {t.char: _Few(make, t) for t in (np.dtype(np.float32), np.dtype(np.float64))} for make in (_uniforms, _normals)
)


def _planned_few(few: Mapping[Any, _Few]) -> Callable[..., Any]:
    """What plans draw a few numbers with."""

    def planned(*, shape: tuple[int, ...], dtype: np.dtype, device: Device) -> Callable[..., np.ndarray] | None:
        n = math.prod(shape)
        if dtype.char not in few or blocks_used(n, word_bits(dtype)) > AHEAD:
            return None
        return functools.partial(few[dtype.char].draw, n, shape)

    return planned


def _randn(*, shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype, device: Device) -> np.ndarray:
    n = math.prod(shape)
    if blocks_used(n, word_bits(dtype)) <= AHEAD:
        return _few_normals["d" if dtype == np.float64 else "f"].draw(n, shape, seed, offset).astype(dtype, copy=False)
    kind = "normals" if dtype == np.float32 else ""
    return _chunked(n, word_bits(dtype), seed, offset, np.empty(n, dtype), _normals_into, kind).reshape(shape)


_rand.planned, _randn.planned = _planned_few(_few_uniforms), _planned_few(_few_normals)  # type: ignore[attr-defined]


def _high(w: np.ndarray, span: int) -> np.ndarray:
    """w * span >> 64 for uint64 words."""
    half, low = np.uint64(32), np.uint64(0xFFFFFFFF)
    if span <= 1 << 32:
        s = np.uint64(span)
        return ((w >> half) * s + ((w & low) * s >> half)) >> half
    s1, s0 = np.uint64(span >> 32), np.uint64(span & 0xFFFFFFFF)
    w1, w0 = w >> half, w & low
    middle = w1 * s0 + (w0 * s0 >> half)
    other = (middle & low) + w0 * s1
    return w1 * s1 + (middle >> half) + (other >> half)


def _randint(*, low: int, high: int, shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype, device: Device) -> np.ndarray:
    span = high - low
    bits, start = integer_bits(span), np.int64(low if low < 1 << 63 else low - (1 << 64))

    def make(words: np.ndarray, out: np.ndarray) -> None:
        drawn = words[: out.size]
        if bits == 32:
            drawn = np.multiply(drawn, np.uint64(span), out=out.view(np.uint64) if out.dtype == np.int64 else None)
            drawn >>= np.uint64(32)
        elif span != 1 << 64:
            drawn = _high(drawn, span)
        signed = drawn.view(np.int64)
        if out.dtype == np.int64:
            np.add(signed, start, out=out)
        else:
            out[...] = (signed + start).astype(dtype)

    return _chunked(math.prod(shape), bits, seed, offset, np.empty(math.prod(shape), dtype), make).reshape(shape)


def _randperm(*, n: int, seed: int, offset: int, dtype: np.dtype, device: Device) -> np.ndarray:
    words = numpy_words(seed, offset, 4 * blocks_used(n, 64)).view(np.uint64)[:n]
    # numpy sorts numbers four times as fast as positions: these go in the lower bits
    low = np.uint64((1 << max(n - 1, 0).bit_length()) - 1)
    keys = words & ~low
    keys |= np.arange(n, dtype=np.uint64)
    keys.sort()
    order = (keys & low).view(np.int64)
    equal = np.flatnonzero((keys[1:] ^ keys[:-1]) <= low)  # neighbours whose upper bits do not tell which is less
    if equal.size:
        at = np.union1d(equal, equal + 1)
        some = order[at]
        order[at] = some[np.lexsort((some, words[some]))]
    return order.astype(dtype, copy=False)


# --- device
def _rand_forward(*, shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype, device: Device) -> CudaArray:
    if (drawn := draws.noted(draws.UNIFORMS[dtypes.of(dtype).name], shape, dtype, device, seed, offset)) is not None:
        return drawn
    y = allocate(shape, dtype, device)
    blocks = blocks_used(y.size, word_bits(dtype))
    kept, double = _KEPT[dtypes.of(dtype).name], dtype == np.float64
    launch(_rand_kernel, (triton.cdiv(blocks, BLOCK),), y, y.size, *kernel_seed(seed, offset), KEPT=kept, DOUBLE=double, BLOCK=BLOCK)
    return y


def _randn_forward(*, shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype, device: Device) -> CudaArray:
    if (drawn := draws.noted(draws.NORMALS[dtypes.of(dtype).name], shape, dtype, device, seed, offset)) is not None:
        return drawn
    y = allocate(shape, dtype, device)
    blocks = blocks_used(y.size, word_bits(dtype))
    launch(_randn_kernel, (triton.cdiv(blocks, BLOCK),), y, y.size, *kernel_seed(seed, offset), DOUBLE=dtype == np.float64, BLOCK=BLOCK)
    return y


def _draw_integers(y: Any, low: int, span: int, seed: int, offset: int) -> None:
    start = np.int64(low if low < 1 << 63 else low - (1 << 64))
    bits = integer_bits(span)
    launch(
        _randint_kernel, (triton.cdiv(blocks_used(y.size, bits), BLOCK),), y, y.size, *kernel_seed(seed, offset), start,
        np.uint64(span & 0xFFFFFFFFFFFFFFFF), FULL=span == 1 << 64, BITS=bits, BLOCK=BLOCK,
    )  # fmt: skip


def _randint_forward(*, low: int, high: int, shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype, device: Device) -> CudaArray:
    y = allocate(shape, dtype, device)
    _draw_integers(y, low, high - low, seed, offset)
    return y


def _randperm_forward(*, n: int, seed: int, offset: int, dtype: np.dtype, device: Device) -> CudaArray:
    keys = allocate((n,), INT64, device)
    _draw_integers(keys, 0, 1 << 64, seed, offset)
    order = sort_keys(keys, 64)[1]
    if dtype == INT64:
        return order
    return assigned(allocate((n,), dtype, device), order)


# --- references
def _rand_reference(*, shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype, device: Device) -> np.ndarray:
    digits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[dtypes.of(dtype).name]
    return uniforms(math.prod(shape), seed, offset, digits).astype(dtype).reshape(shape)


def _randn_reference(*, shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype, device: Device) -> np.ndarray:
    return normals(math.prod(shape), word_bits(dtype), seed, offset).astype(dtype).reshape(shape)


def _randint_reference(
    *, low: int, high: int, shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype, device: Device
) -> np.ndarray:
    bits = integer_bits(high - low)
    drawn = [low + (int(w) * (high - low) >> bits) for w in words(math.prod(shape), bits, seed, offset)]
    return np.array(drawn, dtype).reshape(shape)


def _randperm_reference(*, n: int, seed: int, offset: int, dtype: np.dtype, device: Device) -> np.ndarray:
    return np.argsort(words(n, 64, seed, offset), kind="stable").astype(dtype)


# --- shapes and samples
def _float_shape(name: str) -> Callable[..., Spec]:
    def shape_of(*, shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype, device: Device) -> Spec:
        refuse_negative_size(name, shape)
        if dtypes.of(dtype).name not in _KEPT:
            raise DTypeError(
                f"{name}: {dtypes.of(dtype).name} is not a floating type that can be drawn; use {', '.join(_KEPT)}, or randint"
            )
        return Spec(shape, dtype)

    return shape_of


def _randint_shape(*, low: int, high: int, shape: tuple[int, ...], seed: int, offset: int, dtype: np.dtype, device: Device) -> Spec:
    refuse_negative_size("randint", shape)
    if low >= high:
        raise ArgumentError(f"randint: low {low} is not below high {high}; give a range that is not empty")
    kind = dtypes.of(dtype).kind
    if kind in ("int", "uint") and not (np.iinfo(dtype).min <= low and high - 1 <= np.iinfo(dtype).max):
        raise ArgumentError(f"randint: {low} to {high - 1} does not fit {dtypes.of(dtype).name}; choose a wider dtype")
    return Spec(shape, dtype)


def _randperm_shape(*, n: int, seed: int, offset: int, dtype: np.dtype, device: Device) -> Spec:
    if n < 0:
        raise ShapeError(f"randperm: n is {n}; it must not be negative")
    return Spec((n,), dtype)


_float_types = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), dtypes.bfloat16.numpy)


def _float_samples(rng: np.random.Generator) -> list[Sample]:
    shapes = ((7,), (3, 5), (1030,), (), (0, 3))
    return [
        Sample(shape=s, seed=2**40 + 17, offset=2**32 - 3, dtype=t) for t in _float_types for s in shapes[: 5 if t == np.float32 else 3]
    ]


def _randint_samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(low=0, high=10, shape=(3, 5), seed=1, offset=0, dtype=INT64),
        Sample(low=-(2**63), high=2**63 - 1, shape=(9,), seed=1, offset=7, dtype=INT64),
        Sample(low=-3, high=2**33, shape=(700,), seed=5, offset=2, dtype=INT64),
        Sample(low=0, high=256, shape=(5,), seed=5, offset=2, dtype=np.dtype(np.uint8)),
        Sample(low=0, high=7, shape=(0,), seed=5, offset=2, dtype=INT64),
    ]


def _randperm_samples(rng: np.random.Generator) -> list[Sample]:
    return [Sample(n=n, seed=3, offset=11, dtype=t) for n, t in ((7, INT64), (300, np.dtype(np.int32)), (0, INT64), (1, INT64))]


for _name, _reference, _cpu, _shape, _forward, _samples, _doc in (
    ("rand", _rand_reference, _rand, _float_shape("rand"), _rand_forward, _float_samples, "Uniform numbers of [0, 1)."),
    ("randn", _randn_reference, _randn, _float_shape("randn"), _randn_forward, _float_samples, "Standard normal numbers."),
    ("randint", _randint_reference, _randint, _randint_shape, _randint_forward, _randint_samples, "Uniform integers of [low, high)."),
    (
        "randperm",
        _randperm_reference,
        _randperm,
        _randperm_shape,
        _randperm_forward,
        _randperm_samples,
        "A random permutation of 0 to n - 1.",
    ),
):
    op(
        _name, _reference, cpu=_cpu, shape=_shape, forward=_forward, samples=_samples, differentiable=False, dtypes=("float32",), doc=_doc
    )  # fmt: skip
