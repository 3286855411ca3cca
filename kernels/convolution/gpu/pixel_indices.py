"""Indices of pixels: planes, rows and columns of their numbers, by a division that multiplies."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor.kernels.convolution.geometry import Sizes
from tritensor.kernels.parts.view_arithmetic import is_channels_last
from tritensor.ops.array import CudaArray


class Divisor(NamedTuple):
    """A divisor and what a division by it takes: n // value = (2 n * magic >> 32) >> shift for 0 <= n < 2^31. With s = ceil(log2 value),
    magic = ceil(2^(31 + s) / value) is below 2^32 (Granlund and Montgomery, "Division by Invariant Integers using Multiplication", 1994)."""

    value: int
    magic: np.uint32
    shift: np.int32


def divisor(value: int) -> Divisor:
    """The divisor `value`, 1 in place of 0: what nobody divides by."""
    value = max(value, 1)
    shift = (value - 1).bit_length()
    return Divisor(value, np.uint32(min(-(-(1 << (31 + shift)) // value), (1 << 32) - 1)), np.int32(shift))


def divisors(outs: Sizes) -> tuple[Divisor, Divisor, Divisor]:
    """By the places of an image, its rows and its columns, of three sizes."""
    return divisor(outs[0] * outs[1] * outs[2]), divisor(outs[1]), divisor(outs[2])


# n // by
@triton.jit
def divide(n, by, LONG: tl.constexpr):
    """The quotient of places below 2^31 by a Divisor, without a division; LONG: of any places."""
    # the trick is of 31 bits: larger numbers are divided
    if LONG:
        quotient = n // by[0]
    else:
        quotient = (tl.umulhi(n.to(tl.uint32) << 1, tl.zeros_like(n).to(tl.uint32) + by[1]) >> by[2]).to(tl.int32)
    return quotient


@triton.jit
def place_of(pixel, volume, rows, columns, DEEP: tl.constexpr, LONG: tl.constexpr):
    """Image, place in it, plane, row and column of a pixel; `volume`, `rows` and `columns` are Divisors by the places of an image, its rows and columns."""
    image = divide(pixel, volume, LONG)
    place = pixel - image * volume[0]
    r = divide(place, columns, LONG)
    q = place - r * columns[0]
    f = tl.zeros_like(r)
    if DEEP:
        f = divide(r, rows, LONG)
        r = r - f * rows[0]
    return image, place, f, r, q


@triton.jit
def is_inside(u, size):
    """0 <= u < size, in one comparison."""
    return u.to(tl.uint32) < size.to(tl.uint32)


def channels_innermost(x: CudaArray) -> bool:
    """Whether the channels of rows, images or volumes lie innermost."""
    return is_channels_last(x) or (len(x.shape) == 3 and x.strides[1] == 1)


def is_in_order(steps: Sizes, sizes: Sizes, step: int) -> bool:
    """Whether what lies along axes of these steps and sizes follows one another, the axes in order, `step` apart."""
    return all(s == step * math.prod(sizes[d + 1 :]) for d, s in enumerate(steps))


def long_offsets(x: CudaArray) -> bool:
    """Whether offsets inside one image can pass 32 bits."""
    return sum(abs(s) * (n - 1) for s, n in zip(x.strides[1:], x.shape[1:], strict=True)) >= 1 << 31


def alignment(itemsize: int, *numbers: int) -> int:
    """How many elements of 16 bytes divide all of some sizes and steps: those of a whole access, or 1."""
    per_access = 16 // itemsize
    return per_access if all(n % per_access == 0 for n in numbers) else 1
