"""Sequences that together reach every path of the recurrent ops, and ones worth timing."""

from __future__ import annotations

Lengths = list[tuple[tuple[int, ...], int, bool]]


def lengths() -> Lengths:
    """(batch sizes, elements of the state, backwards in time): equal and falling lengths."""
    return [
        ((2, 2), 3, False),
        ((3, 2, 1), 2, False),
        ((3, 2, 2), 2, True),
        ((1,), 1, False),
    ]


def sizes_for_timing() -> list[tuple[int, int, int]]:
    """(time steps, batch, elements of the state)."""
    return [(32, 32, 256), (128, 64, 1024)]
