"""Kernels over images: which elements a program works on, whether their places need 64 bits, the sizes of windows that slide over them."""

from __future__ import annotations

from typing import NamedTuple

import triton
import triton.language as tl

from tritensor.array import CudaArray


@triton.jit
def positions(LONG_OFFSETS: tl.constexpr, BLOCK: tl.constexpr):
    """This program's elements; in 64 bits, whose division is slow, only where the arrays need that."""
    first = tl.program_id(0)
    if LONG_OFFSETS:
        first = first.to(tl.int64)
    return first * BLOCK + tl.arange(0, BLOCK)


def long_offsets(*arrays: CudaArray) -> bool:
    """Whether offsets into one of them can pass 32 bits."""
    return any(sum(abs(s) * (n - 1) for s, n in zip(a.strides, a.shape, strict=True)) >= 1 << 31 for a in arrays)


class Windows(NamedTuple):
    """Windows of (kh, kw) cells that slide over images (H, W): OH rows and OW columns of them, and their steps, padding and dilation."""

    height: int
    width: int
    rows: int  # OH
    cols: int  # OW
    kh: int
    kw: int
    sh: int
    sw: int
    ph: int
    pw: int
    dh: int
    dw: int

    @property
    def quarters(self) -> bool:
        """Whether it is the common 2 x 2 windows side by side."""
        return (self.kh, self.kw, self.sh, self.sw, self.ph, self.pw, self.dh, self.dw) == (2, 2, 2, 2, 0, 0, 1, 1) and (
            2 * self.rows <= self.height and 2 * self.cols <= self.width
        )

    @property
    def apart(self) -> bool:
        """Whether no two windows share a cell."""
        return self.sh > (self.kh - 1) * self.dh and self.sw > (self.kw - 1) * self.dw
