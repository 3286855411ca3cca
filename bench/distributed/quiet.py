"""Rounds on a machine that others use as well: those in which they did least are counted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import NamedTuple, TypeVar

QUIET = 0.15  # cores that others may keep busy in a round that counts
TRIES = 4  # times as many rounds as are asked for, until so many were quiet

Side = TypeVar("Side", bound=Hashable)


class Counted(NamedTuple):
    """For each side the seconds of the rounds that count, and how many cores others kept busy in the worst of them."""

    seconds: dict
    others: float


def busy() -> float:
    """Seconds for which this machine's cores have worked for anybody, added up."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return (sum(map(int, fields[:8])) - int(fields[3]) - int(fields[4])) / os.sysconf("SC_CLK_TCK")  # without idle, and waiting for a disk


def quietest(one: Callable[[int], dict[Side, float]], rounds: int, mine: Callable[[], float], most: int | None = None) -> Counted:
    """The quietest `rounds` of as many calls of `one` as it takes for so many to be quiet, or of `most`.

    Args:
        one: a round, by its number: the seconds of each side.
        mine: seconds for which cores have worked for the benchmark itself.
        most: rounds after which no other is begun (default: TRIES times rounds).
    """
    found: list[tuple[float, dict[Side, float]]] = []
    while len(found) < (TRIES * rounds if most is None else most) and sum(others < QUIET for others, _ in found) < rounds:
        before, began = busy() - mine(), time.monotonic()
        seconds = one(len(found))
        found.append((max(0.0, busy() - mine() - before) / (time.monotonic() - began), seconds))
    kept = sorted(found, key=lambda f: f[0])[:rounds]
    return Counted({side: [seconds[side] for _, seconds in kept] for side in kept[0][1]}, kept[-1][0])
