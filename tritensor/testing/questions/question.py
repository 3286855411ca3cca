"""How a question is asked: what it finds carries the case's name, an exception is a finding, random draws repeat."""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.array import CudaArray
from tritensor.tensor.core import Tensor
from tritensor.testing.questions.cases import Case

Question = Callable[[Case], list[str]]


def question(ask: Callable[[Case], list[str]]) -> Question:
    """Prefix findings with the case and the question; an exception is a finding too."""

    @functools.wraps(ask)
    def asked(case: Case) -> list[str]:
        try:
            with np.errstate(all="ignore"):
                found = ask(case)
        except Exception as e:
            at = [f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno}" for f in traceback.extract_tb(e.__traceback__)[-3:]]
            found = [f"{type(e).__name__}: {e} (at {' < '.join(reversed(at))})"]
        return [f"{case!r}: {ask.__name__}: {line}" for line in found]

    return asked


def seeded(case: Case, salt: int = 0) -> np.random.Generator:
    return np.random.default_rng((case.index, salt))


def tensor(x: Any, requires_grad: bool = False) -> Any:
    if not isinstance(x, np.ndarray | CudaArray):
        return x
    t = Tensor.wrap(x)
    if requires_grad:
        t.requires_grad_(True)
    return t
