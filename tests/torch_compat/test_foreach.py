"""Functions over lists of tensors, as optimisers are written."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as tt
from tritensor.torch_compat.modules.foreach import ALONE

A = [[1.0, 2.0], [3.0, 4.0, 5.0]]


def lists() -> list[tt.Tensor]:
    return [tt.tensor(a) for a in A]


@pytest.mark.parametrize(
    ("name", "others", "want"),
    [
        ("add", (2,), [[3.0, 4.0], [5.0, 6.0, 7.0]]),
        ("sub", (lists(),), [[0.0, 0.0], [0.0, 0.0, 0.0]]),
        ("mul", ([2.0, 10.0],), [[2.0, 4.0], [30.0, 40.0, 50.0]]),
        ("addcmul", (lists(), lists(), 0.5), [[1.5, 4.0], [7.5, 12.0, 17.5]]),
        ("addcdiv", (lists(), lists(), [1.0, 2.0]), [[2.0, 3.0], [5.0, 6.0, 7.0]]),
        ("lerp", ([tt.zeros(2), tt.zeros(3)], 0.5), [[0.5, 1.0], [1.5, 2.0, 2.5]]),
        ("maximum", (3.0,), [[3.0, 3.0], [3.0, 4.0, 5.0]]),
        ("clamp_max", (lists(),), A),
        ("pow", (2,), [[1.0, 4.0], [9.0, 16.0, 25.0]]),
        ("neg", (), [[-1.0, -2.0], [-3.0, -4.0, -5.0]]),
    ],
)
def test_each_tensor_meets_its_own(name: str, others: tuple[Any, ...], want: list[list[float]]) -> None:
    xs = lists()
    assert [y.tolist() for y in getattr(tt, "_foreach_" + name)(xs, *others)] == want
    assert getattr(tt, f"_foreach_{name}_")(xs, *others) is xs
    assert [x.tolist() for x in xs] == want


def test_what_stands_alone_and_what_is_left() -> None:
    xs = [x / 10 for x in lists()]
    for name in ALONE:
        assert all(tt.equal(y, getattr(x, name)()) for x, y in zip(xs, getattr(tt, "_foreach_" + name)(xs), strict=True))
    assert [round(y.item(), 4) for y in tt._foreach_norm(lists())] == [2.2361, 7.0711]
    assert [y.tolist() for y in tt._foreach_pow(2.0, lists())] == [[2.0, 4.0], [8.0, 16.0, 32.0]]
    tt._foreach_copy_(xs, lists())
    assert [x.tolist() for x in xs] == A
    tt._foreach_zero_(xs)
    assert not any(x.any() for x in xs)
    assert [y.tolist() for y in tt._foreach_add(lists(), lists(), alpha=-1)] == [[0.0, 0.0], [0.0, 0.0, 0.0]]


def test_mistakes() -> None:
    with pytest.raises(RuntimeError, match="_foreach_add: list of no tensors"):
        tt._foreach_add([], 1)
    with pytest.raises(RuntimeError, match=r"_foreach_add: lists of 2 and 1; give as many of each"):
        tt._foreach_add(lists(), lists()[:1])
    assert not hasattr(tt, "_foreach_nonsense")
