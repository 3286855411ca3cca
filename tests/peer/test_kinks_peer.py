"""The record of PyTorch's derivatives at zeros, limits and ties is what PyTorch says; in float32 it says the same, and so do we."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt
from tests.autograd.kinks.functions import CASES, derivatives
from tests.autograd.kinks.record import RECORDED, known, number
from tests.autograd.kinks.test_kinks import OTHERWISE

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
WRITTEN = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("name", CASES)
def test_the_record_is_true(name: str) -> None:
    torch.set_num_threads(1)
    for now, then in zip(known(torch, CASES[name]), WRITTEN[name], strict=True):
        assert np.allclose(np.array([number(x) for x in now], float), np.array(then, float), 1e-9, 1e-9, equal_nan=True), (
            "write it anew: python -m tests.autograd.kinks.record"
        )


@pytest.mark.parametrize("name", CASES)
def test_first_derivatives_in_float32(name: str) -> None:
    torch.set_num_threads(1)
    theirs, ours = (np.array(derivatives(T, CASES[name], T.float32, second=False)) for T in (torch, tt))
    for i, (want, have) in enumerate(zip(theirs, ours, strict=True)):
        same = np.isclose(have, want, 1e-4, 2e-5) | np.isnan(want)
        assert same.all() or (name, i) in OTHERWISE, (i, want[~same], have[~same])


BESIDE_NUMBERS: dict[str, Any] = {
    "eq": lambda T, x, v: (x == v) * x, "ne": lambda T, x, v: (v != x) * x, "ge": lambda T, x, v: (x >= v) * x, "gt": lambda T, x, v: (v > x) * x,
    "le": lambda T, x, v: (x <= v) * x, "lt": lambda T, x, v: (x < v) * x, "clamp": lambda T, x, v: x.clamp(-v, v), "clamp min": lambda T, x, v: x.clamp(min=v),
    "clamp max": lambda T, x, v: x.clamp(max=v), "threshold": lambda T, x, v: T.nn.functional.threshold(x, v, 7.0),
    "hardshrink": lambda T, x, v: T.nn.functional.hardshrink(x, v), "normalize": lambda T, x, v: T.nn.functional.normalize(x * 0, dim=0, eps=v * 1e-9),
    "cosine_similarity": lambda T, x, v: T.nn.functional.cosine_similarity(x * 0, x, dim=0, eps=v * 1e-9),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("name", BESIDE_NUMBERS)
@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
def test_numbers_that_a_type_rounds(name: str, dtype: str) -> None:
    for v in (0.1, 0.3, 0.7, 0.45, 1e-3):
        found = []
        for library in (tt, torch):
            x = library.tensor([v, -v, 0.0], dtype=getattr(library, dtype), requires_grad=True)
            y = BESIDE_NUMBERS[name](library, x, v)
            y.sum().backward()
            found.append((y.float().flatten().tolist(), x.grad.float().tolist()))
        for ours, theirs in zip(*found, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-3, err_msg=f"{name} {v}")
