"""Extreme inputs, which samples rarely hold: NaN, infinities and large numbers, one at a time; a kernel treats them as the reference does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tritensor.ops.array import to_host
from tritensor.testing.lines.stores import stored_by
from tritensor.testing.questions.cases import Case, copy_inputs, is_floating, name_input, outputs
from tritensor.testing.questions.layouts import place
from tritensor.testing.questions.question import question

VALUES = (np.nan, np.inf, -np.inf, 1e4)  # the last squares within float32, and is one of float16
PLACES = 6  # elements of an input that are tried, evenly spaced: some of them masked, some in the last tile


@question
def extremes(case: Case) -> list[str]:
    """Where the reference is NaN the kernel is, where it is finite the kernel is; each complaint once for an input and a value."""
    op = case.op
    found: list[str] = []
    if op.forward is None or op.view or op.mutates:
        return found
    for i, x in enumerate(case.values):
        if not is_floating(x):
            continue
        for value in VALUES:
            found += next((wrong for at in _places(x) if (wrong := _ask_at(case, i, at, value))), [])
    return found


def _places(x: np.ndarray) -> Iterator[tuple[int, ...]]:
    for flat in np.unique(np.linspace(0, x.size - 1, PLACES).astype(int)) if x.size else ():
        yield tuple(int(k) for k in np.unravel_index(flat, x.shape))


def _ask_at(case: Case, i: int, at: tuple[int, ...], value: float) -> list[str]:
    op = case.op
    values = copy_inputs(case.values)
    values[i][at] = value  # one alone: two would hide one another
    want = outputs(op, op.cpu, tuple(copy_inputs(tuple(values))), case.attrs())
    given = [place(x, "plain", case.on).array if isinstance(x, np.ndarray) else x for x in values]
    got = outputs(op, op.forward, tuple(given), case.attrs())
    for name, g, w in zip(op.outputs[: op.public], got, want, strict=False):
        wrong = _find_mismatch(to_host(g), w) if is_floating(w) else None
        if wrong is not None:
            spot = list(wrong)
            have, expected = (float(a[wrong]) for a in (to_host(g), w))
            given_as = f"{name_input(op, i)}{list(at)} = {value:g}"
            return [f"{name}: with {given_as}, at {spot} got {have:g}, expected {expected:g}{stored_by(g, wrong)}"]
    return []


def _find_mismatch(got: Any, want: np.ndarray) -> tuple[int, ...] | None:
    """The first element that is a number on one side and no finite one on the other, or NaN on one side alone."""
    g, w = got.astype(np.float64), want.astype(np.float64)
    wrong = (np.isfinite(g) != np.isfinite(w)) | (np.isnan(g) != np.isnan(w))
    return tuple(int(k) for k in np.unravel_index(int(np.argmax(wrong)), wrong.shape)) if wrong.any() else None
