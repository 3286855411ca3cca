"""Names that grad_fn shows: PyTorch's, for what the user called."""

from __future__ import annotations

from typing import Any

import pytest

import tritensor as tt
from tritensor.nn import functional as F

NAMES = {
    "x + y": "Add0", "x.exp()": "Exp0", "x.log1p()": "Log1P0", "x ** 2": "Pow0", "x ** y": "Pow1", "2 ** x": "Pow2", "x.square()": "Pow0",
    "x @ m": "Mm0", "x.mv(v)": "Mv0", "v.dot(v)": "Dot0", "b.bmm(b)": "Bmm0", "F.linear(x, w)": "Mm0", "F.linear(x, w, v)": "Addmm0",
    "x.view(-1)": "View0", "x.reshape(2, 6)": "View0", "x.t().reshape(-1)": "UnsafeView0", "x.view_as(x)": "View0", "x.unsqueeze(1)": "Unsqueeze0",
    "x[:, :1].reshape(1, 3)": "View0", "x[None]": "Unsqueeze0", "x[:1].squeeze()": "Squeeze0", "x.transpose(0, 1)": "Transpose0", "b.permute(1, 2, 0)": "Permute0",
    "x.expand(2, 3, 4)": "Expand0", "x[0]": "Select0", "x[1:]": "Slice0", "x[:, 1]": "Select0", "x[0, 1:]": "Slice0", "x[..., 0]": "Select0",
    "x[tt.tensor([0, 1])]": "Index0", "x[x > 0]": "Index0", "x.clone()": "Clone0", "x.double()": "ToCopy0", "x.sum()": "Sum0", "x.sum(0)": "Sum1",
    "x.mean(1)": "Mean1", "x.prod()": "Prod0", "x.prod(0)": "Prod1", "x.max()": "Max1", "x.max(0)[0]": "Max0", "x.amax(0)": "Amax0",
    "x.clamp(0, 1)": "Clamp1", "F.layer_norm(x, (4,))": "NativeLayerNorm0",
    "x.norm()": "LinalgVectorNorm0", "x.norm(dim=1)": "LinalgVectorNorm0", "x.std()": "Std0", "x.std(0)": "Std0", "tt.where(x > 0, x, y)": "Where0",
    "F.pad(x, (1, 1))": "ConstantPadNd0", "F.l1_loss(x, y)": "Mean0", "tt.linalg.det(w)": "LinalgDet0", "F.group_norm(b[None], 1)": "NativeGroupNorm0",
    "F.batch_norm(x, None, None, training=True)": "NativeBatchNorm0",
}  # fmt: skip


@pytest.mark.parametrize("expression", NAMES)
def test_the_name_of_what_was_called(expression: str) -> None:
    given = {"x": (3, 4), "y": (3, 4), "m": (4, 3), "w": (4, 4), "v": (4,), "b": (2, 3, 3)}
    space = {name: tt.ones(shape, requires_grad=True) for name, shape in given.items()}
    found = eval(expression, {"tt": tt, "F": F, **space})
    name = NAMES[expression]
    assert found.grad_fn.name() == f"{name[:-1]}Backward{name[-1]}"
    assert f"grad_fn=<{found.grad_fn.name()}>" in repr(found)
    found.sum().backward()
    assert found.grad_fn.name().startswith(name[:2])  # what was saved is gone


def test_outputs_of_one_op_have_one_way_back() -> None:
    x = tt.ones(2, 3, requires_grad=True)
    low, high = (x * 2).aminmax(dim=0)
    ways = [y.grad_fn.next_functions for y in (low, high)]
    assert [[(f.name(), k) for f, k in way] for way in ways] == [[("MulBackward0", 0)]] * 2
    assert ways[0][0][0] is ways[1][0][0]


def test_the_name_after_a_write() -> None:
    x = tt.ones(2, 3, requires_grad=True)
    y = x * 1
    names = []
    for write in (y.mul_, y.copy_, y.fill_, y.__setitem__):
        write(0, 2.0) if write == y.__setitem__ else write(y if write == y.copy_ else 2.0)
        names.append(y.grad_fn.name())
    y.exp_()
    y *= x
    assert names == ["MulBackward0", "CopyBackward0", "FillBackward0", "CopySlices"]
    assert [y.grad_fn.name(), y.grad_fn.next_functions[0][0].name()] == ["MulBackward0", "ExpBackward0"]
    assert y.unsqueeze_(0).grad_fn.name() == "UnsqueezeBackward0"


class Cube(tt.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: tt.Tensor) -> tt.Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: tt.Tensor) -> tt.Tensor:
        (x,) = ctx.saved_tensors
        return 3 * g * x * x


def everything_shown(fn: Any) -> list[str]:
    """The classes' names of a graph, each after those it leads to, as programs that draw graphs collect them."""
    names = [name for below, _ in fn.next_functions if below is not None for name in everything_shown(below)]
    return [*names, type(fn).__name__]


def test_the_class_bears_the_name() -> None:
    x = tt.ones(3, requires_grad=True)
    y = Cube.apply((x * 2).exp())
    assert everything_shown(y.grad_fn) == ["AccumulateGrad", "MulBackward0", "ExpBackward0", "CubeBackward"]
    assert y.grad_fn is y.grad_fn
    assert y.grad_fn.saved_tensors[0].shape == (3,)
    assert type((x * 3).grad_fn) is type((x * x).grad_fn) is not type((x + 1).grad_fn)
    assert isinstance(y.grad_fn, tt.autograd.graph.Node)


@pytest.mark.parametrize("show", [False, True])
def test_a_graph_that_was_shown_is_walked_as_before(show: bool) -> None:
    """Its nodes' classes are other ones then: hooks, writes in place after a tensor was saved, two outputs, complex numbers, second derivatives."""
    x = tt.linspace(0.1, 0.6, 6, requires_grad=True)
    seen = []
    z = x.sin().view(2, 3)
    a, b = (z * z).aminmax(dim=0)
    w = tt.complex(a, b).exp().abs()
    v = w * x[:3]
    u = v.clone()
    product = u * x[:3]
    if show:
        everything_shown(product.grad_fn)
    u.grad_fn.register_hook(lambda *_: seen.append("hook"))
    total = u.copy_(product).sum()
    if show:
        everything_shown(total.grad_fn)
    (first,) = tt.autograd.grad(total, x, create_graph=True)
    if show:
        everything_shown(first.grad_fn)
    (second,) = tt.autograd.grad(first.square().sum(), x)
    assert seen
    # exp(min of sin(x)^2 and so on) x^2, by PyTorch in float64
    assert first.tolist() == pytest.approx([0.204009902, 0.432307343, 0.710210889, 0, 0, 0], rel=1e-5, abs=1e-6)
    assert second.tolist() == pytest.approx([0.865203191, 2.150777138, 4.425116875, 0, 0, 0], rel=1e-4, abs=1e-6)
