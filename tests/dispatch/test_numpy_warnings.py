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
    f(x).sum().backward()
    (first,) = tt.autograd.grad(f(x).sum(), x, create_graph=True)
    tt.autograd.grad(first.sum(), x)


@pytest.mark.parametrize("dtype", [tt.float32, tt.float16])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.var(0, correction=3),
        lambda x: (x + INF).var(0),
        lambda x: x.prod(),
        lambda x: x.cumprod(0),
        lambda x: (x + INF).cumsum(0),
        lambda x: (x - INF).logcumsumexp(0),
        lambda x: x.pow(x - 1),
        lambda x: (x * INF).amax(),
        lambda x: F.mse_loss(x * INF, x),
        lambda x: F.nll_loss((x * INF).reshape(1, 3), tt.tensor([1])),
        lambda x: F.batch_norm((x * INF).reshape(3, 1), None, None, training=True),
        lambda x: F.group_norm((x * INF).reshape(1, 3, 1), 1),
        lambda x: F.scaled_dot_product_attention(*[(x - INF).reshape(3, 1)] * 3, is_causal=True),
        lambda x: (x.reshape(3, 1) * INF) @ x.reshape(1, 3),
        lambda x: (x + 1e30).double().float().half().float(),
    ],
)
def test_numbers_that_a_type_does_not_hold(f: Callable[[tt.Tensor], tt.Tensor], dtype: tt.dtype) -> None:
    x = tt.zeros(3, dtype=dtype, requires_grad=True)
    f(x).sum().backward()


@pytest.mark.parametrize(
    "f",
    [
        lambda a: tt.linalg.solve_triangular(a, tt.ones(2, 1), upper=True),
        lambda a: tt.linalg.det(a),
        lambda a: tt.linalg.slogdet(a)[1],
        lambda a: tt.linalg.eigh(a)[1],
        lambda a: tt.linalg.svd(a)[0],
        lambda a: tt.linalg.inv_ex(a)[0],
    ],
)
def test_a_matrix_that_is_singular(f: Callable[[tt.Tensor], tt.Tensor]) -> None:
    f(tt.zeros(2, 2, requires_grad=True)).sum().backward()


def test_a_write_is_done_once() -> None:
    x = tt.tensor([4.0, 0.0])
    x.div_(tt.tensor([2.0, 0.0]))
    assert x[0] == 2.0
    assert x[1].isnan()
