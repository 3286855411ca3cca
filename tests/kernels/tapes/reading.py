"""An op whose corners on the CPU are the oracle's reading of its captured steps, to be asked what every op is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground.device import gpu
from tritensor.kernels.parts.tapes.capture import capture, dry, forward_of
from tritensor.kernels.parts.tapes.oracle import run_steps
from tritensor.ops.array import element_strides
from tritensor.ops.table import Op
from tritensor.testing.questions.backward import backward_is_rule
from tritensor.testing.questions.cases import Case
from tritensor.testing.questions.forward import cpu_is_reference


def dried(x: Any) -> Any:
    """An argument with an array without memory for every array, of the same layout."""
    if isinstance(x, np.ndarray):
        return dry(x.shape, x.dtype, element_strides(x))
    return tuple([dried(v) for v in x]) if isinstance(x, tuple) else x


class Reading:
    """A corner's steps, captured at each call and read in numpy; `opaque` counts the calls that have none."""

    def __init__(self, corner: Callable[..., Any]) -> None:
        self.corner = corner
        self.opaque = 0

    def __call__(self, *args: Any, **attrs: Any) -> Any:
        if "device" in attrs:
            attrs["device"] = gpu(0)
        captured = capture(self.corner, tuple([dried(a) for a in args]), attrs)
        if captured is None:
            self.opaque += 1
            raise NotImplementedError(f"{self.corner} is not made of steps")
        return run_steps(captured, args)


def read(op: Op) -> tuple[Op, list[Reading]]:
    """The op with such corners, and these."""
    forward = Reading(forward_of(op))  # type: ignore[arg-type]
    functions = () if op.backward is None else tuple([None if f is None else Reading(f) for f in op.backward.functions])
    backward = None if op.backward is None else op.backward._replace(functions=functions)
    made = dataclasses.replace(op, cpu=forward, cpu_backward=backward, into=False)
    return made, [forward, *[f for f in functions if f is not None]]


def ask(case: Case) -> tuple[list[str], int]:
    """What a case of an op that `read` made answers wrongly, and how many of its corners were asked: those that are made of steps."""
    op, found, asked = case.op, [], 0
    questions = [cpu_is_reference] if op.cpu_backward is None else [cpu_is_reference, backward_is_rule]
    for question in questions:
        readings = [op.cpu] if question is cpu_is_reference else [f for f in op.cpu_backward.functions if f is not None]  # type: ignore[union-attr]
        before = sum(r.opaque for r in readings) + op.cpu.opaque  # type: ignore[attr-defined]
        said = question(case)
        if sum(r.opaque for r in readings) + op.cpu.opaque == before:  # type: ignore[attr-defined]
            found += said
            asked += 1
    return found, asked
