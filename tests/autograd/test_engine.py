"""The engine's promises: accumulation, freed graphs, versions, user functions, and an error with its fix for each misuse."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt
from tritensor import no_grad
from tritensor.autograd import Function, backward, grad, gradcheck, gradgradcheck


def leaf(*values: float) -> tt.Tensor:
    return tt.tensor(list(values), dtype=tt.float64, requires_grad=True)


# accumulation
def test_gradients_accumulate_and_are_cleared() -> None:
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    x.grad = None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_a_gradient_owns_its_memory() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    seed = tt.tensor([1.0, 1.0], dtype=tt.float64)
    (x + y).backward(seed)
    x.grad += 1
    assert y.grad.tolist() == [1.0, 1.0]
    assert seed.tolist() == [1.0, 1.0]
    z = leaf(5.0, 6.0)
    (z + 0 * z.sum()).backward(seed)
    assert not np.shares_memory(z.grad.numpy(), seed.numpy())


def test_used_twice_and_diamond() -> None:
    x = leaf(2.0)
    a = x * 3
    b = a * a + a
    b.backward()
    assert x.grad.item() == pytest.approx(2 * 9 * 2 + 3)


@pytest.mark.parametrize("reduce", ["sum", "mean", "var", "std", "norm", "prod", "max", "min", "logsumexp"])
def test_a_scalar_used_twice(reduce: str) -> None:
    # numpy makes scalars of sums of 0-d arrays; no gradient function may meet one
    def loss(x: tt.Tensor) -> tt.Tensor:
        y = getattr(x * 1, reduce)(**({"dim": 0} if reduce == "logsumexp" else {}))
        return y * y + y.sin()

    assert gradcheck(loss, (leaf(1.0, 2.5, 4.0),))
    assert gradgradcheck(loss, (leaf(1.0, 2.5, 4.0),))


def test_broadcast_gradients_are_summed() -> None:
    a = tt.ones(3, 1, dtype=tt.float64, requires_grad=True)
    b = tt.ones(4, dtype=tt.float64, requires_grad=True)
    c = tt.tensor(2.0, dtype=tt.float64, requires_grad=True)
    (a * b * c).sum().backward()
    assert a.grad.shape == (3, 1)
    assert a.grad.tolist() == [[8.0]] * 3
    assert b.grad.tolist() == [6.0] * 4
    assert c.grad.shape == ()
    assert c.grad.item() == 12.0


def test_inputs_limits_what_accumulates() -> None:
    x, y = leaf(1.0), leaf(2.0)
    (x * y).backward(inputs=[x])
    assert x.grad.item() == 2.0
    assert y.grad is None


def test_backward_of_several() -> None:
    x = leaf(1.0, 2.0)
    backward([(x * x).sum(), (x * 3).sum()])
    assert x.grad.tolist() == [5.0, 7.0]


# grad()
def test_grad_returns_and_leaves_grad_alone() -> None:
    x = leaf(3.0)
    y = x * x
    (g,) = grad(y, x)
    assert g.item() == 6.0
    assert x.grad is None


def test_grad_with_respect_to_an_intermediate() -> None:
    x = leaf(3.0)
    y = x * 2
    z = y * y
    gy, gx = grad(z, [y, x])
    assert gy.item() == 12.0
    assert gx.item() == 24.0


def test_grad_of_an_unused_input() -> None:
    x, y = leaf(1.0), leaf(1.0)
    with pytest.raises(RuntimeError, match=r"grad: input 1 .* takes no part .*allow_unused=True"):
        grad(x * 2, [x, y])
    assert grad(x * 2, [x, y], allow_unused=True)[1] is None
    assert grad(x * 2, [x, y], materialize_grads=True, allow_unused=True)[1].tolist() == [0.0]


def test_grad_refuses() -> None:
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match=r"requires_grad_\(\)"):
        grad(x * 2, tt.tensor([1.0]))
    with pytest.raises(RuntimeError, match="no graph behind it"):
        grad(tt.tensor([1.0]), x)
    with pytest.raises(RuntimeError, match="1 outputs and 2 grad_outputs"):
        grad(x * 2, x, [tt.ones(1), tt.ones(1)])
    with pytest.raises(tt.GradError, match="backward: 1 tensors and 2 grad_tensors; give one"):
        tt.autograd.backward([x * 2], [None, None])
    parameters = iter([x])
    grad(x * 2, parameters)
    with pytest.raises(tt.GradError, match="grad: inputs cannot be empty"):
        grad(x * 2, parameters)
    assert x.grad is None


def test_what_requires_grad_keeps_a_type_that_has_gradients() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(tt.GradError, match=r"data: int64 for a tensor that requires grad.*requires_grad_\(False\)"):
        x.data = tt.ones(2, dtype=tt.int64)
    assert x.tolist() == [1.0, 2.0]
    x.requires_grad_(False)
    x.data = tt.ones(2, dtype=tt.int64)
    assert x.dtype == tt.int64


def test_orders_up_to_five() -> None:
    x = tt.tensor(0.7, dtype=tt.float64, requires_grad=True)
    y = x.sin()
    want = [np.cos, lambda v: -np.sin(v), lambda v: -np.cos(v), np.sin, np.cos]
    for f in want:
        (y,) = grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(f(0.7), rel=1e-12)


def test_create_graph_through_backward() -> None:
    x = leaf(2.0)
    (x**3).sum().backward(create_graph=True)
    assert x.grad.requires_grad
    g = x.grad
    x.grad = None
    g.sum().backward()
    assert x.grad.item() == pytest.approx(12.0)


# misuse, each with its fix
def test_second_backward_through_a_freed_graph() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match=r"backward: the graph through mul was freed .*retain_graph=True"):
        y.backward()


def test_retain_graph() -> None:
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_write_on_a_saved_input() -> None:
    x = leaf(1.0, 2.0)
    a = x * 1
    y = (a * a).sum()
    a.add_(1)
    with pytest.raises(RuntimeError, match=r"mul saved [ab], which add_ then overwrote in place .*clone\(\)"):
        y.backward()


def test_write_on_a_saved_output() -> None:
    x = leaf(1.0, 2.0)
    y = x.exp()
    z = y.sum()
    y.mul_(2)
    with pytest.raises(RuntimeError, match=r"exp saved its output y, which mul_ then overwrote"):
        z.backward()


def test_write_through_a_view_is_seen() -> None:
    x = leaf(1.0, 2.0)
    a = x * 1
    y = (a * a).sum()
    a[0].add_(1)
    with pytest.raises(RuntimeError, match="overwrote in place"):
        y.backward()
    a = x * 1
    y = (a[:1] * 2 * a[:1]).sum()
    a.add_(1)
    with pytest.raises(RuntimeError, match="overwrote in place"):
        y.backward()


def test_write_on_what_nobody_saved() -> None:
    x = leaf(1.0, 2.0)
    a = x + 1
    y = (a + 1).sum()
    a.mul_(5)  # add saves nothing
    y.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_not_a_scalar() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"backward: the tensor of shape \(2,\) is not a scalar.*gradient="):
        (x * 2).backward()


def test_gradient_of_the_wrong_shape_or_type() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"gradient \(3,\) for a tensor of shape \(2,\)"):
        (x * 2).backward(tt.ones(3))
    (x * 2).backward(tt.ones(2))  # float32 for float64: cast
    assert x.grad.dtype == tt.float64


def test_no_graph() -> None:
    with pytest.raises(RuntimeError, match=r"no graph behind it.*requires_grad=True"):
        tt.ones(()).backward()
    x = leaf(1.0)
    with pytest.raises(RuntimeError, match="no graph behind it"):
        (x * 2).detach().sum().backward()


def test_requires_grad_refuses() -> None:
    with pytest.raises(RuntimeError, match=r"int64 has no gradient.*\.float\(\)"):
        tt.tensor([1, 2]).requires_grad_()
    with pytest.raises(RuntimeError, match="int64 has no gradient"):
        tt.tensor([1, 2], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"only a leaf.*detach\(\)"):
        (leaf(1.0) * 2).requires_grad_(False)


def test_leaf_written_in_place() -> None:
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="leaf"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="leaf"):
        x[0] = 5.0
    with no_grad():
        x.add_(1)
    assert x.tolist() == [2.0, 3.0]
    assert x.is_leaf
    assert x.requires_grad


def test_numpy_of_a_tensor_in_a_graph() -> None:
    with pytest.raises(RuntimeError, match=r"\.detach\(\)\.numpy\(\)"):
        leaf(1.0).numpy()


# versions
def test_detach_and_data() -> None:
    x = leaf(1.0, 2.0)
    d = x.detach()
    assert not d.requires_grad
    assert d.data_ptr() == x.data_ptr()
    a = x * 1
    y = (a * a).sum()
    a.detach().add_(1)  # counted
    with pytest.raises(RuntimeError, match="overwrote"):
        y.backward()
    a = x * 1
    y = (a * a).sum()
    a.data.add_(1)  # not counted: PyTorch's meaning
    y.backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_versions_count() -> None:
    x = tt.zeros(4)
    v = x[1:3]
    assert x._version == 0
    x.add_(1)
    v.mul_(2)
    assert x._version == v._version == 2
    x.detach().add_(1)
    assert x._version == 3


# user functions
class Cube(Function):
    """x^3, with a backward written in tensor operations."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class Exp(Function):
    """exp, which saves its own output."""

    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class SumAndDifference(Function):
    """Two outputs, one input without gradient."""

    @staticmethod
    def forward(ctx, a, b, scale):
        ctx.scale = scale
        return (a + b) * scale, (a - b) * scale

    @staticmethod
    def backward(ctx, g, h):
        assert ctx.needs_input_grad == (True, True, False)
        return (g + h) * ctx.scale, (g - h) * ctx.scale, None


