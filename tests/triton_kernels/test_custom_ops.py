"""torch.library's ops of one's own: custom_op and triton_op around a Triton kernel, with gradients, devices and names."""

from __future__ import annotations

from typing import Any

import pytest
import triton
import triton.language as tl

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tritensor.ground.errors import DeviceError, GradError, RegistrationError
from tritensor.library import custom_op, register_autograd, register_kernel, triton_op, wrap_triton


@triton.jit
def cube(x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(out + i, v * v * v, mask=i < n)


@triton_op("tests_of_ops::cubed", mutates_args={})
def cubed(x: tt.Tensor, scale: float = 1.0, *, shift: float = 0.0) -> tt.Tensor:
    """x^3, scaled and shifted."""
    out = tt.empty_like(x)
    wrap_triton(cube)[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, out, x.numel(), BLOCK=16)
    return out * scale + shift


def _kept(ctx: Any, inputs: tuple[Any, ...], keyword_only_inputs: dict[str, Any], output: Any) -> None:
    x, ctx.scale = inputs
    ctx.shift = keyword_only_inputs["shift"]
    ctx.save_for_backward(x)


def _gradient(ctx: Any, g: tt.Tensor) -> tuple[Any, ...]:
    (x,) = ctx.saved_tensors
    return g * 3 * x * x * ctx.scale, None


cubed.register_autograd(_gradient, setup_context=_kept)


@cubed.register_kernel("cpu")
def _on_the_cpu(x: tt.Tensor, scale: float = 1.0, *, shift: float = 0.0) -> tt.Tensor:
    return x**3 * scale + shift


@cubed.register_fake
def _shape_of(x: tt.Tensor, scale: float = 1.0, *, shift: float = 0.0) -> tt.Tensor:
    raise AssertionError("nothing is traced")


@pytest.mark.parametrize("where", ["cpu", "cuda"])
def test_values_and_gradients(where: str) -> None:
    x = tt.linspace(-2, 2, 20, dtype=tt.float64).to(where).requires_grad_()
    y = cubed(x, 2.0, shift=1.0)
    assert y.grad_fn is not None
    assert tt.allclose(y, 2 * x**3 + 1)
    (g,) = tt.autograd.grad(y.sum(), x, create_graph=True)
    assert tt.allclose(g, 6 * x * x)
    (second,) = tt.autograd.grad(g.sum(), x)
    assert tt.allclose(second, 12 * x)
    assert tt.autograd.gradcheck(cubed, (x,))
    with tt.no_grad():
        assert cubed(x).grad_fn is None
    assert cubed(x.detach()).grad_fn is None


def test_it_is_found_by_its_names() -> None:
    x = tt.ones(3, device="cuda")
    assert tt.ops.tests_of_ops.cubed(x).tolist() == [1.0] * 3
    assert tt.ops.tests_of_ops.cubed.default is cubed
    assert repr(cubed) == "<CustomOpDef(tests_of_ops::cubed)>"
    assert cubed.__doc__ == "x^3, scaled and shifted."
    assert tt.ops.softmax is not None


def test_tensors_in_a_list_have_gradients() -> None:
    @custom_op("tests_of_ops::weighted", mutates_args=())
    def weighted(xs: list[tt.Tensor], by: float) -> tt.Tensor:
        return xs[0] * by + xs[1] * 2 * by

    def setup(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.by = inputs[1]

    weighted.register_autograd(lambda ctx, g: ([g * ctx.by, g * 2 * ctx.by], None), setup_context=setup)
    a, b = tt.ones(2, requires_grad=True), tt.ones(2, requires_grad=True)
    weighted([a, b], 3.0).sum().backward()
    assert a.grad is not None
    assert b.grad is not None
    assert (a.grad.tolist(), b.grad.tolist()) == ([3.0, 3.0], [6.0, 6.0])
    weighted.register_autograd(lambda ctx, g: g, setup_context=setup)
    with pytest.raises(GradError, match=r"its backward returned 1 gradients for 2 inputs"):
        weighted([a, b], 3.0).sum().backward()


def test_arguments_that_it_writes_to_count_as_written() -> None:
    @custom_op("tests_of_ops::doubled_in_place", mutates_args=("xs",))
    def doubled(xs: list[tt.Tensor]) -> None:
        with tt.no_grad():
            for x in xs:
                x.data.mul_(2)

    w = tt.ones(3, requires_grad=True)
    held = w * 1
    loss = (held * held).sum()
    doubled([held.detach()])
    assert held.tolist() == [2.0] * 3
    with pytest.raises(GradError):
        loss.backward()


def test_what_it_has_not_is_named() -> None:
    @custom_op("tests_of_ops::halved", mutates_args=(), device_types="cuda")
    def halved(x: tt.Tensor) -> tt.Tensor:
        return x / 2

    with pytest.raises(
        DeviceError, match=r"tests_of_ops::halved: it has no kernel for cpu tensors, only for cuda; .*register_kernel\('cpu'\)"
    ):
        halved(tt.ones(2))
    register_kernel("tests_of_ops::halved", "cpu", lambda x: x / 2)
    x = tt.ones(2, requires_grad=True)
    with pytest.raises(GradError, match=r"tests_of_ops::halved: .* was given no gradient; halved.register_autograd\("):
        halved(x).sum().backward()
    register_autograd("tests_of_ops::halved", lambda ctx, g: g / 2)
    halved(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [0.5, 0.5]


def test_wrong_registrations_are_refused() -> None:
    with pytest.raises(RegistrationError, match=r"'halved' is no name of an op; write it as 'namespace::name'"):
        custom_op("halved", lambda x: x, mutates_args=())
    with pytest.raises(RegistrationError, match="takes any arguments"):
        custom_op("tests_of_ops::wrong", lambda *x: x, mutates_args=())
    with pytest.raises(RegistrationError, match="mutates_args has 'y', which is no parameter"):
        custom_op("tests_of_ops::wrong", lambda x: x, mutates_args=("y",))
    with pytest.raises(RegistrationError, match=r"ops.softmax is an op of this library; take another namespace"):
        custom_op("softmax::wrong", lambda x: x, mutates_args=())
    with pytest.raises(RegistrationError, match="no custom op is called 'tests_of_ops::none'"):
        register_kernel("tests_of_ops::none", "cpu", lambda x: x)


@on_stub()
def test_on_a_device_its_kernel_is_launched() -> None:
    x = tt.ones(40, device="cuda", requires_grad=True)
    before = control.launch_count()
    y = cubed(x)
    assert [one.name for one in control.launches()].count("cube") == 1
    assert control.launch_count() > before
    y.sum().backward()
    assert x.grad is not None
