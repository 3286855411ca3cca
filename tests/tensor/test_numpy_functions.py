"""numpy's functions and operators that are given a tensor: operators are the tensor's own, functions run in numpy and give tensors."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import tritensor as tt

A = np.array([[1.0, 2.0], [3.0, 5.0]])


NAMES = ("add", "sub", "mul", "truediv", "pow", "floordiv", "mod", "eq", "ne", "lt", "le", "gt", "ge")


@pytest.mark.parametrize(("name", "left"), [(name, left) for name in NAMES for left in (A, np.float64(2.5))] + [("matmul", A)])
def test_an_array_on_the_left(name: str, left: np.ndarray) -> None:
    x = tt.tensor([[2.0, 1.0], [3.0, 4.0]], dtype=tt.float64, requires_grad=True)
    found = getattr(operator, name)(left, x)
    assert isinstance(found, tt.Tensor)
    np.testing.assert_allclose(found.detach().numpy(), getattr(operator, name)(left, x.detach().numpy()))
    assert found.requires_grad == (found.dtype is tt.float64)


@pytest.mark.parametrize("name", ["and_", "or_", "xor", "lshift", "rshift"])
def test_integers_on_the_left(name: str) -> None:
    a, x = np.array([5, 3]), tt.tensor([1, 2])
    assert getattr(operator, name)(a, x).tolist() == getattr(operator, name)(a, x.numpy()).tolist()


def test_functions_run_in_numpy() -> None:
    x = tt.tensor([0.5, np.inf], dtype=tt.float64)
    assert isinstance(np.isfinite(x), tt.Tensor)
    assert np.isfinite(x).tolist() == [True, False]
    fraction, whole = np.modf(tt.tensor([1.5, 2.25], dtype=tt.float64))
    assert (fraction.tolist(), whole.tolist()) == ([0.5, 0.25], [1.0, 2.0])
    assert np.maximum.reduce(tt.tensor([3, 7, 5])).item() == 7
    out = np.zeros(2)
    assert np.add(x, 1, out=out) is out
    assert out.tolist() == [1.5, np.inf]
    y = tt.tensor([4.0, 9.0], dtype=tt.float64)
    np.sqrt(y, out=y)
    assert y.tolist() == [2.0, 3.0]
    a = np.ones(2)
    a += y
    assert a.tolist() == [3.0, 4.0]


def test_a_function_that_would_lose_the_graph_or_the_gpu_is_refused() -> None:
    with pytest.raises(tt.GradError, match=r"numpy: the tensor requires grad, .* use .detach\(\).numpy\(\)"):
        np.sin(tt.ones(2, requires_grad=True))
    with pytest.raises(tt.DeviceError, match=r"numpy: the tensor is on cuda:0; use .cpu\(\) first"):
        np.sin(tt.ones(2, device="cuda"))


def test_where_nothing_is_recorded_numpy_has_parameters_too() -> None:
    """As in PyTorch: nobody waits for a gradient there, inside a Function's forward neither."""
    x = tt.ones(2, requires_grad=True)
    y = x * 2
    for mode in (tt.no_grad, tt.inference_mode):
        with mode():
            assert y.numpy().tolist() == np.asarray(y).tolist() == np.sqrt(y * y).tolist() == [2, 2]
            x.numpy()[0] += 1
    assert x.tolist() == [3, 1]
    for f in (lambda: x.numpy(), lambda: np.asarray(y)):
        with pytest.raises(tt.GradError, match="requires grad"):
            f()

    class Cube(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return tt.from_numpy(x.numpy() ** 3)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return tt.from_numpy(g.numpy() * 3 * x.numpy() ** 2)

    Cube.apply(x).sum().backward()
    assert x.grad.tolist() == [27, 3]
