"""Warnings of numpy's are nobody's: neither seen nor, where a program makes errors of warnings, raised."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import pytest

import tritensor as tt
from tritensor.nn import functional as F

INF = float("inf")


@pytest.fixture(autouse=True)
def errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("dtype", [tt.float32, tt.float64, tt.float16, tt.bfloat16])
@pytest.mark.parametrize(
    ("f", "expected"),
    [
        (lambda x: x.log(), [-INF, -INF, 0.0]),
        (lambda x: 1 / x, [INF, INF, 1.0]),
        (lambda x: x / x.abs().neg().abs(), None),
        (lambda x: (x - 2).sqrt(), None),
        (lambda x: (x + 3).arccos(), None),
        (lambda x: (x - 1).log1p(), [-INF, -INF, 0.0]),
        (lambda x: x[::2] / x[::2], None),
        (lambda x: x / tt.zeros(3, dtype=tt.float64), None),
        (lambda x: (x - INF + INF).sum(), None),
        (lambda x: (x * INF).softmax(0), None),
        (lambda x: x.clone().div_(0), None),
        (lambda x: x.clone().div_(tt.zeros_like(x)), None),
        (lambda x: (x * INF).reshape(1, 3) @ x.reshape(3, 1), None),
        (lambda x: tt.linalg.vector_norm(x * 1e300, 3), None),
        (lambda x: F.cross_entropy(tt.full((1, 3), -INF, dtype=x.dtype), tt.tensor([1])), None),
    ],
)
def test_a_value_that_is_no_number(f: Callable[[tt.Tensor], tt.Tensor], expected: list[float] | None, dtype: tt.dtype) -> None:
    found = f(tt.tensor([0.0, 0.0, 1.0], dtype=dtype))
    if expected is not None:
        assert found.tolist() == expected


@pytest.mark.parametrize(
    "f", [lambda x: x.log(), lambda x: x.sqrt(), lambda x: 1 / x, lambda x: x / x, lambda x: x.pow(-1.5), lambda x: x.norm(3)]
)
def test_a_gradient_that_is_no_number(f: Callable[[tt.Tensor], tt.Tensor]) -> None:
    x = tt.zeros(3, requires_grad=True)
    (first,) = tt.autograd.grad(f(x).sum(), x, create_graph=True)
    tt.autograd.grad(first.sum(), x)


def test_a_write_is_done_once() -> None:
    x = tt.tensor([4.0, 0.0])
    x.div_(tt.tensor([2.0, 0.0]))
    assert x[0] == 2.0
    assert x[1].isnan()
