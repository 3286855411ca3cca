"""Launch rules: which tile sizes, warps and splits a kernel of a given shape gets. Deterministic; nothing is timed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ops.tuning.config_choice import config_of as config_of
from tritensor.ops.tuning.config_choice import forced as forced

PROGRAMS = 128  # programs wanted in flight: about one for every multiprocessor of a large GPU, the same number on each
SHARED = 160 * 1024  # bytes of shared memory a pipeline may take: fits sm_80 and everything after it


class Tiles(NamedTuple):
    """How a matrix product is cut: a tile of the result, a step along k, and into how many parts k is split."""

    block_m: int
    block_n: int
    block_k: int
    split: int
    warps: int
    stages: int
    group: int = 8  # rows of tiles that run together


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least n (1 for n < 1)."""
    return 1 << max(n - 1, 0).bit_length()


def cdiv(a: int, b: int) -> int:
    """a / b rounded up."""
    return -(-a // b)


def _clamp(n: int, low: int, high: int) -> int:
    return max(low, min(high, n))


class Cut(NamedTuple):
    """The largest tile that an operand's type, alignment and sizes allow, and what a warp of it holds."""

    block_m: int
    block_n: int
    block_k: int
    item: int  # bytes of an element
    share: int  # elements of a tile that a warp holds without spilling
    gathered: bool

    def tiles(self, split: int = 1) -> Tiles:
        """With the warps that hold the tile and the stages that fit."""
        area = self.block_m * self.block_n
        warps = _clamp(max(area // self.share, self.block_k * self.block_n // 512 if self.gathered else 0), 4, 8)
        stages = _clamp(SHARED // ((self.block_m + self.block_n) * self.block_k * self.item), 2, 4)
        return Tiles(self.block_m, self.block_n, self.block_k, split, warps, stages)


def largest_cut(m: int, n: int, k: int, dtype: np.dtype, aligned: bool = True, gathered: bool = False) -> Cut:
    """The largest tile for an (m, k) @ (k, n) product of floats; arguments as gemm_tiles takes them."""
    d = dtypes.of(dtype)
    half = d.itemsize <= 2
    longest = 128 // d.itemsize if aligned else 32 if half else 16  # narrow accesses: one address in a register for each element
    block_k = _clamp(next_power_of_2(k), 16, longest)
    widest = 256 if half and aligned and not gathered else 128 if half or (d.itemsize == 4 and aligned and not gathered) else 64
    block_m = _clamp(next_power_of_2(m), 16, 128 if half else widest)
    block_n = _clamp(next_power_of_2(n), 16, min(widest, 256 // d.itemsize) if block_m == 16 else widest)  # a flat wide tile spills
    share = 2048 // d.itemsize if gathered else 4096 if half and aligned else 2048 if d.itemsize <= 4 else 512
    return Cut(block_m, block_n, block_k, d.itemsize, share, gathered)


def gemm_tiles(
    m: int, n: int, k: int, batch: int, dtype: np.dtype, aligned: bool = True, gathered: bool = False, whole: bool = False
) -> Tiles:
    """Tiles of an (m, k) @ (k, n) product done `batch` times; `aligned` says that strides allow accesses of 16 bytes,
    `gathered` that an operand is collected by index arithmetic, which needs registers beside the tile, `whole` that k is not to be split.

    Large tiles reuse most; where they leave multiprocessors idle, k is split first (it costs one pass over the
    result), then tiles shrink. 16-bit tiles of 64 rows and more run on wgmma.
    """
    d = dtypes.of(dtype)
    if d.kind != "float":  # a multiply-add loop over a (m, k, n) block: it must fit the registers
        return Tiles(16, 16, 16, 1, 4, 2)
    cut = largest_cut(m, n, k, dtype, aligned, gathered)
    half, (block_m, block_n, block_k) = d.itemsize <= 2, cut[:3]

    def tiles() -> int:
        return cdiv(m, block_m) * cdiv(n, block_n) * batch

    split = 1
    if k >= 256 and tiles() <= PROGRAMS // 2 and not whole:
        split = _clamp(PROGRAMS // max(tiles(), 1), 1, cdiv(k, 4 * block_k))
    lowest = 64 if whole and half and block_m >= 64 else 16  # of wgmma: where k is whole a program has long to multiply
    while tiles() * split < PROGRAMS and (block_m > lowest or block_n > 16):
        parks = whole and block_n == block_m == 64  # 64 x 32 of a whole k keeps a register in memory, 32 x 64 none
        if block_m == lowest or (block_n >= block_m and not parks):
            block_n //= 2
        else:
            block_m //= 2
    return cut._replace(block_m=block_m, block_n=block_n).tiles(split)
