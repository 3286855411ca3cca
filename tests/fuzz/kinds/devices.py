"""Tensor programs on the CPU beside the emulated GPU: the same numbers, types, layouts and errors."""

from __future__ import annotations

import random
from typing import Any

from tests.fuzz.judges import Judge, devices
from tests.fuzz.kinds import configurations, tensors
from tests.fuzz.kinds.kind import Kind
from tests.fuzz.program import Program


def draw(rng: random.Random) -> Program:
    """A tensor program, or the configuration of a layer."""
    return tensors.draw(rng) if rng.random() < 0.7 else configurations.draw(rng)


def judges(torch: Any) -> list[Judge]:
    return [devices]


KIND = Kind("devices", draw, judges, weight=2)
