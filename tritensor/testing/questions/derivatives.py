"""Questions 3 and 5: a rule, and the rule differentiated, against central differences in float64."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor import dispatch
from tritensor.autograd.engine import grad
from tritensor.ground.device import cpu
from tritensor.tensor.core import Tensor
from tritensor.testing.questions import corners
from tritensor.testing.questions.cases import Case, copy_inputs, is_floating, name_input, outputs
from tritensor.testing.questions.question import make_rng, question, tensor
from tritensor.testing.questions.tolerance import DIFFERENCES


# 3
@question
def rule_is_derivative(case: Case) -> list[str]:
    """The rule, run by the engine in float64, is the derivative of the float64 reference along random directions."""
    op = case.op
    rng = make_rng(case, 3)
    y = case.truth[: op.public]
    if not derivable(case, y):
        return []
    weights = [rng.standard_normal(v.shape) if is_floating(v) else None for v in y]

    def weighted(values: list[np.ndarray]) -> float:
        out = outputs(op, op.reference, tuple(values), case.attrs(cpu))
        # One number: a direction costs four calls whatever the shape.
        return sum(float(np.sum(w * v)) for w, v in zip(weights, out, strict=False) if w is not None)

    _, gradients = _engine_gradients(case, weights, create=True)  # the rule itself, not its numpy twin
    found = []
    for i, g in enumerate(gradients):
        if not case.needs[i] or not corners.declared(op, i):
            continue
        found += _along(case, weighted, list(case.wide), i, None if g is None else g._array, rng, "gradient of")
    return found


def derivable(case: Case, y: tuple[np.ndarray, ...]) -> bool:
    """True where derivatives exist here: a float64 function of float64 inputs, at a smooth point, with elements."""
    floats = [v for v in y if is_floating(v)]
    if case.op.rule is None or not case.smooth or not any(case.needs) or not floats:
        return False
    return all(v.dtype == np.float64 for v in floats) and all(x.size for x in case.wide if isinstance(x, np.ndarray))


def _engine_gradients(case: Case, weights: list[np.ndarray | None], create: bool = False) -> tuple[list[Any], list[Any]]:
    """The op called on the one road and differentiated: (leaf tensors, gradient or None for each input)."""
    op = case.op
    leaves = [tensor(x, need) for x, need in zip(copy_inputs(case.wide), case.needs, strict=True)]
    out = dispatch.apply(op, *leaves, **case.attrs(cpu))
    outs = list(out) if isinstance(out, tuple) else [out]
    pairs = [(o, tensor(w, create)) for o, w in zip(outs, weights, strict=True) if w is not None]
    wanted = [t for t, need in zip(leaves, case.needs, strict=True) if need]
    got = iter(grad([o for o, _ in pairs], wanted, [w for _, w in pairs], create_graph=create, allow_unused=True))
    gradients = [next(got) if need else None for need in case.needs]
    return [*leaves, *[w for _, w in pairs]], gradients


STEP = 1e-4
STENCIL = ((1, 8 / 12), (-1, -8 / 12), (2, -1 / 12), (-2, 1 / 12))


def _along(
    case: Case, function: Any, values: list[Any], i: int, gradient: np.ndarray | None, rng: np.random.Generator, what: str
) -> list[str]:
    """Compare <gradient, v> with the central difference of `function` when input i moves along v, for a few v."""
    x = values[i]
    label = f"{what} {name_input(case.op, i) if i < len(case.values) else 'g'}"
    if gradient is not None and gradient.shape != x.shape:
        return [f"{label}: shape {gradient.shape}, expected {x.shape}"]
    slope = np.zeros(x.shape) if gradient is None else gradient
    for trial in range(4):
        # A small input moves in proportion to itself, so that 1/x and log x near 0 are resolved.
        v = np.asarray(rng.standard_normal(x.shape)) * np.clip(np.abs(x), 0.05, 1)
        if trial:  # fewer and fewer coordinates: an error in a small gradient is not drowned by large ones
            v = np.asarray(v * (rng.random(x.shape) < 0.5**trial))
        numeric = 0.0
        for steps, factor in STENCIL:
            moved = list(values)
            moved[i] = np.asarray(x + steps * STEP * v)
            numeric += factor * function(moved)
        numeric /= STEP
        exact = float(np.sum(slope * v))
        size = max(abs(numeric), float(np.sqrt(np.sum(np.square(slope * v)))), 1e-3)
        if not abs(numeric - exact) <= DIFFERENCES * size * (1 + abs(function(values)) * 1e-3):
            return [f"{label}: the rule says {exact:.9g} along a direction, differences say {numeric:.9g}"]
    return []


# 5
@question
def rule_differentiates(case: Case) -> list[str]:
    """The rule's own gradient, taken by the engine through a recorded backward, is the derivative of the first gradient."""
    op = case.op
    y = case.truth[: op.public]
    if not derivable(case, y):
        return []
    rng = make_rng(case, 5)
    weights = [rng.standard_normal(v.shape) if is_floating(v) else None for v in y]
    leaves, first = _engine_gradients(case, weights, create=True)
    mixes = [None if f is None else rng.standard_normal(f.shape) for f in first]
    values = [*case.wide, *[w for w in weights if w is not None]]

    def mixed(moved: list[Any]) -> float:
        again = Case.__new__(Case)  # inputs moved, without casting and placing them again
        again.__dict__.update(case.__dict__, wide=tuple(moved[: len(case.wide)]))
        left = iter(moved[len(case.wide) :])
        _, found = _engine_gradients(again, [None if w is None else next(left) for w in weights], create=False)
        return sum(float(np.sum(m * f._array)) for m, f in zip(mixes, found, strict=True) if m is not None and f is not None)

    roots = [(f, tensor(m)) for f, m in zip(first, mixes, strict=True) if f is not None]
    targets = [
        i for i, t in enumerate(leaves) if isinstance(t, Tensor) and t.requires_grad and (i >= len(case.wide) or corners.declared(op, i))
    ]
    recorded = [(f, m) for f, m in roots if f.requires_grad]  # a gradient that is constant has a second of zeros
    second: tuple[Any, ...] = (None,) * len(targets)
    if recorded:
        second = grad([f for f, _ in recorded], [leaves[i] for i in targets], [m for _, m in recorded], allow_unused=True)
    found = []
    for i, s in zip(targets, second, strict=True):
        found += _along(case, mixed, values, i, None if s is None else s._array, rng, "second derivative by")
    return found
