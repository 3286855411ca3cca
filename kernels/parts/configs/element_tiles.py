"""Tiles of elementwise launches: how many elements a program computes, on how many warps."""

from __future__ import annotations

from typing import Any, NamedTuple

from tritensor.tuning.tunables import powers, tunable

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
    """Half, two and four times the rule's elements on as many warps; the rule's and twice as many on twice as many."""
    found = [default._replace(elements=default.elements * f // 2) for f in (1, 4, 8)]
    return [
        *found,
        default._replace(warps=8),
        ElementTile(default.elements * 2, 8),
        default._replace(elements=default.elements // 2, warps=2),
    ]


tunable("elementwise", ElementTile, _space, powers)
