"""Slower variants that ran: an op that cannot take its fast kernel says here which other it took, and why."""

from __future__ import annotations

from collections import Counter

from tritensor.ground.process import locks

_seen: Counter[tuple[str, str, str]] = Counter()
_lock = locks.lock()


def note(op: str, variant: str, why: str) -> None:
    """Count a call of `op` that took a slower `variant` because of `why`, a fixed sentence: "the reason; how to mend it"."""
    with _lock:
        _seen[op, variant, why] += 1


def noted() -> list[tuple[tuple[str, str, str], int]]:
    """((op, variant, why), how often), the most frequent first."""
    with _lock:
        return _seen.most_common()


def forget() -> None:
    """Start to count anew."""
    with _lock:
        _seen.clear()
