"""Gradients by complex numbers: PyTorch's convention, views of parts, in-place writes, checks, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.autograd import grad, gradcheck, gradgradcheck


def numbers(*shape: int, seed: int = 0) -> tt.Tensor:
    rng = np.random.default_rng(seed)
    return tt.from_numpy(np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape))).requires_grad_()


def test_a_step_against_the_gradient_descends() -> None:
    z = tt.tensor([1 + 2j, -3 + 0.5j], dtype=tt.complex128, requires_grad=True)
    (z.abs() ** 2).sum().backward()
    assert z.grad is not None
    np.testing.assert_allclose(z.grad.numpy(), 2 * z.detach().numpy())


def test_the_gradient_of_a_real_input_is_real() -> None:
    x = tt.tensor([1.0, 2.0], dtype=tt.float64, requires_grad=True)
    (g,) = grad((x * (1 + 2j)).abs().sum(), x)
    assert g.dtype is tt.float64
    np.testing.assert_allclose(g.numpy(), [5**0.5] * 2)


def test_a_complex_result_needs_a_gradient_to_start_from() -> None:
    z = numbers()
    with pytest.raises(tt.GradError, match="the tensor is complex128, and the gradient to start from is only implied for a real number"):
        (z * z).backward()
    (z * z).backward(tt.tensor(1j, dtype=tt.complex128))
    assert z.grad is not None
    assert abs(z.grad.item() - 1j * 2 * np.conj(z.item())) < 1e-12


FUNCTIONS = {
    "product": lambda z, w: z * w.conj(), "quotient": lambda z, w: z / w, "power": lambda z, w: z**w, "matmul": lambda z, w: z @ w.mT,
    "abs": lambda z, w: (z * w).abs(), "sgn": lambda z, w: (z - w).sgn(), "angle": lambda z, w: (z + w).angle(), "parts": lambda z, w: z.real * w.imag,
    "views": lambda z, w: tt.view_as_real(z * w), "pairs": lambda z, w: tt.view_as_complex(tt.view_as_real(z) * 2) * w, "made": lambda z, w: tt.complex(z.real, w.imag),
    "polar": lambda z, w: tt.polar(z.abs(), w.real), "broadcast": lambda z, w: z * w[:1], "sum": lambda z, w: (z * w).sum(0), "prod": lambda z, w: (z + w).prod(1),
    "joined": lambda z, w: tt.cat([z, w.real]), "where": lambda z, w: tt.where(w.real > 0, z, w), "acosh": lambda z, w: z.acosh() * w.sqrt(),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_derivatives(name: str) -> None:
    z, w = numbers(2, 3), numbers(2, 3, seed=1)
    assert gradcheck(FUNCTIONS[name], (z, w))
    assert gradgradcheck(FUNCTIONS[name], (z, w), atol=1e-4)


def test_a_wrong_gradient_is_found() -> None:
    class Wrong(tt.autograd.Function):
        @staticmethod
        def forward(ctx, z):  # type: ignore[no-untyped-def, override]
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def, override]
            (z,) = ctx.saved_tensors
            return g * 2 * z  # not conjugated

    with pytest.raises(tt.GradError, match="by backward and"):
        gradcheck(Wrong.apply, (numbers(2),))


def test_writes_through_the_parts() -> None:
    z = numbers(3)
    w = z * 1
    w.real.mul_(2)
    w.imag = w.imag * 3
    (g,) = grad(w.real.sum() + w.imag.sum(), z)
    np.testing.assert_allclose(g.numpy(), [2 + 3j] * 3)
    np.testing.assert_allclose(w.detach().numpy(), z.detach().numpy().real * 2 + 3j * z.detach().numpy().imag)


def test_in_place_arithmetic() -> None:
    z = numbers(3)
    w = z.clone()
    w.mul_(w.conj()).add_(z)
    (g,) = grad(w.real.sum(), z)
    np.testing.assert_allclose(g.numpy(), 2 * z.detach().numpy() + 1)


def test_a_saved_value_that_is_overwritten_is_told() -> None:
    z = numbers(3)
    w = z * 1
    y = w * w
    w.zero_()
    with pytest.raises(tt.GradError, match="overwrote in place"):
        y.abs().sum().backward()


class Turned(tt.autograd.Function):
    """x + x^2 i of a real x, and its size."""

    @staticmethod
    def forward(ctx: Any, x: tt.Tensor) -> tuple[tt.Tensor, tt.Tensor]:
        ctx.save_for_backward(x)
        return tt.complex(x, x * x), (x * x + x**4).sqrt()

    @staticmethod
    def backward(ctx: Any, g: tt.Tensor, of_size: tt.Tensor) -> tt.Tensor:
        (x,) = ctx.saved_tensors
        return g.real + 2 * x * g.imag + of_size * (x + 2 * x**3) / (x * x + x**4).sqrt()


def test_a_function_of_ones_own_has_complex_results() -> None:
    x = tt.tensor([0.5, 2.0], dtype=tt.float64, requires_grad=True)
    y, size = Turned.apply(x)
    assert (y.requires_grad, y.grad_fn.name(), size.requires_grad) == (True, "TurnedBackward", True)
    (by_result,) = grad(y.abs().sum(), x, retain_graph=True)
    (by_size,) = grad(size.sum(), x)
    np.testing.assert_allclose(by_result.numpy(), by_size.numpy())
    assert gradcheck(lambda x: Turned.apply(x), (x,))
    assert gradgradcheck(lambda x: Turned.apply(x)[0], (x,))


def test_a_comparison_written_over_complex_numbers_is_in_the_graph() -> None:
    x, z = tt.ones(2, dtype=tt.float64, requires_grad=True), tt.tensor([1j, 1.0])
    z.eq_(x)
    assert z.tolist() == [0, 1]
    (g,) = grad(z.abs().sum(), x)
    assert g.tolist() == [0.0, 0.0]
