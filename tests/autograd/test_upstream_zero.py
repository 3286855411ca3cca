"""An upstream zero wins: where an op has a value and only its slope is infinite, what arrives as 0 goes on as 0, whichever way a gradient is computed."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.ops.table import Op, ops, registry

FAMILIES = ("tritensor.kernels.elementwise", "tritensor.kernels.special")
PLACES = (-1.0, 0.0, 1.0)  # where domains end and where poles are, of those functions that have any


def unary() -> list[Any]:
    """Differentiable ops of one floating tensor that can be called with it alone."""
    assert tt.kernels is not None
    found = [
        op
        for op in map(registry.__getitem__, sorted(registry))
        if op.owner.module.startswith(FAMILIES) and len(op.inputs) == len(op.outputs or "y") == 1 and op.rule
    ]
    return [
        pytest.param(op, id=op.name) for op in found if not op.view and not op.variadic and inspect.Parameter.empty not in op.attrs.values()
    ]


def gradient(op: Op, dtype: Any, on: str, create: bool) -> tuple[np.ndarray, np.ndarray]:
    x = tt.tensor(PLACES * 40, dtype=dtype, device=on).requires_grad_()
    y = getattr(ops, op.name)(x)
    (g,) = tt.autograd.grad(y, x, tt.zeros_like(y), create_graph=create)
    return y.detach().cpu().numpy(), g.detach().cpu().numpy()


@pytest.mark.parametrize("op", unary())
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning", "ignore:divide by zero:RuntimeWarning")
def test_where_there_is_a_value_there_is_no_nan(op: Op) -> None:
    for dtype in (tt.float32, tt.float64):
        for create in (False, True):
            y, g = gradient(op, dtype, "cpu", create)
            assert (g[~np.isnan(y)] == 0).all(), (dtype, create, y[:3], g[:3])


@pytest.mark.parametrize("name", ["sqrt", "log", "asin", "atanh", "erfinv", "ndtri", "lgamma", "digamma"])
def test_kernels_say_so_too(name: str) -> None:
    y, g = gradient(registry[name], tt.float32, "cuda", False)
    assert (g[~np.isnan(y)] == 0).all()
    assert (~np.isnan(y)).any()


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_of_the_page() -> None:
    x = tt.zeros(1, requires_grad=True)
    (x.sqrt() * 0).sum().backward()
    assert x.grad.tolist() == [0.0]
    for f in (tt.sin, tt.tan):  # which have no value at infinity
        x = tt.tensor([np.inf], requires_grad=True)
        (f(x) * 0).sum().backward()
        assert x.grad.isnan().all()
