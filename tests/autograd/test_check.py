"""gradcheck and gradgradcheck: they pass what is right and name what is wrong."""

from __future__ import annotations

import pytest

import tritensor as tt
from tritensor.autograd import Function, gradcheck, gradgradcheck


def inputs() -> tuple[tt.Tensor, tt.Tensor]:
    tt.manual_seed(0)
    a = tt.randn(3, 4, dtype=tt.float64).requires_grad_()
    b = tt.randn(4, 2, dtype=tt.float64).requires_grad_()
    return a, b


def test_pass() -> None:
    a, b = inputs()
    assert gradcheck(lambda a, b: (a @ b).tanh(), (a, b))
    assert gradgradcheck(lambda a, b: (a @ b).tanh(), (a, b))


class Wrong(Function):
    """x^2 whose backward forgets the 2."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Detached(Function):
    """x^2 whose backward is right but cut off the graph."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0].detach()


def test_fail() -> None:
    x = tt.tensor([0.3, -0.7], dtype=tt.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="gradcheck"):
        gradcheck(Wrong.apply, (x,))
    assert not gradcheck(Wrong.apply, (x,), raise_exception=False)
    assert gradcheck(Detached.apply, (x,))
    assert not gradgradcheck(Detached.apply, (x,), raise_exception=False)


def test_differences_need_float64() -> None:
    x = tt.ones(2, requires_grad=True)
    for check in (gradcheck, gradgradcheck):
        with pytest.raises(RuntimeError, match=r"input 1 is float32; .*double\(\)"):
            check(lambda a, b: a * b, (inputs()[0][0, :2].detach().requires_grad_(), x))
