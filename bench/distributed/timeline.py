"""The buckets of one backward as bars of text: when each is ready, when averaged, and how much of that backward hides."""

from __future__ import annotations

from collections.abc import Sequence

Buckets = Sequence[tuple[int, int, float, float]]  # of each: number, bytes, seconds from the first gradient until it is ready, and averaged


def hidden(buckets: Buckets) -> tuple[float, float]:
    """(seconds in which a bucket was averaged while backward went on, seconds in which one was averaged)."""
    end = max(ready for _, _, ready, _ in buckets)
    return sum(min(averaged, end) - ready for _, _, ready, averaged in buckets), sum(averaged - ready for _, _, ready, averaged in buckets)


def bars(buckets: Buckets, width: int = 60) -> list[str]:
    """A line for each bucket: `.` its gradients are computed, `=` they are averaged while backward goes on, `#` while backward waits."""
    end = max(ready for _, _, ready, _ in buckets)
    scale = width / max(averaged for _, _, _, averaged in buckets)
    lines = []
    for number, nbytes, ready, averaged in buckets:
        computed, beside, done = (round(scale * seconds) for seconds in (ready, min(averaged, end), averaged))
        bar = "." * computed + "=" * (beside - computed) + "#" * (done - beside)
        lines.append(
            f"bucket {number} {nbytes / 2**20:6.2f} MiB  {bar:<{width}}  ready {1e3 * ready:6.2f}, averaged {1e3 * averaged:6.2f} ms"
        )
    return lines
