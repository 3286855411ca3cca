"""Conditioning: how large the rounding errors of one call may be, element by element, from what the op does to its inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tritensor.ground.device import cpu
from tritensor.testing.questions.cases import Case, copy_inputs, is_floating, outputs
from tritensor.testing.questions.tolerance import MEASURED, PROMISED, unit

STEP = 2.0**-20  # relative change of the inputs: small beside what curves, large beside float64's rounding
PROBES = 6
NOISE = 2.0**-46  # what float64 itself leaves of a difference that cancels, relative to the array's largest element

Scale = tuple["np.ndarray | None", ...]


def outputs_allowed(case: Case) -> Scale:
    """For every output, how far each element may be off beside its own relative tolerance; None where nothing is added."""
    said: Any = case.op.condition[0]
    if said == "element":
        return (None,) * len(case.truth)
    if said == "measured":

        def run(values: list[Any]) -> tuple[Any, ...]:
            return outputs(case.op, case.op.reference, tuple(copy_inputs(tuple(values))), case.attrs(cpu))

        return measure_noise(run, list(case.wide), [MEASURED * max(unit(e.dtype), _kept(case)) for e in case.expected])
    function, values = (case.op.reference, absolute(case.wide)) if said == "absolute" else (said, copy_inputs(case.wide))
    found, kept = outputs(case.op, function, tuple(values), case.attrs(cpu)), _kept(case)
    return tuple(PROMISED * max(unit(e.dtype), kept) * f if is_floating(f) else None for f, e in zip(found, case.expected, strict=True))


def gradients_allowed(case: Case, rule: Callable[[list[Any]], tuple[Any, ...]], values: list[Any]) -> Scale:
    """The same for gradients: `rule` makes them from `values`, the inputs, saved outputs and arriving gradients in float64."""
    kept = _kept(case)
    units = [max(unit(x.dtype), kept) if isinstance(x, np.ndarray) else 0.0 for x in case.values]
    said: Any = case.op.condition[1]
    if said == "element":
        return (None,) * len(units)
    if said == "measured":
        return measure_noise(rule, values, [MEASURED * u for u in units])
    if said == "absolute":
        scales = rule(absolute(tuple(values)))
    else:
        given, arriving = values[: len(case.values)], values[-case.op.public :]
        scales = said(arriving if case.op.public > 1 else arriving[0], tuple(given), case.attrs(cpu))
    return tuple(None if s is None else PROMISED * u * s for s, u in zip(scales, units, strict=False))


def _kept(case: Case) -> float:
    """The unit of what an op rounds on its way to the type in memory, where it says that it does; 0 where it keeps all in what it computes in."""
    if "stored" not in case.op.condition[2:]:
        return 0.0
    given = [x for x in case.values if isinstance(x, np.ndarray)]  # results may be wider: a loss in float32 of 16-bit inputs
    return max([float(ml_dtypes.finfo(e.dtype).eps) for e in (*case.expected, *given) if is_floating(e)], default=0.0)


def absolute(values: tuple[Any, ...]) -> list[Any]:
    """Floats without their sign: of sums of products, the sum of what is rounded."""
    return [np.asarray(np.abs(x)) if isinstance(x, np.ndarray) and is_floating(x) else x for x in copy_inputs(values)]


def measure_noise(run: Callable[[list[Any]], tuple[Any, ...]], values: list[Any], units: list[float]) -> Scale:
    """How far results move when every input element moves by `units` (one for each result) relative to itself, either way, independently.

    To first order that is the root of the sum of squares of dy/dx * x over all inputs; to second, where the first vanishes (the
    variance of equal numbers), the curvature. Both are estimated from a few draws. An element that jumps (another maximum is
    found) does not move less when the inputs do: it says nothing about roundings, and counts as 0.
    """
    rng = np.random.default_rng(7)  # the same bound at every run: a failure repeats
    with np.errstate(all="ignore"):
        here = [x if x is not None and is_floating(x) else None for x in run(list(values))]
        total = [None if x is None else np.zeros(x.shape) for x in here]
        for _ in range(PROBES):
            signs = [rng.integers(0, 2, x.shape) * 2 - 1 if isinstance(x, np.ndarray) and is_floating(x) else None for x in values]
            moved = [_perturb(values, signs, by * STEP) for by in (1, -1, 0.5, -0.5)]
            for y, u, draws, *near in zip(here, units, total, *map(run, moved), strict=False):
                if y is None or draws is None:
                    continue
                up, down, half_up, half_down = (n - y for n in near)
                smooth = (np.abs(up) >= 1.5 * np.abs(half_up)) & (np.abs(down) >= 1.5 * np.abs(half_down))
                by = u / STEP
                found = by * np.abs(up - down) / 2 + by * by * np.abs(up + down)
                draws += np.where(smooth & np.isfinite(found), found * found, 0)
        return tuple(None if t is None else np.sqrt(t / PROBES) + _noise(y) for t, y in zip(total, here, strict=True))


def _noise(y: Any) -> float:
    finite = np.abs(y[np.isfinite(y)])
    return NOISE * float(finite.max()) if finite.size else 0.0


def _perturb(values: list[Any], signs: list[Any], by: float) -> list[Any]:
    return [x if s is None else np.asarray(x * (1 + by * s)) for x, s in zip(values, signs, strict=True)]
