"""Tiles of elementwise launches: how many elements a program computes, on how many warps."""

from __future__ import annotations

from typing import Any, NamedTuple

from tritensor.ops.tuning.tunables import powers, tunable

LARGE = 1024  # elements of a tile: 8 to a thread of 4 warps, one 128-bit access of 16-bit values
Heavy = dict[int, int] | None
HEAVY = {8: 256}  # elements of a tile of formulas that keep many values: in float64 (8 bytes) 2 to a thread, one 128-bit access
SMALL = 128  # elements of a tile where there are so few that large tiles would leave multiprocessors idle
FEW = 16384


class ElementTile(NamedTuple):
    """Elements of a tile, and the warps of the program that computes it."""

    elements: int
    warps: int = 4


def _space(key: tuple[Any, ...], default: ElementTile) -> list[ElementTile]:
    """Half and twice the rule's elements on as many warps, twice on twice as many. Few, since hundreds of ops share the kernel."""
    half, twice = default.elements // 2, default.elements * 2
    return [ElementTile(half, default.warps), ElementTile(twice, default.warps), ElementTile(twice, 2 * default.warps)]


tunable("elementwise", ElementTile, _space, powers)
