"""Of an op with several outputs a program may use one: the gradient of the others is None then, and as if it were zeros."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ops.array import to_host
from tritensor.testing.questions.backward import RuleAnswer, ask_rule, backward_inputs, call_backward, find_mismatch
from tritensor.testing.questions.cases import Case, is_floating, name_input
from tritensor.testing.questions.layouts import place
from tritensor.testing.questions.question import question


@question
def outputs_alone(case: Case) -> list[str]:
    """Given the gradient of one output alone, the rule, and on the device the backward kernel, returns what the rule makes of zeros for the others."""
    op = case.op
    if op.rule is None or op.public < 2 or not any(case.needs) or case.layout != "plain" or case.dtype != "float32":
        return []
    given, saved, g = backward_inputs(case)
    floats = [i for i, x in enumerate(g) if x is not None]  # an integer output never has a gradient
    if len(floats) < 2:
        return []
    corner = None if case.on.type == "cpu" else op.backward
    found = []
    for only in floats:
        alone = [x if i == only else None for i, x in enumerate(g)]
        zeros = [x if x is None or i == only else place(np.zeros(x.array.shape, x.array.dtype), "plain", case.on) for i, x in enumerate(g)]
        asked = ask_rule(case, given, saved, zeros, case.needs)
        name = f"with a gradient for {op.outputs[only]} alone, and None for the others: "
        try:
            got = call_backward(case, corner, given, saved, alone, case.needs)
        except Exception as error:
            found.append(f"{name}{type(error).__name__}: {error}")
            continue
        found += [name + line for line in _compare_gradients(case, got, asked)]
    return found


def _compare_gradients(case: Case, got: tuple[Any, ...], asked: RuleAnswer) -> list[str]:
    """The difference from the rule's gradients; None stands for zeros in both."""
    found = []
    for i, (have, want) in enumerate(zip(got, asked.want, strict=False)):
        x = case.values[i]
        if not case.needs[i] or not is_floating(x) or (have is None and (want is None or not want.any())):
            continue
        label = f"gradient of {name_input(case.op, i)}"
        if have is None:
            found.append(f"{label}: None, the rule gives an array")
            continue
        wrong = find_mismatch(case, to_host(have), np.zeros(x.shape) if want is None else want, i, asked)
        found += [f"{label}: {wrong}"] if wrong else []
    return found
