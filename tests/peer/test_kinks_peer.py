"""The record of PyTorch's derivatives at zeros, limits and ties is what PyTorch says; in float32 it says the same, and so do we."""

from __future__ import annotations

import json

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
