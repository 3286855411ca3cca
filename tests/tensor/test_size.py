"""Size: what a shape is made of stays a shape."""

from __future__ import annotations

import copy
import pickle

import pytest

import tritensor as tt


def test_slices_sums_and_multiples_are_sizes() -> None:
    s = tt.zeros(2, 3, 4).shape
    for got, want in (
        (s[:1], (2,)), (s[-1:], (4,)), (s[:0], ()), (s[::2], (2, 4)), (s + (1,), (2, 3, 4, 1)), ((1,) + s, (1, 2, 3, 4)), (s + s, (2, 3, 4) * 2),
        (s * 2, (2, 3, 4) * 2), (2 * s, (2, 3, 4) * 2), (tt.zeros(2, 3).size(), (2, 3)), (pickle.loads(pickle.dumps(s)), (2, 3, 4)),
        (copy.deepcopy(s), (2, 3, 4)), (tt.Size([1, 2]), (1, 2)), (tt.Size(), ()), (tt.Size([tt.tensor(2)]), (2,)),
    ):  # fmt: skip
        assert type(got) is tt.Size
        assert got == want
        assert got.numel() == tt.zeros(want).numel()
    assert s[0] == 2
    assert type(s[0]) is int
    assert hash(s) == hash((2, 3, 4))
    assert repr(s[:2]) == "tritensor.Size([2, 3])"


def test_refused() -> None:
    for bad in ([1.5], ["a"], [None]):
        with pytest.raises(TypeError, match="integer"):
            tt.Size(bad)
    with pytest.raises(TypeError):
        tt.zeros(2).shape + [1]
