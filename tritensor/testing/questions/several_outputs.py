"""Of an op with several outputs a program may use one: the gradient of the others is None then, and as if it were zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad
from tritensor.ops.array import to_host
from tritensor.testing.questions import corners
from tritensor.testing.questions.backward import Asked, asked_of_rule, backward_inputs, unlike
from tritensor.testing.questions.cases import Case, is_floating, poisoned_empty
from tritensor.testing.questions.layouts import Placed, place
from tritensor.testing.questions.question import question, tensor


@question
def outputs_alone(case: Case) -> list[str]:
    """Given the gradient of one output alone, the rule, and on the device the backward kernel, returns what the rule makes of zeros for the others."""
    op = case.op
    if op.rule is None or op.public < 2 or not any(case.needs) or case.layout != "plain" or case.dtype != "float32":
        return []
    given, saved, g = backward_inputs(case)
    floats = [i for i, x in enumerate(g) if x is not None]
    if len(floats) < 2:
        return []
    corner = None if case.on.type == "cpu" else op.backward
    found = []
    for only in floats:
        alone = [x if i == only else None for i, x in enumerate(g)]
        zeros = [x if x is None or i == only else place(np.zeros(x.array.shape, x.array.dtype), "plain", case.on) for i, x in enumerate(g)]
        asked = asked_of_rule(case, given, saved, zeros, case.needs)
        name = f"with a gradient for {op.outputs[only]} alone, and None for the others: "
        try:
            got = _called(case, corner, given, saved, alone)
        except Exception as error:
            found.append(f"{name}{type(error).__name__}: {error}")
            continue
        found += [name + line for line in _compared(case, got, asked)]
    return found


def _called(case: Case, corner: Any, given: list[Any], saved: list[Any], g: list[Any]) -> tuple[Any, ...]:
    """The gradients that a backward corner, or the rule where there is none, gives."""
    arriving, inputs, made = (tuple(p.array if isinstance(p, Placed) else p for p in ps) for ps in (g, given, saved))
    if corner is None:
        arriving, inputs, made = (tuple(tensor(x) for x in xs) for xs in (arriving, inputs, made))
    with poisoned_empty(), no_grad():
        function: Any = corner or case.op.rule
        found = corners.call(case.op, function, arriving, inputs, made, case.attrs(), case.needs)
    return tuple(getattr(x, "array", x) for x in found)


def _compared(case: Case, got: tuple[Any, ...], asked: Asked) -> list[str]:
    """The difference from the rule's gradients; None stands for zeros in both."""
    found = []
    for i, (have, want) in enumerate(zip(got, asked.want, strict=False)):
        x = case.values[i]
        if not case.needs[i] or not is_floating(x) or (have is None and (want is None or not want.any())):
            continue
        label = f"gradient of {case.op.inputs[min(i, len(case.op.inputs) - 1)]}"
        if have is None:
            found.append(f"{label}: None, the rule gives an array")
            continue
        wrong = unlike(case, to_host(have), np.zeros(x.shape) if want is None else want, i, asked)
        found += [f"{label}: {wrong}"] if wrong else []
    return found