def test_function_to_the_third_order() -> None:
    x = tt.tensor(2.0, dtype=tt.float64, requires_grad=True)
    y = Cube.apply(x)
    for want in (12.0, 12.0, 6.0):
        (y,) = grad(y, x, create_graph=True)
        assert y.item() == want


def test_function_that_saves_its_output() -> None:
    x = tt.tensor(0.5, dtype=tt.float64, requires_grad=True)
    y = Exp.apply(x)
    for _ in range(3):
        (y,) = grad(y, x, create_graph=True)
        assert y.item() == pytest.approx(np.exp(0.5))


def test_function_with_two_outputs() -> None:
    a, b = leaf(1.0), leaf(2.0)
    s, d = SumAndDifference.apply(a, b, 5.0)
    (s * 2 + d).sum().backward()
    assert a.grad.item() == 15.0
    assert b.grad.item() == 5.0
    a.grad = b.grad = None
    s, d = SumAndDifference.apply(a, b, 5.0)
    d.sum().backward()  # the other output's gradient is zeros
    assert a.grad.item() == 5.0
    assert b.grad.item() == -5.0


def test_function_misused() -> None:
    class Short(Function):
        @staticmethod
        def forward(ctx, a, b):
            return a * b

        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(RuntimeError, match=r"Short.*returned 1 gradients for 2 inputs"):
        Short.apply(leaf(1.0), leaf(2.0)).backward()
    x = leaf(1.0)
    y = Cube.apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match="freed"):
        y.backward()
    a = leaf(1.0) * 1
    y = Cube.apply(a)
    a.add_(1)
    with pytest.raises(RuntimeError, match="overwritten"):
        y.backward()


