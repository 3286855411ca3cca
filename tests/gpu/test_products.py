"""Products by tensor descriptors on the GPU: every layout, in the rule's tiles and in others, beside numpy."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gpu.scale import scaled
from tests.kernels.products.test_described import product
from tritensor.kernels.parts.launch_rules import forced
from tritensor.kernels.parts.products.rules import DescribedTiles

pytestmark = pytest.mark.gpu

LARGE = scaled((4000, 2056, 776), (136, 264, 40))  # several tiles for each program
SHAPES: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    *[(scaled((1000, 776, 520), (72, 136, 40)), {"form": form, "bias": True}) for form in ("nn", "nt", "tn", "tt")],
    *[(LARGE, {"form": form}) for form in ("nn", "nt", "tn")],
    (LARGE, {"form": "nt", "bias": True}),
    (scaled((264, 520, 8200), (72, 24, 600)), {"form": "tn", "sums": True}),  # k split
    (scaled((2056, 3080, 520), (72, 136, 40)), {"form": "tn", "sums": True}),
    (scaled((1000, 1001, 520), (72, 57, 40)), {"form": "nt", "bias": True}),  # stored by addresses
    (scaled((3000, 5001, 776), (72, 57, 40)), {"form": "nt", "bias": True}),
    (scaled((1001, 1003, 1005), (41, 43, 45)), {"form": "nn"}),  # copied into padded rows
    (scaled((1001, 1003, 1005), (41, 43, 45)), {"form": "tn", "sums": True}),
    (scaled((8, 1032, 4104), (8, 24, 136)), {"form": "nt"}),
    *[(scaled((520, 264, 136), (72, 24, 40)), {"form": form, "batch": (5,)}) for form in ("nn", "nt", "tn")],
    (scaled((72, 40, 5000), (72, 24, 72)), {"form": "nn", "batch": (3,)}),
]


@pytest.mark.parametrize(("shape", "how"), SHAPES)
def test_the_rules_tiles(shape: tuple[int, int, int], how: dict[str, Any]) -> None:
    assert product(*shape, **how)[0] == ""


@pytest.mark.parametrize("form", ["nn", "nt", "tn"])
@pytest.mark.parametrize(
    "tiles",
    [
        DescribedTiles(128, 256, 64, 1, 8, 4, 8, 4, 1, True),
        DescribedTiles(128, 256, 64, 1, 8, 4, 8, 2, 1, False),
        DescribedTiles(128, 256, 64, 1, 8, 3, 4, 4, 0, False),
        DescribedTiles(128, 128, 64, 1, 8, 3, 8, 4, 2, False),
        DescribedTiles(128, 128, 64, 2, 8, 3, 8, 4, 1, True),
        DescribedTiles(256, 128, 64, 1, 8, 3, 8, 4, 1, False),
        DescribedTiles(64, 64, 64, 3, 4, 4, 8, 1, 3, True),
    ],
    ids=lambda t: " ".join(map(str, t)) if isinstance(t, tuple) else str(t),
)
def test_other_tiles(tiles: DescribedTiles, form: str) -> None:
    with forced(matmul_described=tiles):
        assert product(*LARGE, form)[0] == ""
