"""Calls that a kernel's fastest variant does not take: which slower one ran, how often, and why."""

from __future__ import annotations

_counts: dict[tuple[str, str, str], int] = {}


def note(op: str, variant: str, why: str) -> None:
    """Count a call of `op` that goes to a slower variant. Called while a call is recorded, not when it is replayed."""
    key = (op, variant, why)
    _counts[key] = _counts.get(key, 0) + 1


def noted() -> dict[tuple[str, str, str], int]:
    """What has been noted since the process began: (op, variant, why) and the number of calls."""
    return dict(_counts)
