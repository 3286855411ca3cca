"""Tiles of the flash kernels: how many queries and keys a step takes, on how many warps, with how many loads under way."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tritensor.cuda.runtime.active import runtime
from tritensor.ground import dtypes
from tritensor.ground.thread_state import here
from tritensor.kernels.parts.launch_rules import config_of, next_power_of_2
from tritensor.ops.tuning.tunables import powers, tile_problem, tunable

if TYPE_CHECKING:
    from tritensor.kernels.attention.flash.operands import Call

SMALL = 99 * 1024  # bytes of shared memory that a block has on every GPU since sm_80
_SHARED = {80: 163 * 1024, 87: 163 * 1024, 90: 227 * 1024, 100: 227 * 1024, 103: 227 * 1024}  # where it has more


class FlashTiles(NamedTuple):
    """Queries and keys of a tile of weights, warps of a program, and copies of a loop's tiles that are under way."""

    block_m: int
    block_n: int
    warps: int
    stages: int


def _problem(t: FlashTiles, key: tuple[Any, ...] | None) -> str:
    if wrong := powers(t, None, ("stages",)) or tile_problem(t.block_m, t.block_n):
        return wrong
    if min(t.block_m, t.block_n) < 16:
        return f"a tile of {t.block_m} x {t.block_n}; each side is at least 16, what tl.dot multiplies"
    if key is not None and (wrong := tile_problem(max(t.block_m, t.block_n), max(key[2], key[3]))):
        return wrong
    return "" if t.stages >= 1 else f"stages is {t.stages!r}; at least 1"


def held(kernel: str, t: FlashTiles, wide: int, v_wide: int, size: int) -> int:
    """Bytes of shared memory that a program's tiles take: those that stay, and those of each stage."""
    both = (wide + v_wide) * size
    if kernel == "flash_forward":
        return t.block_m * wide * size + t.stages * t.block_n * both
    stay, step = (t.block_n, t.block_m) if kernel == "flash_dkv" else (t.block_m, t.block_n)
    return stay * both + t.stages * step * both + t.block_m * t.block_n * size


def _space(kernel: str) -> Callable[[tuple[Any, ...], FlashTiles], list[FlashTiles]]:
    def space(key: tuple[Any, ...], default: FlashTiles) -> list[FlashTiles]:
        """The rule's with one field changed, and the tiles that flash kernels are known to run well with."""
        wide, v_wide, dtype = key[2], key[3], key[-1]
        found = [default._replace(stages=s) for s in (1, 2, 3, 4)] + [default._replace(warps=w) for w in (4, 8)]
        found += [FlashTiles(m, n, w, s) for m in (64, 128) for n in (32, 64, 128) for w in (4, 8) for s in (2, 3)]
        limit, size = _limit(), dtypes.of(dtype).itemsize
        return [t for t in dict.fromkeys(found) if not _problem(t, key) and held(kernel, t, wide, v_wide, size) <= limit]

    return space


def _limit() -> int:
    major, minor = runtime().capability(here.index)
    return _SHARED.get(10 * major + minor, SMALL)


# (queries, keys, warps, stages) by the wider head size, of 16-bit types; the first line whose size holds the head
_RULES: dict[str, tuple[tuple[int, FlashTiles], ...]] = {
    "flash_forward": ((64, FlashTiles(64, 64, 4, 3)), (128, FlashTiles(128, 64, 8, 3)), (256, FlashTiles(64, 32, 4, 2))),
    "flash_dkv": ((64, FlashTiles(64, 64, 4, 3)), (128, FlashTiles(32, 128, 8, 2)), (256, FlashTiles(32, 64, 8, 1))),
    "flash_dq": ((64, FlashTiles(64, 64, 4, 3)), (128, FlashTiles(64, 64, 4, 2)), (256, FlashTiles(64, 32, 8, 1))),
}
_PLAIN = FlashTiles(
    128, 128, 8, 3
)  # of the forward kernel at head size 128 where nothing is masked or dropped: fewer steps, and registers suffice
_OLDER = {  # the same at head size 128 before sm_90, whose products hold both factors in registers
    "flash_forward": FlashTiles(128, 32, 8, 2), "flash_dkv": FlashTiles(32, 64, 8, 2), "flash_dq": FlashTiles(64, 32, 4, 2),
}  # fmt: skip
_WIDER: dict[str, tuple[tuple[int, FlashTiles], ...]] = {  # float32 and float64, whose products are multiply-adds of the cores
    "flash_forward": ((64, FlashTiles(32, 16, 4, 2)), (128, FlashTiles(32, 16, 8, 2)), (256, FlashTiles(16, 16, 8, 1))),
    "flash_dkv": ((64, FlashTiles(32, 32, 8, 1)), (128, FlashTiles(16, 32, 8, 1)), (256, FlashTiles(16, 16, 8, 1))),
    "flash_dq": ((64, FlashTiles(32, 32, 4, 1)), (128, FlashTiles(32, 16, 8, 1)), (256, FlashTiles(16, 16, 8, 1))),
}


def flash_tiles(
    kernel: str, queries: int, keys: int, wide: int, v_wide: int, causal: bool, kind: int, drops: bool, dtype: np.dtype,
    shared: int = _SHARED[90],
) -> FlashTiles:  # fmt: skip
    """The rule: by head size and type, smaller where there are few queries or keys, or little shared memory. `kind`: of the mask, 2 for one of numbers."""
    size = dtype.itemsize
    t = next(t for most, t in (_RULES if size == 2 else _WIDER)[kernel] if max(wide, v_wide) <= most)
    # before sm_90 both factors of a product lie in registers: the same tiles would spill
    if size == 2 and shared < _SHARED[90] and 64 < max(wide, v_wide) <= 128:
        t = _OLDER[kernel]
    elif kernel == "flash_forward" and size == 2 and wide == v_wide == 128 and not (causal or kind or drops):
        t = _PLAIN
    elif kernel == "flash_dkv" and size == 2 and (drops or kind == 2):  # numbers to add and words to draw take registers
        t = t._replace(block_m=32) if max(wide, v_wide) <= 64 else t._replace(block_n=64)
    # products of float64 are multiply-adds, and its tiles take twice the bytes: the least one
    if size == 8:
        t = t._replace(block_m=16, block_n=16, stages=1)
    few = t._replace(block_m=min(t.block_m, max(next_power_of_2(queries), 16)), block_n=min(t.block_n, max(next_power_of_2(keys), 16)))
    if few != t:
        t = few._replace(warps=4) if few.block_m * few.block_n < 64 * 64 else few
    # fewer stages first: they cost time only where loads are waited for, smaller tiles cost it always
    while held(kernel, t, wide, v_wide, size) > shared and (t.stages, t.block_m, t.block_n) != (1, 16, 16):
        if t.stages > 1:
            t = t._replace(stages=t.stages - 1)
        elif t.block_m > 16 and t.block_m >= t.block_n:
            t = t._replace(block_m=t.block_m // 2)
        else:
            t = t._replace(block_n=t.block_n // 2)
    return t


def tiles_of(kernel: str, on: Call) -> FlashTiles:
    """What a launch takes."""
    key = (on.queries, on.keys, on.wide, on.v_wide, on.causal, on.kind, on.drops, on.q.dtype)
    return config_of(kernel, key, flash_tiles(kernel, *key, _limit()))


for _kernel in _RULES:
    tunable(_kernel, FlashTiles, _space(_kernel), _problem)
