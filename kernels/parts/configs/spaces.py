"""Configs worth trying, by the class that a kernel's configs have: what `tritensor tune` walks through, and what is wrong with a config."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tritensor.ground import dtypes
from tritensor.kernels.parts.launch_rules import Tiles, next_power_of_2
from tritensor.ops.tuning.tunables import powers, tile_problem

SHARED = 227 * 1024  # bytes of shared memory that a block has at most, on sm_90
LARGEST = 64 * 1024  # bytes that a tile of a result would take in the type of what is multiplied: 128 x 256 of 16 bits, 128 x 128 of 32
ACCUMULATORS = 256  # values of a tile that a thread can sum in registers


# Tiles of a matrix product
_SHAPES = (
    (16, 64),
    (32, 32),
    (32, 128),
    *[(64, n) for n in (32, 64, 128, 256)],
    *[(128, n) for n in (64, 128, 256)],
    (256, 64),
    (256, 128),
)


def tiles_problem(t: Any, key: tuple[Any, ...] | None) -> str:
    """What is wrong with Tiles: sides that are no powers of two from 16 up, counts below 1."""
    if wrong := powers(t, None, ("split", "stages", "group")):
        return wrong
    if min(t.block_m, t.block_n, t.block_k) < 16:
        return f"a tile of {t.block_m} x {t.block_n} x {t.block_k}; each side is at least 16, what tl.dot multiplies"
    if wrong := tile_problem(t.block_m, t.block_n) or tile_problem(t.block_m, t.block_k) or tile_problem(t.block_k, t.block_n):
        return wrong
    return next((f"{f} is {getattr(t, f)!r}; at least 1" for f in ("split", "stages", "group") if getattr(t, f) < 1), "")


def tiles_space(key: tuple[Any, ...], default: Tiles) -> list[Tiles]:
    """Tiles for a product of `key` (m, n, k, batch, dtype, ...): the rule's with one field changed, then tiles of other shapes."""
    m, n, k, _, dtype = key[:5]
    kind = dtypes.of(dtype)
    if kind.kind != "float":
        return [default._replace(warps=w, split=s) for w in (2, 4, 8) for s in {1, default.split}]
    found = [default._replace(stages=s) for s in (default.stages - 1, default.stages + 1) if s > 1]
    found += [default._replace(warps=w) for w in (4, 8)]
    found += [default._replace(block_k=b) for b in (default.block_k // 2, 2 * default.block_k)]
    found += [default._replace(split=s) for s in {1, default.split // 2, 2 * default.split}]
    for bm, bn in _SHAPES:
        if bm <= 2 * next_power_of_2(m) and bn <= 2 * next_power_of_2(n) and bm * bn * kind.itemsize <= LARGEST:
            warps = 8 if bm * bn >= 128 * 128 else 4
            found.append(default._replace(block_m=bm, block_n=bn, warps=warps))
    if key[-1] == "whole":  # in one launch: the kernel does not split k whatever a config says
        found = [t for t in found if t.split == 1]
    return [t for t in _each_once(found) if not tiles_problem(t, key) and _fits(t, kind.itemsize) and t.split <= max(1, -(-k // t.block_k))]


def _fits(t: Tiles, size: int) -> bool:
    held = t.block_m * t.block_n * max(size, 4) // 4 // (32 * t.warps)
    return held <= ACCUMULATORS and (t.block_m + t.block_n) * t.block_k * size * t.stages <= SHARED


# Tiles of rows
def rows_problem(t: Any, key: tuple[Any, ...] | None) -> str:
    """What is wrong with a RowTile: sides that are no powers of two; a row that is said to be whole and does not fit."""
    if wrong := powers(t) or tile_problem(t.BM, t.BN):
        return wrong
    return f"whole, but BN {t.BN} holds no row of {key[1]}" if key is not None and t.whole and key[1] > t.BN else ""


def rows_space(key: tuple[Any, ...], default: Any) -> list[Any]:
    """RowTiles for rows of `key` (before, along, after, bytes, dtype): more or fewer rows, warps, and rows walked instead of held or held instead of walked."""
    _, n, _, size, _ = key
    columns, most = next_power_of_2(n), 65536 // size
    found = [default._replace(warps=w) for w in (1, 2, 4, 8, 16)]
    found += [default._replace(BM=default.BM * f // 4) for f in (1, 2, 8, 16)]
    found += [default._replace(BM=default.BM * f // 4, warps=w) for f in (2, 8) for w in (2, 8)]
    if not default.whole:
        found += [default._replace(BN=default.BN * f // 4, warps=w) for f in (1, 2, 8) for w in (4, 8, 16)]
        found += [default._replace(BM=1, BN=columns, whole=True, warps=16)]
    elif columns >= 2048:
        found += [default._replace(BM=1, BN=b, whole=False, warps=w) for b in (1024, 2048, 4096) if b < columns for w in (4, 8)]
    return [t for t in _each_once(found) if t.BM >= 1 and not (most < t.BM * t.BN or rows_problem(t, key))]


# Blocks of a reduction
def blocks_problem(b: Any, key: tuple[Any, ...] | None) -> str:
    """What is wrong with Blocks: sides that are no powers of two, a negative number of parts."""
    return (
        powers(b, None, ("splits",))
        or tile_problem(b.rows, b.columns)
        or (f"splits is {b.splits}; 0 (as the rule says) or more" if b.splits < 0 else "")
    )


def blocks_space(key: tuple[Any, ...], default: Any) -> list[Any]:
    """Blocks of more or fewer rows and columns than the rule's, and other numbers of parts where the rule names one."""
    changed = ((1, 2), (2, 1), (1, 0.5), (0.5, 1), (0.5, 2), (2, 0.5), (2, 2), (0.5, 0.5), (4, 0.25), (0.25, 4))
    found = [default._replace(rows=int(default.rows * r), columns=int(default.columns * c)) for r, c in changed]
    if default.splits:
        found += [default._replace(splits=s) for s in (max(default.splits // 2, 1), 2 * default.splits)]
    return [b for b in _each_once(found) if b.rows * b.columns <= 32768 and not blocks_problem(b, key)]


# Numbers
def numbers_space(key: tuple[Any, ...], default: int) -> list[int]:
    """A quarter, a half, two and four times the rule's block."""
    return [n for n in (default // 4, default // 2, default * 2, default * 4) if 16 <= n <= 16384]


def _each_once(configs: Iterable[Any]) -> list[Any]:
    return list(dict.fromkeys(configs))
