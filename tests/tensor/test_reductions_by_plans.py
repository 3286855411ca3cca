"""Reductions in one step against the long way: values, shapes, strides, types, gradients, errors and nodes, whatever is asked."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.autograd import grad, gradgradcheck
from tritensor.dispatch.plans import doors
from tritensor.ground import shortcuts


@pytest.fixture(autouse=True)
def _learns_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "BEGIN", -1)
    monkeypatch.setattr(doors, "SEEN_BEFORE", False)


NAMES = ("sum", "amax", "amin")
SHAPES = [(), (1,), (5,), (3, 4), (4, 3), (2, 3, 4), (0, 3), (1, 1), (129,), (2, 0)]
DIMS = [None, 0, 1, -1, 2, -3, (0,), (0, 1), True, 1.0, "a", np.int64(0)]
KINDS = [tt.float32, tt.float64, tt.float16, tt.bfloat16, tt.int64, tt.bool]


def outcome(f: Callable[..., Any], x: tt.Tensor, *args: Any, **kwargs: Any) -> Any:
    """All that can be seen of a call, values apart, and the values of result and gradient."""
    try:
        y = f(x, *args, **kwargs)
    except (TypeError, ValueError, IndexError) as error:
        return (type(error), str(error)), []
    slope = grad(y.double().sum(), x)[0].double().numpy() if y.requires_grad else np.zeros(0)
    return (y.shape, y.stride(), y.dtype, y.requires_grad, y.is_leaf, str(y.grad_fn), y._version), [y.detach().double().numpy(), slope]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_fast_and_long(name: str, kind: tt.dtype) -> None:
    rng = np.random.default_rng(0)
    f = getattr(tt, name)
    for shape, dim, keep, turned in itertools.product(SHAPES, DIMS, (False, True), (False, True)):
        x = tt.tensor(3 * rng.standard_normal(shape)).to(kind)
        x = x.t() if turned and len(shape) == 2 else x
        if kind.is_floating_point:
            x = x.detach().requires_grad_()
        outcome(f, x, dim, keep)
        seen, values = outcome(f, x, dim, keep)
        with shortcuts.suspended():
            want, wanted = outcome(f, x, dim, keep)
        assert seen == want, (shape, dim, keep, turned)
        for a, b in zip(values, wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_keywords_modes_and_orders(name: str) -> None:
    f = getattr(tt, name)
    x = tt.tensor([[1.0, 5.0, 2.0], [4.0, 3.0, 0.5]], dtype=tt.float64, requires_grad=True)
    for given in ({"dim": 1}, {"axis": 1}, {"dim": 1, "keepdim": True}, {"dim": 0, "keepdims": True}, {"input": x, "dim": 0}):
        args = () if "input" in given else (x,)
        assert f(*args, **given).tolist() == f.__wrapped__(x, **{k: v for k, v in given.items() if k != "input"}).tolist()
    with tt.no_grad():
        assert not f(x).requires_grad
    assert gradgradcheck(lambda t: (f(t, 1) ** 2).sum(), x)
    out = tt.empty(2, dtype=tt.float64)
    with tt.no_grad():
        assert f(x, 1, out=out) is out
    assert out.tolist() == f(x, 1).tolist()
