"""torch.testing._internal's TestCase, which test suites of libraries compare tensors by."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import tritensor as tt

equal: Any = importlib.import_module("tritensor.testing._internal.common_utils").TestCase().assertEqual
ONE = tt.ones(2)
EQUAL: list[tuple[Any, Any]] = [
    (ONE, ONE + 1e-7), (ONE, [1.0, 1.0]), (ONE, np.ones(2, np.float32)), (3, tt.tensor(3)), (tt.tensor(2.0), 2.0), (1.0, 1.0 + 1e-9),
    (float("nan"), float("nan")), ({"a": [ONE, 2, "x"], "b": None}, {"a": [ONE, 2, "x"], "b": None}), (tt.float32, tt.float32), ({1, 2}, {2, 1}),
]  # fmt: skip
UNEQUAL: list[tuple[Any, Any]] = [
    (ONE, ONE + 1e-3), (ONE, ONE.double()), ({"a": [ONE, 2]}, {"a": [ONE, 3]}), ([1], [1, 2]), ({"a": 1}, {"b": 1}), ("a", "b"), (ONE, np.ones(2)), (np.ones(2), np.zeros(2)),
]  # fmt: skip


@pytest.mark.parametrize(("x", "y"), EQUAL)
def test_equal(x: Any, y: Any) -> None:
    equal(x, y)


@pytest.mark.parametrize(("x", "y"), UNEQUAL)
def test_unequal(x: Any, y: Any) -> None:
    with pytest.raises(AssertionError):
        equal(x, y)


def test_options_reach_what_lies_inside() -> None:
    equal([ONE], [ONE + 1e-3], atol=1e-2, rtol=0)
    equal([ONE], [ONE.double()], exact_dtype=False)
    with pytest.raises(AssertionError, match="both wrong"):
        equal([ONE], [ONE + 1], "both wrong")
