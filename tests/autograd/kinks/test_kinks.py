"""At zeros, limits and ties every function takes PyTorch's side: its derivatives there, as they were recorded, first and second, on both devices.

Where PyTorch's are NaN, ours need not be: docs/differences.md says what stands there.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.autograd.kinks.functions import CASES, derivatives
from tests.autograd.kinks.record import RECORDED
from tests.loops import each

WANTED = {name: [np.array(row, float) for row in rows] for name, rows in json.loads(RECORDED.read_text()).items()}
NEAR = {tt.float64: (1e-9, 1e-9), tt.float32: (1e-4, 2e-5)}
# (name, row of what is recorded): why it is another; rows count the inputs' first derivatives, then their second
OTHERWISE = {
    ("F.hardsigmoid", 0): "PyTorch's 1 / 6 is that of float32",
    ("F.softplus(beta=2.0, threshold=4.0)", 1): "PyTorch's first derivative has the formula's side at the threshold, its second the line's",
    ("two: pow", 3): "docs/differences.md: the mixed derivative at b = 0 is 1 / a",
    ("two: prelu", 2): "PyTorch's first derivative counts 0 as negative, its second as positive",
    ("two: prelu", 3): "the same",
}
pytestmark = [
    pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning"),
    pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning"),
]


def unlike(name: str, dtype: Any, on: str = "cpu", second: bool = True) -> list[str]:
    relative, absolute = NEAR[dtype]
    wanted = WANTED[name]
    made = derivatives(tt, CASES[name], dtype, on, second and len(wanted) > len(CASES[name].values))
    found = []
    for i, (have, want) in enumerate(zip(made, wanted, strict=second)):
        with np.errstate(invalid="ignore"):
            wrong = ~np.isclose(np.array(have), want, relative, absolute) & ~np.isnan(want) & ~(np.array(have) == want)
        if wrong.any() and (name, i) not in OTHERWISE:
            at = int(np.argmax(wrong))
            place = tuple(v[at] for v in CASES[name].values)
            found.append(f"derivative {i} at {place}: {have[at]}, in PyTorch {want[at]}; {int(wrong.sum())} like this")
    return found


@each("name", CASES)
def test_our_side_is_pytorchs(name: str) -> None:
    for dtype in NEAR:
        assert not unlike(name, dtype), dtype


@each("name", [n for n in CASES if not n.startswith("ties")])
def test_so_is_the_kernels(name: str) -> None:
    assert not unlike(name, tt.float32, "cuda", second=False)


def test_the_record_is_of_these_functions() -> None:
    assert list(WANTED) == list(CASES)
    assert {n for n, _ in OTHERWISE} <= set(CASES)
