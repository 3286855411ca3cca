"""Question 4: the backward kernel against the rule; and the road that joins all corners, asked as users ask it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tritensor import dispatch
from tritensor.autograd.engine import grad
from tritensor.autograd.modes import no_grad
from tritensor.ground import dtypes
from tritensor.ground.device import cpu
from tritensor.ops.array import CudaArray, device_of, same_memory, to_host
from tritensor.ops.table import ops, registry
from tritensor.testing.lines.stores import stored_by
from tritensor.testing.questions import corners
from tritensor.testing.questions.cases import Case, is_floating, name_input, poisoned_empty
from tritensor.testing.questions.conditioning import gradients_allowed
from tritensor.testing.questions.forward import arrays, compare, untouched
from tritensor.testing.questions.layouts import Placed, place
from tritensor.testing.questions.question import make_rng, question, tensor
from tritensor.testing.questions.tolerance import GRADIENT, TABLE, Mismatch, mismatch, tolerance, wide

WHOLE = 2  # samples of which kernels are asked for each input's gradient alone; of a later one for another input's with each


# 4, and on the CPU the second half of 6
@question
def backward_is_rule(case: Case) -> list[str]:
    """The backward kernel (on the CPU: cpu_backward, question 6) returns what the rule does, given the same saved values."""
    op = case.op
    if op.rule is None or not any(case.needs) or not any(is_floating(e) for e in case.expected[: op.public]):
        return []
    corner = op.cpu_backward if case.on.type == "cpu" else op.backward
    if corner is None and (case.on.type == "cpu" or not (op.view or op.host)):
        return []  # on the CPU the rule itself runs; of an op without a kernel it runs on the device
    given, saved, g = backward_inputs(case)
    wants = [case.needs]
    if sum(case.needs) > 1 and case.layout == "plain":
        alone = [tuple(k == i for k in range(len(case.needs))) for i, n in enumerate(case.needs) if n]
        one = case.index % len(alone)  # over the samples each input has its turn
        wants += alone if case.on.type == "cpu" or case.index < WHOLE else alone[one : one + 1]
    found = []
    for needs in wants:
        found += _ask_backward(case, corner, given, saved, g, needs, ask_rule(case, given, saved, g, needs))
    return found


def backward_inputs(case: Case) -> tuple[list[Any], list[Any], list[Any]]:
    """Placed inputs, outputs as they were saved (rounded to the type under test), and incoming gradients in the case's layout."""
    op = case.op
    rng = make_rng(case, 4)
    given = case.placed()
    host = case.truth
    saved = [place(t.astype(e.dtype), "plain", case.on) for t, e in zip(host, case.expected, strict=True)]
    if op.residuals:  # only the forward kernel itself knows how it left them, beside which of its roundings of the outputs
        saved[: len(case.made)] = case.made
    layout = case.layout if case.layout in ("plain", "transposed", "sliced", "reversed", "broadcast") else "plain"
    g = [
        place(rng.standard_normal(e.shape).astype(e.dtype), layout, case.on) if is_floating(e) else None for e in case.expected[: op.public]
    ]
    return given, saved, g


class RuleAnswer(NamedTuple):
    """A gradient asked of the rule: the values it is given, on the host in float64, and how it is run."""

    values: list[Any]  # inputs, saved outputs, arriving gradients
    run: Callable[[list[Any]], tuple[np.ndarray | None, ...]]

    @property
    def want(self) -> tuple[np.ndarray | None, ...]:
        return self.run(self.values)


def ask_rule(case: Case, given: list[Any], saved: list[Any], g: list[Any], needs: tuple[bool, ...]) -> RuleAnswer:
    """The rule in float64 on the CPU, and exactly the values that the backward is given."""
    op = case.op
    first, second = len(given), len(given) + len(saved)

    def lift(p: Any) -> Any:
        if not isinstance(p, Placed):
            return p
        host = to_host(p.array)
        return (wide(host) if is_floating(host) else host).copy()  # a rule may write to what it is given

    rule: Any = op.rule

    def run(values: list[Any]) -> tuple[np.ndarray | None, ...]:
        tensors = tuple(tensor(x) for x in values)
        gradient = tensors[second:]
        with no_grad():
            found = corners.call(
                op, rule, gradient if op.public > 1 else gradient[0], tensors[:first], tensors[first:second], case.attrs(cpu), needs
            )  # fmt: skip
        return tuple(None if x is None else np.asarray(x._array) for x in found)

    return RuleAnswer([lift(p) for p in (*given, *saved, *g)], run)


def _ask_backward(
    case: Case, corner: Any, given: list[Any], saved: list[Any], g: list[Any], needs: tuple[bool, ...], asked: RuleAnswer
) -> list[str]:
    op, want = case.op, asked.want
    got = call_backward(case, corner, given, saved, g, needs)
    if len(got) != len(want) or len(got) != len(given):
        ours, theirs = ("the rule" if corner is None else "the backward"), "the rule"
        return [
            f"{ours} gives {len(got)} gradients, {theirs} {len(want)}, for {len(given)} inputs; give one for each, None where there is none"
        ]
    found = []
    for i, (have, expected) in enumerate(zip(got, want, strict=True)):
        if not needs[i]:
            continue
        name = name_input(op, i) + (f"[{i}]" if op.variadic else "")
        if have is None or expected is None:
            if (have is None) != (expected is None):
                found.append(
                    f"gradient of {name}: {'None' if have is None else 'an array'}, the rule gives {'None' if expected is None else 'an array'}"
                )
            continue
        found += _one_gradient(case, name, have, expected, i, given + saved, asked)
    names = (*(name_input(op, i) for i in range(len(given))), *op.outputs, *["g"] * len(g))
    for i, p in enumerate([*given, *saved, *g]):
        found += [f"backward: {line}" for line in untouched([p], (names[i],))]
    return found


