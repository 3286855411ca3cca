"""Launch rules of matrix products that know the GPU: of the tiles and splits that could run, those that a simple clock says are done first."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.kernels.parts.launch_rules import Tiles, cdiv, gemm_tiles, largest_cut, next_power_of_2

MOST_SHARED = 227 * 1024  # bytes of shared memory that a block has at most on sm_90 and sm_100
ALL_SHARED = 228 * 1024  # bytes of a multiprocessor's, of which the system takes RESERVED for each block
RESERVED = 1024
MULTIPLY = 2048  # 16-bit multiply-adds of a multiprocessor's tensor cores in a clock (sm_90; sm_100 has twice as many, and the order stays)
LANES = 128  # float32 multiply-adds of a multiprocessor without them
PORT = 52  # bytes that a multiprocessor gets of the second-level cache in a clock: 64 at best
CACHE = 40  # bytes for each multiprocessor in a clock when all write parts and read them again; most stay in the second-level cache
FILL = 1500  # clocks until the first tiles of a program are there
ENOUGH = 0.85  # of the multiprocessors' time: tiles that leave more of it idle have to be
IDLE = 1.05  # times as fast by the clock, which does not know how much slower the longest program is than the others
LAUNCH = 3000  # clocks of one more launch


class DescribedTiles(NamedTuple):
    """How a product by descriptors is cut: a tile, a step along k, the parts of k; a tile is stored in `parts` pieces.

    resident: programs of a multiprocessor that walk over the tiles; 0: a program for each tile. flatten: the next tile's first loads begin
    before the last one is stored.
    """

    block_m: int
    block_n: int
    block_k: int
    split: int
    warps: int
    stages: int
    group: int = 8
    parts: int = 1
    resident: int = 1
    flatten: bool = False


# Tiles from the one that reuses most, each with its warps and the pieces in which it is stored; 64 rows are a warpgroup's
_SHAPES = (
    (128, 256, 8, 4),
    (128, 128, 8, 4),
    (64, 256, 4, 4),
    (64, 128, 4, 2),
    (128, 64, 8, 1),
    (64, 64, 4, 1),
    (64, 32, 4, 1),
    (64, 16, 4, 1),
)
_FEWEST_STEPS = 4  # of a part, where k is split
SHORT = 24  # steps along k: the fill and the store of a tile of 128 x 256 take as long as three of them


def shared_bytes(t: DescribedTiles, stored: int) -> int:
    """Shared memory of a program: what is under way of both operands, a piece of the result of `stored` bytes each, row sums, barriers."""
    return 2 * t.stages * (t.block_m + t.block_n) * t.block_k + t.block_m * t.block_n // t.parts * stored + 3072


def splits(tiles: int, steps: int, multiprocessors: int, whole: bool) -> Iterator[int]:
    """Numbers of parts worth looking at: one, and those that fill the multiprocessors a whole number of times."""
    yield 1
    if whole or tiles >= 4 * multiprocessors:
        return
    most = max(steps // _FEWEST_STEPS, 1)
    for rounds in range(1, 13):
        found = min(rounds * multiprocessors // max(tiles, 1), most)
        if found > 1:
            yield cdiv(steps, cdiv(steps, found))  # as many as there are when each but the last is as long as the next


def clocks(t: Any, m: int, n: int, k: int, batch: int, multiprocessors: int, step: float, stored: int) -> float:
    """Clocks of a product that is cut so: rounds of tiles, `step` clocks for each step along k, filling and storing, and the sum of a split's parts."""
    steps = cdiv(k, t.block_k)
    tiles = cdiv(m, t.block_m) * cdiv(n, t.block_n) * batch
    rounds = cdiv(tiles * t.split, multiprocessors)
    found = rounds * (cdiv(steps, t.split) * step + t.block_m * t.block_n * stored / 32) + FILL
    if t.split > 1:
        found += LAUNCH + m * n * batch * (8 * t.split + stored) / (CACHE * multiprocessors)
    return found


