"""Successive halving: all configs are timed briefly, the faster half again and longer, until two are left to be told apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

ROUNDS = (0.01, 0.03, 0.1)  # seconds that one config is timed for; the last is also the least that a result stands on


class Found(NamedTuple):
    """The winner, its time and the heuristic's in the last round (microseconds), how many configs were timed, and (config, why) of those that failed."""

    config: Any
    us: float
    heuristic_us: float
    timed: int
    failed: tuple[tuple[Any, str], ...]

    @property
    def gain(self) -> float:
        """The heuristic's time over the winner's: 1.1 is a tenth saved and more."""
        return self.heuristic_us / self.us if self.us else 1.0


def halve(
    heuristic: Any, others: Sequence[Any], measure: Callable[[Any, int, float], float | str], rounds: Sequence[float] = ROUNDS
) -> Found | str:
    """The fastest of the heuristic and others. `measure(config, round, seconds)` gives microseconds, or words where it failed.

    The heuristic is timed in every round, so that the gain compares two times of one round; of the others the faster half goes on (K. Jamieson
    and A. Talwalkar, "Non-stochastic best arm identification and hyperparameter optimization", 2016). Words where the heuristic itself failed.
    """
    left, failed = list(others), []
    timed, mine = len(others) + 1, 0.0
    scored: list[tuple[float, Any]] = []
    for number, seconds in enumerate(rounds):
        # anew each round: clocks and heat drift between rounds by more than configs differ
        at = measure(heuristic, number, seconds)
        if isinstance(at, str):
            return at
        mine, scored = at, []
        for config in left:
            us = measure(config, number, seconds)
            if isinstance(us, str):
                failed.append((config, us))
            else:
                scored.append((us, config))
        scored.sort(key=lambda pair: pair[0])
        # two at least, so that the last round is a choice
        left = [config for _, config in scored[: max(len(scored) // 2, 2)]]
    us, best = scored[0] if scored and scored[0][0] < mine else (mine, heuristic)
    return Found(best, us, mine, timed, tuple(failed))