def call_backward(case: Case, corner: Any, given: list[Any], saved: list[Any], g: list[Any], needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """The gradients that a backward corner, or the rule where there is none, gives."""
    gradient, inputs, made = (arrays(ps) for ps in (g, given, saved))
    if corner is None:
        gradient, inputs, made = (tuple(tensor(x) for x in xs) for xs in (gradient, inputs, made))
    with poisoned_empty(), no_grad():
        function: Any = corner or case.op.rule
        got = corners.call(case.op, function, gradient if case.op.public > 1 else gradient[0], inputs, made, case.attrs(), needs)
    return tuple(getattr(x, "_array", x) for x in got)


def _one_gradient(case: Case, name: str, have: Any, expected: np.ndarray, i: int, kept: list[Any], asked: RuleAnswer) -> list[str]:
    """Findings on one gradient: device, type, shape, memory of its own, values."""
    found, x = [], case.values[i]
    if device_of(have) != case.on:
        found.append(f"gradient of {name} is on {device_of(have)}")
    if np.dtype(have.dtype) != x.dtype:
        found.append(f"gradient of {name} has dtype {have.dtype}, the input {x.dtype}")
    for p in kept:
        if isinstance(p, Placed) and isinstance(have, np.ndarray | CudaArray) and have.size and same_memory(have, p.base):
            found.append(f"gradient of {name} shares memory with a saved array")
    if tuple(have.shape) != x.shape and not case.op.broadcasts:
        return [*found, f"gradient of {name} has shape {tuple(have.shape)}, the input {x.shape}"]
    wrong = find_mismatch(case, to_host(have), expected, i, asked)
    return [*found, f"gradient of {name}: {wrong}{_name_author(case, have, wrong)}"] if wrong else found


def _name_author(case: Case, have: Any, wrong: Mismatch) -> str:
    """Who stored the element that is shown; of a gradient that was summed to the input's shape, the first that went into the sum."""
    if wrong.at is None or case.op.host is not None or len(have.shape) < len(wrong.at):
        return ""
    return stored_by(have, (0,) * (len(have.shape) - len(wrong.at)) + wrong.at)


def find_mismatch(case: Case, have: np.ndarray, expected: np.ndarray, i: int, asked: RuleAnswer) -> Mismatch | None:
    """The difference between a gradient and the rule's. One that is summed to the input's shape already adds the roundings of that sum."""
    x = case.values[i]
    relative = GRADIENT * max(tolerance(case.op, x.dtype), TABLE.get(dtypes.of(x.dtype).name, 0.0))
    summed = have.shape != expected.shape
    if summed:
        have = corners.sum_to_shape(wide(have), x.shape)  # as the engine will: the kernel leaves it undone

    def extra() -> np.ndarray | None:
        added = gradients_allowed(case, asked.run, asked.values)[i]
        if added is None or not summed:
            return added
        return corners.sum_to_shape(added, x.shape) + relative * corners.sum_to_shape(np.abs(expected), x.shape)

    want = corners.sum_to_shape(expected, x.shape) if summed else expected
    return mismatch(have.astype(x.dtype), want, relative, dtype=False, extra=extra)


# and the road that joins them
@question
def user_calls(case: Case) -> list[str]:
    """Called as users call it, on the device, and differentiated by the engine: with the backward kernel, and op by op."""
    op = case.op
    if case.layout != "plain" or case.dtype != "float32" or op.mutates:
        return []
    given, saved, g = backward_inputs(case)
    call = getattr(ops, op.name) if registry.get(op.name) is op else functools.partial(dispatch.apply, op)
    # Not the samples' own: a kernel that saves a view of them shows.
    leaves = [tensor(x, need) for x, need in zip(arrays(given), case.needs, strict=True)]
    out = call(*leaves, **case.attrs())
    outs = out if isinstance(out, tuple) else (out,)
    found = compare(case, tuple(o._array for o in outs), case.expected[: op.public], op.outputs, exact_types=True)
    # Each output is used twice, so that its gradient is a sum: of 0-d arrays numpy makes scalars, which a corner must not meet.
    half = [None if p is None else place(to_host(p.array) / 2, "plain", case.on).array for p in g]
    pairs = [(o, tensor(h)) for o, h in zip(outs, half, strict=True) if h is not None for _ in range(2)]
    if op.rule is None or not any(case.needs) or not pairs:
        return found
    asked = ask_rule(case, given, saved, g, case.needs)
    want = asked.want
    wanted = [i for i, need in enumerate(case.needs) if need]
    for create in (False, True):
        label = "create_graph=True, gradient of" if create else "gradient of"
        got = grad(
            [o for o, _ in pairs],
            [leaves[i] for i in wanted],
            [w for _, w in pairs],
            retain_graph=True,  # the second turn walks it again
            create_graph=create,
            allow_unused=True,
        )
        for i, x in zip(wanted, got, strict=True):
            expected = want[i]
            if expected is not None and x is not None:
                wrong = find_mismatch(case, to_host(x._array), expected, i, asked)
                found += [f"{label} {name_input(op, i)}: {wrong}{_name_author(case, x._array, wrong)}"] if wrong else []
            elif expected is not None and expected.any():
                found.append(f"{label} {name_input(op, i)}: None, the rule gives an array")
    return found
