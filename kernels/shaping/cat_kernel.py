"""Arrays written side by side by one launch: what cat and stack do on a GPU with a few dense parts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground.thread_state import here
from tritensor.kernels.parts.launch_rules import cdiv, config_of, next_power_of_2
from tritensor.ops.array import CudaArray, is_contiguous
from tritensor.ops.replay.steps import StepRecorder
from tritensor.ops.tuning.tunables import powers, tile_problem, tunable

MOST = 8  # parts of one launch: each is a branch of the kernel
TILE = 4096  # elements
_LONGEST = 1 << 31


class SideTile(NamedTuple):
    """Rows and columns that a program copies."""

    block_m: int
    block_n: int


tunable(
    "side_by_side", SideTile, lambda key, t: [SideTile(t.block_m * 2, t.block_n), SideTile(max(t.block_m // 2, 1), t.block_n)],
    lambda t, key: powers(t) or tile_problem(t.block_m, t.block_n),
)  # fmt: skip


@triton.jit
def _copy(x, y, rows, width, step, block, BM: tl.constexpr, BN: tl.constexpr):
    """A block of (rows, width) from x, whose rows lie one behind the other, to y, whose rows begin `step` apart."""
    tiles = tl.maximum(tl.cdiv(width, BN), 1)
    row = (block // tiles).to(tl.int64) * BM + tl.arange(0, BM)
    col = block % tiles * BN + tl.arange(0, BN)
    inside = (row < rows)[:, None] & (col < width)[None, :]
    tl.store(y + row[:, None] * step + col[None, :], tl.load(x + row[:, None] * width + col[None, :], mask=inside), mask=inside)


# y[i, start_k + j] = x_k[i, j]
@triton.jit(do_not_specialize=["rows", "widths", "starts", "step"])
def _side_by_side_kernel(xs, y, rows, widths, starts, step, ALIGN: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    part = tl.program_id(1)
    for k in tl.static_range(len(xs)):
        if part == k:
            _copy(xs[k], y + starts[k] // ALIGN * ALIGN, rows, widths[k] // ALIGN * ALIGN, step // ALIGN * ALIGN, tl.program_id(0), BM, BN)


def side_by_side(xs: Sequence[CudaArray], y: CudaArray, widths: Sequence[int]) -> bool:
    """Write x_k, `widths[k]` elements of each row, side by side into the rows of y; False, and nothing done, where that is not for one launch.

    That takes 2 to 8 arrays in C order of one real type of 2 bytes or more, rows of fewer than 2^31 elements, and as long a y in C order.
    """
    step = sum(widths)
    if (
        type(here.recorder) is StepRecorder  # as steps it is copies
        or not 1 < len(xs) <= MOST
        or step >= _LONGEST
        or y.itemsize == 1
        or y.dtype.kind == "c"
        or not all([is_contiguous(x) for x in (*xs, y)])
    ):
        return False
    rows = y.size // step if step else 0
    # indices of rows and columns have 32 bits in the kernel
    if rows >= _LONGEST:
        return False
    widest = max(widths)
    block_n = min(next_power_of_2(widest), 1024)
    rule = SideTile(max(min(TILE // block_n, next_power_of_2(rows)), 1), block_n)
    t = config_of("side_by_side", (rows, widest, y.dtype), rule)
    starts = [sum(widths[:k]) for k in range(len(xs))]
    align = math.gcd(16, *widths)
    launch(
        _side_by_side_kernel, (cdiv(rows, t.block_m) * cdiv(widest, t.block_n), len(xs)), tuple(xs), y, rows, tuple(widths), tuple(starts), step,
        ALIGN=align, BM=t.block_m, BN=t.block_n, num_warps=4,
    )  # fmt: skip
    return True
