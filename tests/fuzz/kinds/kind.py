"""A kind of program: its name, how one is drawn, who judges it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.fuzz.judges import Judge
from tests.fuzz.program import Program


@dataclass(frozen=True)
class Kind:
    """`judges(torch)` gives those of a run beside torch, `judges(None)` those that need no peer; `weight` programs are run in each round of a timed run."""

    name: str
    draw: Callable[[random.Random], Program]
    judges: Callable[[Any], list[Judge]]
    weight: int = 1
