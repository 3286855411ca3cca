"""Calls that fill the tiles of tensor cores several times over, with ragged edges: what the smoke tier asks of ops that multiply matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tritensor.ops.table import Op, Sample


class Shapes(NamedTuple):
    """The sizes of a call's arrays (None: left out) and its attributes. narrow: in 16 bits alone, where tensor cores multiply; an op's bounds that
    are measured by a few draws are too close for the tail of so many float32 elements."""

    arrays: tuple[tuple[int, ...] | None, ...]
    attrs: Mapping[str, Any] = MappingProxyType({})
    narrow: bool = False


_CONV = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
_FLASH = {"causal": True, "p": 0.0, "seed": 0, "offset": 0}
# Rows that 16 bytes divide go by tensor descriptors, the others by addresses; more tiles than multiprocessors, a long sum, a batch.
TILES: dict[str, list[Shapes]] = {
    "matmul": [
        Shapes(((2056, 520), (520, 1288))),
        Shapes(((130, 4104), (4104, 136))),
        Shapes(((3, 264, 328), (3, 328, 136))),
        Shapes(((260, 333), (333, 257))),
    ],
    "linear": [Shapes(((1040, 520), (1032, 520), (1032,))), Shapes(((2, 515, 264), (1571, 264), None))],
    "conv2d": [
        Shapes(((4, 64, 28, 28), (72, 64, 3, 3), (72,)), _CONV),
        Shapes(((3, 64, 29, 27), (64, 64, 3, 3), None), _CONV | {"stride": (2, 2)}),
    ],
    "flash_attention": [
        Shapes(((1, 2, 150, 64), (1, 2, 150, 64), (1, 2, 150, 64), None), _FLASH | {"scale": 0.125}, narrow=True),
        Shapes(((1, 2, 140, 128), (1, 1, 139, 128), (1, 1, 139, 128), None), _FLASH | {"scale": 0.088, "causal": False}, narrow=True),
    ],
}


def tile_samples(op: Op, dtype: str) -> Iterator[Sample]:
    """The calls of an op that are worth asking in a type, in float64."""
    rng = np.random.default_rng(3)
    for shapes in TILES.get(op.name, []):
        if shapes.narrow and dtype not in ("float16", "bfloat16"):
            continue
        yield Sample(*(None if s is None else rng.standard_normal(s) for s in shapes.arrays), smooth=False, **shapes.attrs)
