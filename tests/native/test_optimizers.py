"""A step of an optimizer in one pass of machine code: bit for bit the step that numpy takes in blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tritensor.kernels.optimizers.steps import adam_reference, sgd_reference
from tritensor.native import compiler
from tritensor.native.loops import MANY

pytestmark = pytest.mark.skipif(bool(compiler.refusal()), reason=f"no machine code here: {compiler.refusal()}")


def _arrays(dtype: type, count: int) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [(np.abs(x) if i == 3 else x).astype(dtype) for i, x in enumerate(rng.standard_normal((count, 2 * MANY + 5)))]


def _alike(take: Any, arrays: list[Any], **given: Any) -> None:
    """The step on whole arrays, and on pieces that are too short for machine code."""
    pieces = [None if x is None else x.copy() for x in arrays]
    take(*arrays, **given)
    for start in range(0, len(pieces[0]), MANY - 1):
        take(*[None if x is None else x[start : start + MANY - 1] for x in pieces], **given)
    for x, y in zip(arrays, pieces, strict=True):
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize(
    "given", [{}, {"weight_decay": 0.1}, {"weight_decay": 0.1, "decoupled": True}, {"amsgrad": True, "maximize": True}]
)
def test_adam(dtype: type, given: dict[str, Any]) -> None:
    arrays: list[Any] = _arrays(dtype, 5)
    if not given.get("amsgrad"):
        arrays[4] = None
    _alike(adam_reference, arrays, lr=0.01, beta1=0.9, beta2=0.999, eps=1e-8, step=3, **given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "given",
    [{}, {"weight_decay": 0.1, "maximize": True}, {"momentum": 0.9}, {"momentum": 0.9, "first": True}, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "dampening": 0.2}],
)  # fmt: skip
def test_sgd(dtype: type, given: dict[str, Any]) -> None:
    arrays: list[Any] = _arrays(dtype, 3)
    if "momentum" not in given:
        arrays[2] = None
    _alike(sgd_reference, arrays, lr=0.1, **given)
