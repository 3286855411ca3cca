"""gradcheck and gradgradcheck: they pass what is right and name what is wrong."""

from __future__ import annotations

import pytest

import tritensor as tt
from tritensor.autograd import Function, gradcheck, gradgradcheck
from tritensor.autograd.gradcheck import GradcheckError


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


def test_differences_of_float32_are_warned_of() -> None:
    x = tt.ones(2, requires_grad=True)
    for check in (gradcheck, gradgradcheck):
        with pytest.warns(UserWarning, match=r"Input #1 requires gradient and is not a double"):
            assert check(lambda a, b: a * b, (inputs()[0][0, :2].detach().requires_grad_(), x), atol=0.3)


def test_a_function_that_reaches_its_inputs_by_itself() -> None:
    """Inputs are moved in place and put back bit for bit, as `gradcheck(lambda *_: model(x), parameters)` needs."""
    a, b = inputs()
    before = a.detach().clone(), b.detach().clone()
    assert gradcheck(lambda *_: (a @ b).tanh(), (a, b))
    assert gradcheck(lambda *_: (a @ b).tanh(), (a, b), fast_mode=True)
    assert tt.equal(a, before[0])
    assert tt.equal(b, before[1])


class Unsteady(Function):
    """x whose backward differs a little from call to call."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        Unsteady.calls += 1
        return g * (1 + 1e-9 * Unsteady.calls)


@pytest.mark.parametrize("fast", [False, True])
def test_options(fast: bool) -> None:
    a, b = inputs()
    assert gradcheck(lambda a, b: (a @ b).tanh(), (a, b), fast_mode=fast, check_batched_grad=True, check_grad_dtypes=True)
    assert gradgradcheck(lambda a, b: (a @ b).tanh(), (a, b), fast_mode=fast, gen_non_contig_grad_outputs=True)
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, a, fast_mode=fast)
    assert not gradcheck(Wrong.apply, a, fast_mode=fast, raise_exception=False)
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(Unsteady.apply, a, fast_mode=fast)
    assert gradcheck(Unsteady.apply, a, fast_mode=fast, nondet_tol=1e-6)
    assert gradcheck(Wrong.apply, a, check_backward_ad=False)
    with pytest.raises(GradcheckError, match="stride 0"):
        gradcheck(tt.exp, tt.ones(1, dtype=tt.float64).expand(3).requires_grad_(), fast_mode=fast)


def test_complex_by_one_combination() -> None:
    z = tt.tensor([1 + 2j, 0.5 - 1j], dtype=tt.complex128, requires_grad=True)
    assert gradcheck(lambda z: (z * z, z.abs()), z, fast_mode=True)
    assert gradgradcheck(lambda z: z * z, z, fast_mode=True)


def test_forward_mode() -> None:
    pytest.importorskip("tritensor.func.forward_ad")
    a, b = inputs()
    assert gradcheck(lambda a, b: ((a @ b).tanh(), a.exp()), (a, b), check_forward_ad=True)
    with pytest.raises(GradcheckError, match="by forward mode"):
        gradcheck(lambda a: a + (a - a.detach()), a, check_forward_ad=True, check_backward_ad=False)


@pytest.mark.parametrize("fast_mode", [False, True])
def test_an_output_without_a_gradient_is_left_out_beside_others(fast_mode: bool) -> None:
    """As in PyTorch: a function may return a threshold or an index beside its value; by itself it must be constant."""
    x = tt.tensor([0.5, 2.0], dtype=tt.float64, requires_grad=True)
    assert gradcheck(lambda x: (x * x, x.detach().max()), (x,), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="output 0 with respect to input 0"):
        gradcheck(lambda x: x.detach().max(), (x,), fast_mode=fast_mode)
