"""Records which in-place writes PyTorch takes between an expression and its backward: `python -m tests.expressions.writable [family ...]`."""

from __future__ import annotations

import json
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from tests.autograd.written import RIGHT, Call, Write, outcome, writes
from tests.expressions.answers import ERRORS, names
from tests.expressions.listed import FAMILIES
from tests.expressions.record import theirs

FOLDER = Path(__file__).with_name("recorded_writes")
KINDS = ("input", "output", "values")
Leaves = tuple[int, ...]


def call_of(library: Any, expression: str, on: str = "cpu") -> Call:
    """An expression as a call that is given the tensors that it names, in the order of the names."""
    word = set(re.findall(r"(?<![.\w'])[a-z]\b(?!=)", expression))

    def make(leaves: Leaves) -> tuple[Any, list[Any]]:
        space = names(library, on)
        given = [t for n, t in sorted(space.items()) if n in word and isinstance(t, library.Tensor)]
        for i, t in enumerate(given):
            t.requires_grad_(i in leaves)
        return eval(expression, space), given

    return Call(library, make)


def leaves_of(call: Call, expression: str, on: str = "cpu") -> list[Leaves]:
    """Which of an expression's tensors require grad: all that can, and each alone."""
    word = set(re.findall(r"(?<![.\w'])[a-z]\b(?!=)", expression))
    given = [t for n, t in sorted(names(call.library, on).items()) if n in word and isinstance(t, call.library.Tensor)]
    can = tuple(i for i, t in enumerate(given) if t.requires_grad)
    return [can, *([(i,) for i in can] if len(can) > 1 else [])] if can else []


def allowed(expression: str) -> dict[str, str]:
    """The writes that PyTorch's gradients stand, by what requires grad: {"0 1": "i0 o0 v0", ...}, inputs, outputs and values of outputs by their places."""
    import torch

    call, found = call_of(torch, expression), {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            for leaves in leaves_of(call, expression):
                stood = [w.what[0] + str(w.place) for w in writes(call, leaves) if _stands(call, leaves, w)]
                if stood:
                    found[" ".join(map(str, leaves))] = " ".join(stood)
        except ERRORS:  # an expression that PyTorch refuses
            return {}
    return found


def _stands(call: Call, leaves: Leaves, write: Write) -> bool:
    try:
        return outcome(call, leaves, [write]) == RIGHT
    except ERRORS:  # no gradient
        return False


def recorded(family: str) -> dict[str, dict[str, str]]:
    """What PyTorch answered for a family's expressions: those of which something may be written."""
    found: dict[str, dict[str, str]] = json.loads((FOLDER / f"{family}.json").read_text())
    return found


def writes_in(answer: str) -> list[Write]:
    """The writes of an answer, such as "i0 o0 v0"."""
    return [Write(next(k for k in KINDS if k[0] == w[0]), int(w[1:])) for w in answer.split()]


def main() -> None:
    for family in sys.argv[1:] or FAMILIES:
        answers = {e: a for e in FAMILIES[family] if (a := allowed(theirs(e)))}
        lines = [f"{json.dumps(e)}: {json.dumps(a)}" for e, a in answers.items()]
        (FOLDER / f"{family}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"{family}: {len(lines)} of {len(FAMILIES[family])} expressions")


if __name__ == "__main__":
    main()