@pytest.mark.parametrize("wrong", [None, "x", 5])
def test_what_is_no_tensor_nor_several_is_refused(wrong: object) -> None:
    y = tt.ones(2, requires_grad=True).sum()
    with pytest.raises(TypeError, match=rf"grad: inputs is {wrong!r}; give a tensor, or a list or tuple of them"):
        grad(y, wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_an_op_of_several_results_is_called_twice_on_one_leaf(device: str) -> None:
    x = tt.tensor([[3.0, 1.0, 2.0]], requires_grad=True, device=device)
    (x.topk(2)[0].sum() + 2 * x.topk(1)[0].sum() + 3 * x.max(1)[0].sum()).backward()
    assert x.grad.tolist() == [[6, 0, 1]]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("stride", [1, 2])
def test_infinities_meet_without_a_warning(stride: int) -> None:
    x = tt.full((6,), 3e38, requires_grad=True)
    w = tt.full((12,), 3e38)[::stride][:6]
    for k in range(3):  # the second and third are added to what is there
        (x * w + x * w).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [float("inf")] * 6, k
    y = tt.ones((4, 3), dtype=tt.float16, requires_grad=True)
    (tt.ones(3, dtype=tt.float16, requires_grad=True) * y * 6e4).sum().backward()
    row = tt.ones(3, dtype=tt.float16, requires_grad=True)
    (row.expand(4, 3) * (y.detach() * 3e4)).sum().backward()
    assert row.grad is not None
    assert row.grad.tolist() == [float("inf")] * 3
