"""Launch rules of convolutions: the tiles that their kernels take where nothing is tuned or forced."""

from __future__ import annotations

import numpy as np

from tritensor.ground import dtypes
from tritensor.kernels.parts.launch_rules import PROGRAMS, Tiles, cdiv, next_power_of_2


def _power_between(n: int, low: int, high: int) -> int:
    return max(low, min(next_power_of_2(n), high))


def block_tiles(pixels: int, m: int, k: int, problems: int, dtype: np.dtype, aligned: bool, channels: int) -> Tiles:
    """Tiles of (pixels, k) @ (k, m), done `problems` times, of which k goes by blocks of `channels`: rows of pixels, columns of output channels."""
    size = dtypes.of(dtype).itemsize
    if size == 2:  # tensor cores: a row of the tile costs its address and mask once in a step, so that steps are long and tiles high
        block_m, block_n, block_k = (
            _power_between(pixels, 16, 128),
            _power_between(m, 16, 128),
            _power_between(channels, 16, 64 if aligned else 32),
        )
        block_m = max(block_m, 64)
    else:
        widest = 64 if size == 4 else 32
        block_m, block_n, block_k = (
            _power_between(pixels, 16, widest),
            _power_between(m, 16, widest),
            _power_between(channels, 16, 32 if size == 4 and aligned else 16),
        )

    steps = k // max(channels, 1) * cdiv(channels, block_k)

    def cut(high: int) -> tuple[float, int]:
        """What tiles of so many rows cost, rounds times what a step reads, and the parts of k that fill the multiprocessors."""
        tiles = cdiv(pixels, high) * cdiv(m, block_n) * problems
        split = max(min(PROGRAMS // max(tiles, 1), steps // 4), 1) if tiles <= PROGRAMS // 2 else 1
        return cdiv(tiles * split, PROGRAMS) * (high + block_n) / split, split

    heights = [h for h in (block_m, block_m // 2) if h >= min(block_m, 64)]
    block_m = min(heights, key=lambda h: cut(h)[0])
    large = block_m * block_n >= 128 * 128
    stages = 3 if large else 4  # so that two programs fit a multiprocessor
    return Tiles(block_m, block_n, block_k, cut(block_m)[1], 8 if large else 4, stages if size == 2 else 3 if size == 4 else 2)


def taps_together(t: Tiles, columns: int, size: int) -> int:
    """Taps of a kernel's row of `columns` whose gradients a program sums, for which it reads g once: as many as its registers hold, up to three."""
    return min(columns, 3) if size == 2 and t.block_m * t.block_n <= 64 * 64 else 1


def weight_tiles(m: int, columns: int, pixels: int, groups: int, dtype: np.dtype, aligned: bool, channels: int, kernel: int) -> Tiles:
    """Tiles of (m, pixels) @ (pixels, channels), done for each tap: `columns` are channels times taps, `kernel` the taps of a row."""
    size = dtypes.of(dtype).itemsize
    widest = 128 if size == 2 else 64 if size == 4 else 32
    block_m, block_n = _power_between(m, 16, widest), _power_between(channels, 16, widest)
    # wgmma multiplies 64 rows at a time
    if size == 2:
        block_m = max(block_m, 64)
    block_k = 64 if size == 2 else 32 if size == 4 else 16
    warps = 8 if block_m * block_n >= 128 * 128 else 4
    found = Tiles(block_m, block_n, block_k, 1, warps, 4 if size == 2 else 3 if size == 4 else 2)
    rows = columns // max(channels, 1) // kernel * cdiv(kernel, taps_together(found, kernel, size))
    tiles = cdiv(m, block_m) * cdiv(channels, block_n) * rows * groups
    return found._replace(split=max(min(PROGRAMS // tiles, cdiv(pixels, block_k) // 4), 1))
