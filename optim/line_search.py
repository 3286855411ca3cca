"""A line search to the strong Wolfe conditions, and the minimum of a cubic (Nocedal and Wright, Numerical Optimization, algorithms 3.5 and 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

DECREASE, CURVATURE = 1e-4, 0.9  # c1 and c2 of the conditions
FARTHEST = 10.0  # how many times as far an unsuccessful step may be followed


class Point(NamedTuple):
    """A step t along the direction: the loss there, the gradient, and its component along the direction (a tensor without dimensions)."""

    t: Any
    loss: float
    gradient: Any
    slope: Any


def cubic_minimum(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Where the cubic through both points, with their slopes, is least; within the bounds (else between the points). Their middle where
    there is no minimum (equation 3.59)."""
    low, high = bounds or ((a.t, b.t) if a.t <= b.t else (b.t, a.t))
    d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.t - b.t)
    square = d1**2 - a.slope * b.slope
    # also for NaN, which no comparison holds of: the cubic has no minimum there, the middle is as good a guess as any
    if not square >= 0:
        return (low + high) / 2.0
    d2 = square.sqrt()
    if a.t <= b.t:
        at = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    else:
        at = a.t - (a.t - b.t) * ((a.slope + d2 - d1) / (a.slope - b.slope + 2 * d2))
    return min(max(at, low), high)


def strong_wolfe(
    evaluate: Callable[[Any], Point], start: Point, t: Any, longest: Any, most: int, tolerance_change: float = 1e-9
) -> tuple[Point, int]:  # fmt: skip
    """A step that fulfils the conditions, or the best of `most` tries, and how often the loss was evaluated.

    evaluate(t) gives the point at t, start is that at 0, longest the largest component of the direction.
    """
    before, new = start, evaluate(t)
    tries, bracket, done = 0, [start, new], False
    while tries < most:
        high = _breaks_armijo(new, start) or (tries > 1 and new.loss >= before.loss)
        done = not high and _is_flat(new, start)
        if done or high or new.slope >= 0:
            bracket = [before, new]
            break
        at = cubic_minimum(before, new, (new.t + 0.01 * (new.t - before.t), new.t * FARTHEST))
        before, new = new, evaluate(at)
        tries += 1
    else:
        bracket = [start, new]
    best, zooms = (new, 0) if done else _zoom(evaluate, start, bracket, longest, most - tries, tolerance_change)
    return best, 1 + tries + zooms


def _breaks_armijo(point: Point, start: Point) -> bool:
    """Whether the loss did not decrease as much as its slope promised (Armijo's condition)."""
    return bool(point.loss > start.loss + DECREASE * point.t * start.slope)


def _is_flat(point: Point, start: Point) -> bool:
    return bool(abs(point.slope) <= -CURVATURE * start.slope)


def _zoom(
    evaluate: Callable[[Any], Point], start: Point, bracket: list[Point], longest: Any, most: int, tolerance_change: float
) -> tuple[Point, int]:
    """The lower end of a bracket that is made smaller until it fulfils the conditions, and the evaluations that took."""
    low, high = (bracket[0], bracket[1]) if bracket[0].loss <= bracket[1].loss else (bracket[1], bracket[0])
    first = low is bracket[0]  # which of the two stands first, which cubic_minimum's rounding can tell
    stuck, tries = False, 0
    while tries < most:
        ends = (low, high) if first else (high, low)
        # the parameters would not change by more than the tolerance any more
        if abs(ends[1].t - ends[0].t) * longest < tolerance_change:
            break
        t = cubic_minimum(*ends)
        least, largest = min(low.t, high.t), max(low.t, high.t)
        margin = 0.1 * (largest - least)
        near = min(largest - t, t - least) < margin
        if near and (stuck or t >= largest or t <= least):  # too little progress at an end: a tenth of the bracket away from it
            t = largest - margin if abs(t - largest) < abs(t - least) else least + margin
            near = False
        stuck = near
        new = evaluate(t)
        tries += 1
        if _breaks_armijo(new, start) or new.loss >= low.loss:
            high = new
            turned = low.loss > high.loss or (low.loss == high.loss and not first)
            if turned:
                low, high, first = high, low, not first
            continue
        done = _is_flat(new, start)
        if not done and new.slope * (high.t - low.t) >= 0:
            high = low
        low = new
        if done:
            break
    return low, tries
