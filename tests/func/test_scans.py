"""Associative scans against loops, forwards and backwards, with gradients; what does not fit."""

from __future__ import annotations

import importlib

import pytest

import tritensor as tt
from tritensor.func.scans import associative_scan


def recurrence(left, right):
    return {"a": left["a"] * right["a"], "b": left["b"] * right["a"] + right["b"]}


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_linear_recurrence_with_gradients(n: int, reverse: bool) -> None:
    a, b = (0.3 + (tt.arange(2.0 * n * 3, dtype=tt.float64) * k).sin().reshape(2, n, 3) for k in (0.7, 1.3))
    a.requires_grad_(), b.requires_grad_()
    y = associative_scan(recurrence, {"a": a, "b": b}, -2, reverse, "generic")["b"]
    last, rows = tt.zeros(2, 3, dtype=tt.float64), {}
    for i in reversed(range(n)) if reverse else range(n):
        rows[i] = last = a[:, i] * last + b[:, i]
    plain = tt.stack([rows[i] for i in range(n)], 1)
    assert tt.allclose(y, plain, 0, 1e-12)
    for ours, other in zip(
        tt.autograd.grad(y.square().sum() + a.sum(), (a, b)), tt.autograd.grad(plain.square().sum() + a.sum(), (a, b)), strict=True
    ):
        assert tt.allclose(ours, other, 0, 1e-11)


def test_the_function_sees_tensors_without_the_dimension() -> None:
    x = tt.arange(12.0).reshape(3, 2, 2) / 10
    products = associative_scan(lambda m, n: m @ n, x, 0, combine_mode="generic")
    assert tt.allclose(products[2], x[0] @ x[1] @ x[2])
    assert importlib.import_module("tritensor._higher_order_ops.associative_scan").associative_scan is associative_scan


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((3, tt.ones(2), 0, False, "generic"), "must be a callable"),
        ((recurrence, tt.ones(2), 0, False, "other"), "combine_mode is 'other'"),
        ((recurrence, [1], 0, False, "generic"), "xs leaves must be a Tensor"),
        ((recurrence, (tt.ones(2), tt.ones(3)), 0, False, "generic"), "of one size, not 0, along dimension 0"),
        ((recurrence, tt.ones(2), 0), "for tensors on a GPU"),
    ],
)
def test_what_does_not_fit_is_refused(given, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        associative_scan(*given)
