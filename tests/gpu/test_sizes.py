"""Sizes that `bench gpu` times give numpy's numbers: every size of every op, in every type that is timed, before any clock runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tritensor.kernels  # noqa: F401  (fills the table)
from bench.gpu.rows import types_of
from bench.gpu.sizes import SIDE, shapes
from tests.gpu.scale import real, scaled
from tests.gpu.smoke import in_float64
from tritensor.ground.device import device
from tritensor.ops.table import Op, registry
from tritensor.testing.questions import conditioning
from tritensor.testing.questions.backward import backward_is_rule
from tritensor.testing.questions.cases import Case
from tritensor.testing.questions.forward import forward

pytestmark = pytest.mark.gpu
GPU = device("cuda", 0)
GRADIENTS = 1 << 24  # elements of all inputs up to which the rule, which runs op by op in float64, is asked as well


def timed() -> list[object]:
    return [pytest.param(op, dtype, id=f"{op.name}/{dtype}") for op in registry.values() for dtype in types_of(op)]


@pytest.mark.parametrize(("op", "dtype"), timed())
@pytest.mark.usefixtures("compiled")
def test_timed_sizes(op: Op, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditioning, "PROBES", 3)  # each is a call of the reference on the whole
    found = []
    for i, shape in enumerate(shapes(op, dtype, scaled(SIDE, 32))):
        if not real() and sum(getattr(x, "size", 0) for x in shape.sample.inputs) > 5000:
            continue
        case = Case(op, i, in_float64(shape.sample), dtype, "plain", GPU)
        found += forward(case)
        if _elements(case) <= GRADIENTS:
            found += backward_is_rule(case)
    assert not found, "\n".join(found[:20])


def _elements(case: Case) -> int:
    return sum(math.prod(x.shape) for x in case.values if isinstance(x, np.ndarray))
