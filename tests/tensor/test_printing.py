"""Tensors as they print, literally; options; what of a tensor on the device is copied for it."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import tritensor as tt
from tritensor.ops import array

PRINTED = [
    ("T.tensor([-0.0, 0.0])", "tensor([-0., 0.])"),
    ("T.tensor([1.5, -math.inf, math.nan])", "tensor([1.5000,   -inf,    nan])"),
    ("T.tensor([1.0, math.nan])", "tensor([1., nan])"),
    ("T.tensor([1e-5, 1])", "tensor([1.0000e-05, 1.0000e+00])"),
    ("T.tensor([1000.5, 1.0])", "tensor([1.0005e+03, 1.0000e+00])"),
    ("T.tensor([100000008.0])", "tensor([1.0000e+08])"),
    ("T.tensor([1 + 2j, -1.5 - 0.5j])", "tensor([ 1.0000+2.0000j, -1.5000-0.5000j])"),
    ("T.tensor([-5.0, -1e-150, 0.5], dtype=T.float64)", "tensor([ -5.0000e+00, -1.0000e-150,   5.0000e-01], dtype=tritensor.float64)"),
    ("T.tensor([True, False])", "tensor([ True, False])"),
    ("T.tensor([1, -10, 100])", "tensor([  1, -10, 100])"),
    ("T.zeros(2, 0, dtype=T.int32)", "tensor([], size=(2, 0), dtype=tritensor.int32)"),
    ("T.zeros(0, dtype=T.bool)", "tensor([], dtype=tritensor.bool)"),
    ("T.tensor(2.5, requires_grad=True)", "tensor(2.5000, requires_grad=True)"),
    (
        "T.arange(30.0)",
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n        14., 15., 16., 17., 18., 19., 20., 21., 22., 23., 24., 25., 26., 27.,\n        28., 29.])",
    ),
    ("T.arange(2000.0)", "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,\n        1.9990e+03])"),
    (
        "T.zeros(3, 2, 2)",
        "tensor([[[0., 0.],\n         [0., 0.]],\n\n        [[0., 0.],\n         [0., 0.]],\n\n        [[0., 0.],\n         [0., 0.]]])",
    ),
    (
        "T.zeros(600, 2)",
        "tensor([[0., 0.],\n        [0., 0.],\n        [0., 0.],\n        ...,\n        [0., 0.],\n        [0., 0.],\n        [0., 0.]])",
    ),
    ("T.nn.Parameter(T.ones(2))", "Parameter containing:\ntensor([1., 1.], requires_grad=True)"),
    (
        "T.arange(18.0, requires_grad=True) * 1",
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n        14., 15., 16., 17.], grad_fn=<MulBackward0>)",
    ),
    ("T.tensor([0.1, 1e-3], dtype=T.float16)", "tensor([0.1000, 0.0010], dtype=tritensor.float16)"),
]


@pytest.fixture(autouse=True)
def default_options() -> Iterator[None]:
    yield
    tt.set_printoptions(profile="default")


@pytest.mark.parametrize(("expression", "text"), PRINTED)
def test_printed(expression: str, text: str) -> None:
    x = eval(expression, {"T": tt, "math": math})
    assert repr(x) == str(x) == text


def test_options() -> None:
    x = tt.tensor([1.5, 2.25])
    tt.set_printoptions(precision=2)
    assert repr(x) == "tensor([1.50, 2.25])"
    tt.set_printoptions(sci_mode=True)
    assert repr(x) == "tensor([1.50e+00, 2.25e+00])"
    tt.set_printoptions(profile="default")
    assert repr(x) == "tensor([1.5000, 2.2500])", "a call that does not name sci_mode lets the values decide again"
    tt.set_printoptions(threshold=3, edgeitems=1)
    assert repr(tt.arange(4)) == "tensor([0,  ..., 3])"
    assert repr(tt.arange(4).reshape(2, 2)) == "tensor([[0, 1],\n        [2, 3]])"
    tt.set_printoptions(profile="full", linewidth=20)
    assert repr(tt.arange(5)) == "tensor([0, 1, 2, 3,\n        4])"
    with pytest.raises(ValueError, match="'long' is no profile"):
        tt.set_printoptions(profile="long")


def test_what_stands_behind_the_values_breaks_with_the_line() -> None:
    x = tt.arange(16.0, dtype=tt.float64)
    assert repr(x).splitlines() == [
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,",
        "        14., 15.], dtype=tritensor.float64)",
    ]
    assert repr(x[:13].requires_grad_()).splitlines() == [
        "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12.],",
        "       dtype=tritensor.float64, requires_grad=True)",
    ]


def test_a_subclass_prints_its_name() -> None:
    class Image(tt.Tensor):
        pass

    assert repr(Image([1.0])) == "Image([1.])"


def test_only_the_edges_leave_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tt.arange(3_000_000.0, device="cuda").reshape(3, 1000, 1000)
    expected = repr(x.cpu()).removesuffix(")") + ", device='cuda:0')"
    copied = []
    whole = array.to_host

    def counted(x: Any) -> Any:
        found = whole(x)
        copied.append(found.size)
        return found

    monkeypatch.setattr(sys.modules["tritensor.tensor.printing"], "to_host", counted)
    assert repr(x) == expected
    assert sum(copied) == 3 * 6 * 6


def test_notes_go_to_a_line_of_their_own_where_they_do_not_fit() -> None:
    """As in PyTorch, whose lines leave one letter of linewidth free."""
    x = tt.tensor([1.0, 2.0, 3.0], dtype=tt.float64)
    one_line = "tensor([1., 2., 3.], dtype=torch.float64)".replace("torch", "tritensor")
    try:
        tt.set_printoptions(linewidth=len(one_line) + 1)
        wide = repr(x)
        tt.set_printoptions(linewidth=len(one_line) - 1)
        narrow = repr(x)
    finally:
        tt.set_printoptions(linewidth=80)
    assert wide == one_line
    assert narrow == "tensor([1., 2., 3.],\n       dtype=tritensor.float64)"


def test_a_few_rows_more_than_both_edges_are_left_out() -> None:
    x = tt.zeros(8, 400)
    x[3:5] = 1e6  # neither shown, nor counted in the width
    row = "[0., 0., 0.,  ..., 0., 0., 0.]"
    above, below = ",\n        ".join([row] * 3), ",\n        ".join([row] * 3)
    assert repr(x) == f"tensor([{above},\n        ...,\n        {below}])"
