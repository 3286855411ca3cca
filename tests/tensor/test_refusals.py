"""What a public function refuses, in words that name it: arguments that contradict each other, dims that do not fit, numbers out of range."""

from __future__ import annotations

import pytest

import tritensor as tt

REDUCTIONS = (
    "sum", "nansum", "mean", "nanmean", "prod", "count_nonzero", "cumsum", "var", "std", "var_mean", "std_mean", "amax", "amin", "max", "min",
    "argmax", "argmin", "any", "all", "logsumexp",
)  # fmt: skip


@pytest.mark.parametrize("name", REDUCTIONS)
def test_two_names_for_one_argument(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}: dim=0 and axis=1 are two names for one argument; give one"):
        getattr(tt, name)(tt.ones(2, 2), dim=0, axis=1)


def test_whole_numbers_that_are_close() -> None:
    a, b = tt.tensor([100, -100, 3, 7]), tt.tensor([101, -101, -3, 7])
    assert tt.isclose(a, b, rtol=0.01).tolist() == [True, True, False, True]
    assert tt.isclose(a, b, rtol=0, atol=0.5).tolist() == [False, False, False, True]
