"""Configs worth trying for products by tensor descriptors, and what is wrong with one."""

from __future__ import annotations

from typing import Any

from tritensor.kernels.parts.launch_rules import cdiv, next_power_of_2
from tritensor.kernels.parts.products.rules import ALL_SHARED, MOST_SHARED, RESERVED, shared_bytes
from tritensor.ops.tuning.tunables import powers, tile_problem

_BOX = 256  # elements of a described tile along each side
_SHAPES = ((64, 64, 4), (64, 128, 4), (64, 256, 4), (128, 64, 8), (128, 128, 4), (128, 128, 8), (128, 256, 8), (256, 64, 8), (256, 128, 8))


def described_problem(t: Any, key: tuple[Any, ...] | None) -> str:
    """What is wrong with DescribedTiles: sides that are no powers of two from 16 to 256, rows that are no warpgroup's, pieces below 16 columns."""
    if wrong := powers(t, None, ("split", "stages", "group", "resident")):
        return wrong
    if min(t.block_m, t.block_n, t.block_k) < 16 or max(t.block_m, t.block_n, t.block_k) > _BOX:
        return f"a tile of {t.block_m} x {t.block_n} x {t.block_k}; a described side has 16 to {_BOX} elements"
    if wrong := tile_problem(t.block_m, t.block_n) or tile_problem(t.block_m, t.block_k) or tile_problem(t.block_k, t.block_n):
        return wrong
    if t.block_n // t.parts < 16:
        return f"a tile of {t.block_n} columns in {t.parts} parts; each has 16 columns or more"
    if t.resident < 0:
        return f"resident is {t.resident!r}; 0 (a program for each tile) or more"
    return next((f"{f} is {getattr(t, f)!r}; at least 1" for f in ("split", "stages", "group") if getattr(t, f) < 1), "")


def described_space(key: tuple[Any, ...], default: Any) -> list[Any]:
    """DescribedTiles for a product of `key` (m, n, k, batch, dtype, form): the rule's with one field changed, then tiles of other shapes."""
    m, n, k = key[:3]
    found = [default._replace(flatten=not default.flatten), default._replace(resident=0, flatten=False)]
    found += [default._replace(stages=s) for s in (default.stages - 1, default.stages + 1) if s > 1]
    found += [default._replace(group=g) for g in (4, 16)]
    found += [default._replace(parts=p) for p in (default.parts // 2, 2 * default.parts) if p]
    if key[-1] != "whole":
        found += [default._replace(split=s) for s in {1, default.split // 2, 2 * default.split}]
    for block_m, block_n, warps in _SHAPES:
        if block_m <= 2 * next_power_of_2(m) and block_n <= 2 * next_power_of_2(n):
            for stages in (3, 4):
                t = default._replace(
                    block_m=block_m, block_n=block_n, warps=warps, stages=stages, parts=4 if block_n >= 64 else 1, flatten=False
                )
                found += [t._replace(resident=1), t._replace(resident=1, flatten=True)]
                if 2 * (shared_bytes(t, 2) + RESERVED) <= ALL_SHARED:
                    found.append(t._replace(resident=2))
    return [t for t in dict.fromkeys(found) if not described_problem(t, key) and _fits(t) and t.split <= max(1, cdiv(k, t.block_k))]


def _fits(t: Any) -> bool:
    return shared_bytes(t, 4 if t.split > 1 else 2) <= MOST_SHARED and t.block_m * t.block_n <= 4096 * t.warps
