"""The table of mistakes as rows, and what one of them raises on a device."""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tritensor as tt
from tests.mistakes import drawing, loops, programs, sequences, tensors, transforms
from tritensor import nn
from tritensor.ground.thread_state import run_waiting

FILE = Path(__file__).with_name("messages.json")
DEVICES = ("cpu", "cuda")
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


class Mistake(NamedTuple):
    """One row: its family, the function that has to be named first, what has to be named after it, the code."""

    family: str
    function: str
    given: str
    code: str


def mistakes() -> Iterator[Mistake]:
    """All rows, in the order of the files."""
    for listed in (tensors, sequences, programs, transforms, drawing, loops):
        for family, lines in vars(listed).items():
            if family.isupper():
                for line in lines.strip().splitlines():
                    yield Mistake(family.lower(), *line.split(" | ", 2))


def names(device: str) -> dict[str, Any]:
    """What the code of a row may use: small tensors on the device, one elsewhere, one of complex numbers."""
    x = tt.arange(6.0, device=device).reshape(2, 3)
    elsewhere = "cuda" if device == "cpu" else "cpu"
    return {
        "tt": tt, "np": np, "nn": nn, "F": nn.functional, "device": device, "elsewhere": elsewhere,
        "x": x, "v": tt.arange(3.0, device=device), "s": tt.arange(9.0, device=device).reshape(3, 3), "n": tt.arange(6, device=device).reshape(2, 3),
        "i": tt.tensor([0, 1], device=device), "mask": x > 2, "w": tt.ones(2, 3, device=device, requires_grad=True),
        "z": tt.tensor([[1 + 2j] * 3] * 2), "there": x.to(elsewhere), "image": tt.ones(1, 3, 8, 8, device=device),
    }  # fmt: skip


def answer(mistake: Mistake, device: str) -> tuple[str, str]:
    """(class, message) of the error that the code raises; ("", "") where it raises none. A GPU's errors may come with the next wait for it."""
    given = names(device)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            code = mistake.code.replace("\\n", "\n")
            body = ast.parse(code, "mistake.py").body
            if len(body) == 1 and isinstance(body[0], ast.Expr):
                code = "result = (" + code + ")"
            exec(compile(code, "mistake.py", "exec"), given)
            run_waiting()  # where the whole suite is lazy: what nobody holds is not computed
            if device == "cuda":
                tt.cuda.synchronize()
    except Exception as error:
        said = error.args[0] if isinstance(error, KeyError) and error.args else error  # whose text is its argument's repr
        return type(error).__name__, ADDRESS.sub("0x", str(said))
    return "", ""


def answers(mistake: Mistake) -> dict[str, list[str]]:
    """The answer as the file keeps it: one for both devices where they differ in the device's name alone."""
    cpu, cuda = (list(answer(mistake, d)) for d in DEVICES)
    return {"cpu": cpu, "cuda": cuda} if cpu != cuda else {"both": cpu}


def read() -> dict[str, dict[str, dict[str, list[str]]]]:
    """The kept messages: family, code, device."""
    return json.loads(FILE.read_text()) if FILE.exists() else {}
