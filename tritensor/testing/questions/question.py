"""Questions, and the way one is put to a case: what it finds carries the case's name, an exception is a finding, random draws repeat."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tritensor.cuda.emulator import last_writer
from tritensor.cuda.emulator.source_lines import TRITON
from tritensor.cuda.runtime import active
from tritensor.ops.array import CudaArray
from tritensor.tensor.core import Tensor
from tritensor.testing.lines import authors
from tritensor.testing.questions.cases import Case

_PACKAGE = Path(__file__).resolve().parents[2]
# What runs between a call and what its author wrote, as paths begin.
_MACHINERY = (TRITON, *(str(_PACKAGE / room) for room in ("cuda", "ops", "dispatch", "tensor", "testing")))
SHOWN = 3  # of the functions that a finding concerns


class Finding(str):
    """One thing that is wrong: "softmax/3/float32/plain/cuda: forward: y: ...", and its parts."""

    op: str
    case: str
    question: str
    said: str

    def __new__(cls, op: str, case: str, question: str, said: str) -> Finding:
        found = super().__new__(cls, f"{case}: {question}: {said}")  # a str: reports print it, and pytest shows it, as it is
        found.op, found.case, found.question, found.said = op, case, question, said
        return found


Question = Callable[[Case], list[Finding]]


def question(ask: Callable[[Case], list[str]]) -> Question:
    """Prefix findings with the case and the question; an exception is a finding too.

    Where there is one on the emulated device the question is put again while every store is recorded, so that it names the line of the kernel.
    """

    @functools.wraps(ask)
    def asked(case: Case) -> list[Finding]:
        found = answers(functools.partial(ask, case))
        if found and case.on.type == "cuda" and active.emulated():
            with last_writer.recorded():
                found = answers(functools.partial(ask, case)) or found  # or: what comes and goes is told as it came
        name = ask.__name__
        return [Finding(case.op.name, repr(case), name, line + _append_place(case, name, line)) for line in found]

    return asked


def _append_place(case: Case, question: str, line: str) -> str:
    """The author's functions that a finding concerns, where it shows no line of their file: a shared kernel stores what their formula gives it."""
    if question == "user_calls" and "gradient of" in line:  # that question runs forward and gradient
        question = "rule_is_derivative" if line.startswith("create_graph") else "backward_is_rule"
    functions = authors.find_concerned(case.op, question, case.on.type == "cuda")
    if not functions or any(f"{Path(f.__code__.co_filename).name}:" in line for f in functions):
        return ""
    told = dict.fromkeys(f"{f.__name__} in {authors.place(f)}" for f in functions)  # one formula may serve several inputs
    return "; see " + ", ".join(list(told)[:SHOWN])


def answers(ask: Callable[[], list[str]]) -> list[str]:
    """What a question finds; the exception that it ends in, told in a line."""
    try:
        with np.errstate(all="ignore"):
            return ask()
    except Exception as e:
        frames = [f for f in traceback.extract_tb(e.__traceback__)[1:] if not f.filename.startswith(_MACHINERY)][-3:]
        at = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))
        return [f"{type(e).__name__}: {e}" + f" (at {at})" * bool(at)]


def make_rng(case: Case, salt: int = 0) -> np.random.Generator:
    """Random numbers, the same whenever this case is asked."""
    return np.random.default_rng((case.index, salt))


def tensor(x: Any, requires_grad: bool = False) -> Any:
    """An array as a tensor; anything else as it is."""
    if not isinstance(x, np.ndarray | CudaArray):
        return x
    t = Tensor.wrap(x)
    if requires_grad:
        t.requires_grad_(True)
    return t
