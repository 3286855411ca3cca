"""The engine does not recurse: graphs 20,000 ops deep run forwards, backwards, twice, and are let go."""

from __future__ import annotations

import gc
import sys
import weakref

import numpy as np
import pytest

import tritensor as tt
from tritensor.autograd import grad

DEPTH = 20_000


def chain(x: tt.Tensor, depth: int) -> tt.Tensor:
    """((x + c) * 1) + c ...: adds and multiplications in turn."""
    y = x
    for i in range(depth):
        y = y + 1e-4 if i % 2 else y * 1.00001
    return y


def test_backward() -> None:
    x = tt.tensor([1.0, 2.0], dtype=tt.float64, requires_grad=True)
    y = chain(x, DEPTH)
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 1.00001 ** (DEPTH // 2), rtol=1e-9)


def test_higher_order() -> None:
    x = tt.tensor(1.5, dtype=tt.float64, requires_grad=True)
    y = x * x
    for i in range(DEPTH // 10):
        y = y + 1e-3 if i % 2 else y * 1.0001
    (first,) = grad(y, x, create_graph=True)
    (second,) = grad(first, x)
    scale = 1.0001 ** (DEPTH // 20)
    assert first.item() == pytest.approx(3 * scale, rel=1e-9)
    assert second.item() == pytest.approx(2 * scale, rel=1e-9)


def test_higher_order_at_full_depth() -> None:
    x = tt.tensor(1.0, dtype=tt.float64, requires_grad=True)
    w = tt.tensor(1.00001, dtype=tt.float64, requires_grad=True)
    y = x
    for i in range(DEPTH):
        y = y + 0.0 if i % 2 else y * w
    (first,) = grad(y, w, create_graph=True)
    n = DEPTH // 2
    assert first.item() == pytest.approx(n * 1.00001 ** (n - 1), rel=1e-8)
    (mixed,) = grad(first, x)
    assert mixed.item() == pytest.approx(n * 1.00001 ** (n - 1), rel=1e-8)


def test_shared_subgraphs_are_walked_once() -> None:
    # 2^200 paths, 200 nodes: visiting paths would never end.
    x = tt.tensor(1.0, dtype=tt.float64, requires_grad=True)
    y = x
    for _ in range(200):
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**200


def test_a_graph_dies_with_its_root() -> None:
    limit = sys.getrecursionlimit()
    x = tt.tensor([1.0], requires_grad=True)
    y = chain(x, DEPTH)
    node = weakref.ref(y.grad_fn)
    gc.disable()  # no cycle may keep it
    try:
        del y
        assert node() is None
    finally:
        gc.enable()
    assert sys.getrecursionlimit() == limit


def test_results_and_nodes_make_no_cycle() -> None:
    # exp saves its own output: the tensor must still go by reference counting alone.
    x = tt.tensor([0.5, 1.0], requires_grad=True)
    gc.disable()
    try:
        y = x.exp()
        alive = weakref.ref(y)
        del y
        assert alive() is None
        z = x.exp()
        (g,) = grad(z.sum(), x, create_graph=True)
        alive = weakref.ref(g)
        del z, g
        assert alive() is None
    finally:
        gc.enable()