def described_tiles(
    m: int, n: int, k: int, batch: int, multiprocessors: int, whole: bool = False, described: bool = True
) -> DescribedTiles:
    """Tiles of an (m, k) @ (k, n) product of 16-bit floats, done `batch` times, on a GPU of so many multiprocessors.

    `whole`: k is not split. `described`: the result is; else it is stored in twice as many pieces, whose addresses are as many as their elements.
    """
    block_k = min(max(next_power_of_2(k), 16), 64)
    best: DescribedTiles | None = None
    least = 0.0
    for block_m, block_n, warps, parts in _SHAPES:
        if (block_m > 64 and block_m >= 2 * m) or (block_n > 16 and block_n >= 2 * n):
            continue
        tiles = cdiv(m, block_m) * cdiv(n, block_n) * batch
        step = max(block_m * block_n * block_k / MULTIPLY, 2 * (block_m + block_n) * block_k / PORT)
        for split in splits(tiles, cdiv(k, block_k), multiprocessors, whole):
            t = DescribedTiles(block_m, block_n, block_k, split, warps, 4, 8, parts)
            found = clocks(t, m, n, k, batch, multiprocessors, step, 2)
            if efficiency(t, m, n, batch, multiprocessors) < ENOUGH:
                found *= IDLE
            if best is None or found < least:
                best, least = t, found
    assert best is not None
    if not described:
        best = best._replace(parts=min(2 * best.parts, best.block_n // 16))
    programs = cdiv(m, best.block_m) * cdiv(n, best.block_n) * batch * best.split
    return _resident(best, programs, multiprocessors, cdiv(k, block_k) <= SHORT * best.split)


def product_tiles(
    m: int, n: int, k: int, batch: int, dtype: np.dtype, aligned: bool, multiprocessors: int, whole: bool = False, sums: bool = False
) -> Tiles:
    """Tiles of a product by pointers on a GPU of so many multiprocessors: the largest that the operands allow, or halves of its sides, k split or not.

    `sums`: the sums of a's rows are made beside it, or an epilogue behind it, for which the largest tile of 16-bit elements leaves no registers on sm_80.
    """
    if whole or dtypes.of(dtype).kind != "float":
        return gemm_tiles(m, n, k, batch, dtype, aligned, whole=whole)
    cut = largest_cut(m, n, k, dtype, aligned)
    if sums and cut.item == 2:
        cut = cut._replace(block_n=min(cut.block_n, 128), share=2048)
    rate = {2: MULTIPLY, 4: LANES}.get(cut.item, LANES // 2)
    best: Tiles | None = None
    least = 0.0
    for block_m, block_n in itertools.product(_halves(cut.block_m), _halves(cut.block_n)):
        if max(block_m, block_n) > 2 * min(block_m, block_n) and (block_m, block_n) != cut[:2]:
            continue
        t = cut._replace(block_m=block_m, block_n=block_n).tiles()
        held = block_m * block_n / (32 * t.warps)  # sums of a thread: the more, the fewer loads from shared memory for each multiplication
        besides = 7 / held + 256 / (block_m * block_n)  # instructions for each multiply-add, as machine code of float32 has them
        step = max(block_m * block_n * t.block_k / rate * (1 + besides), cut.item * (block_m + block_n) * t.block_k / PORT)
        for split in splits(cdiv(m, block_m) * cdiv(n, block_n) * batch, cdiv(k, t.block_k), multiprocessors, whole):
            found = clocks(t._replace(split=split), m, n, k, batch, multiprocessors, step, cut.item)
            if efficiency(t._replace(split=split), m, n, batch, multiprocessors) < ENOUGH:
                found *= IDLE
            if best is None or found < least:
                best, least = t._replace(split=split), found
    assert best is not None
    return best


def beside_an_epilogue(t: Tiles, dtype: np.dtype) -> Tiles:
    """Tiles with the same cut of k that leave registers for an epilogue of 16-bit elements, see product_tiles."""
    if dtype.itemsize != 2 or t.block_n <= 128:
        return t
    return t._replace(block_n=128, warps=min(max(t.block_m * 128 // 2048, 4), 8))


def _halves(side: int) -> list[int]:
    """A side of a tile and its halves, down to 32."""
    return [side >> i for i in range(8) if i == 0 or side >> i >= 32]


def _resident(t: DescribedTiles, programs: int, multiprocessors: int, short: bool) -> DescribedTiles:
    """With the stages that fit, and as many programs resident as do: a second one multiplies while the first one stores.

    Beside the largest tile there is room for none. There, where k is `short`, filling and storing are worth a loop that begins the next tile early,
    and a loop of six times as many instructions is the price.
    """
    stored = 4 if t.split > 1 else 2
    large = t.block_m * t.block_n >= 128 * 256
    if large:
        while shared_bytes(t, stored) > MOST_SHARED:
            t = t._replace(stages=t.stages - 1)
        return t._replace(flatten=programs > multiprocessors and short)
    wanted = 2 if programs > multiprocessors else 1
    while t.stages > 3 and wanted * (shared_bytes(t, stored) + RESERVED) > ALL_SHARED:
        t = t._replace(stages=t.stages - 1)
    fits = max(ALL_SHARED // (shared_bytes(t, stored) + RESERVED), 1)
    return t._replace(resident=min(fits, 4 if t.warps == 4 else 2))


def efficiency(t: Any, m: int, n: int, batch: int, multiprocessors: int) -> float:
    """The share of all multiprocessors' time that goes into elements of the result: 1 where every round is full and no tile hangs over an edge."""
    programs = cdiv(m, t.block_m) * cdiv(n, t.block_n) * batch * t.split
    rounds = cdiv(programs, multiprocessors)
    return m * n * batch * t.split / (rounds * multiprocessors * t.block_m * t.block_n)
