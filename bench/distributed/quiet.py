"""Rounds on a machine that others use as well: those in which they did least are counted."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import NamedTuple, TypeVar

QUIET = 0.15  # cores that others may keep busy in a round that counts
REST = 2.0  # seconds after a round that was loud

Side = TypeVar("Side", bound=Hashable)


class Counted(NamedTuple):
    """For each side the seconds of the rounds that count, and how many cores others kept busy in the worst of them."""

    seconds: dict
    others: float


def busy() -> float:
    """Seconds for which this machine's cores have worked for anybody, added up."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return (sum(map(int, fields[:8])) - int(fields[3]) - int(fields[4])) / os.sysconf("SC_CLK_TCK")  # without idle, and waiting for a disk


def quietest(one: Callable[[int], dict[Side, float]], rounds: int, mine: Callable[[], float], patience: float) -> Counted:
    """The quietest `rounds` of as many calls of `one` as it takes for so many to be quiet.

    Args:
        one: a round, by its number: the seconds of each side.
        mine: seconds for which cores have worked for the benchmark itself.
        patience: seconds after which `rounds` rounds are enough, however loud.
    """
    found: list[tuple[float, dict[Side, float]]] = []
    until = time.monotonic() + patience
    while len(found) < rounds or (sum(others < QUIET for others, _ in found) < rounds and time.monotonic() < until):
        if found and found[-1][0] >= QUIET:
            time.sleep(min(REST, max(0.0, until - time.monotonic())))
        before, began = busy() - mine(), time.monotonic()
        seconds = one(len(found))
        found.append((max(0.0, busy() - mine() - before) / (time.monotonic() - began), seconds))
    kept = sorted(found, key=lambda f: f[0])[:rounds]
    return Counted({side: [seconds[side] for _, seconds in kept] for side in kept[0][1]}, kept[-1][0])
