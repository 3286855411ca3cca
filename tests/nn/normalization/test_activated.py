"""Normalisation, activation and residual in one pass: what the functions give one after the other, their gradients twice over, nets that use it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import models, nn
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.nn import functional as F

ACTIVATIONS = {
    "relu": F.relu,
    "silu": F.silu,
    "gelu": F.gelu,
    "gelu_tanh": lambda z: F.gelu(z, approximate="tanh"),
}


def draw(on: str, *shapes: tuple[int, ...], dtype: Any = tt.float64) -> list[Any]:
    return [tt.randn(s, dtype=dtype).to(on).requires_grad_() for s in shapes]


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    for got, right in zip(found, expected, strict=True):
        assert tt.allclose(got, right, rtol=tolerance, atol=tolerance)


def grads(y: Any, *given: Any) -> list[Any]:
    return [*tt.autograd.grad((y * y.detach().cos()).sum(), given)]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("added", [False, True])
@pytest.mark.parametrize(
    ("shape", "activation"), [((5, 3), "silu"), ((2, 5, 70), "relu"), ((3, 2, 6, 5), "gelu"), ((4, 3), "gelu_tanh")], ids=str
)
def test_batch_norm_is_the_functions_one_after_the_other(shape: tuple[int, ...], activation: str, added: bool, on: str) -> None:
    c = shape[1]
    x, w, b, *r = draw(on, shape, (c,), (c,), *[shape] * added)
    for training in (True, False):
        mine, theirs = ([tt.zeros(c, dtype=tt.float64, device=on), tt.ones(c, dtype=tt.float64, device=on)] for _ in range(2))
        y = F.batch_norm_activation(x, *mine, w, b, *r, training=training, activation=activation)
        z = F.batch_norm(x, *theirs, w, b, training)
        right = ACTIVATIONS[activation](z + r[0] if added else z)
        close([y, *mine, *grads(y, x, w, b, *r)], [right, *theirs, *grads(right, x, w, b, *r)])


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize(
    ("shape", "activation"), [((5, 4), "gelu"), ((2, 4, 70), "silu"), ((3, 4, 6, 5), "relu"), ((4, 4), "gelu_tanh")], ids=str
)
def test_group_norm_is_the_functions_one_after_the_other(shape: tuple[int, ...], activation: str, on: str) -> None:
    x, w, b = draw(on, shape, (4,), (4,))
    for groups in (1, 2):
        y = F.group_norm_activation(x, groups, w, b, activation=activation)
        right = ACTIVATIONS[activation](F.group_norm(x, groups, w, b))
        close([y, *grads(y, x, w, b)], [right, *grads(right, x, w, b)])


@pytest.mark.parametrize("frozen", [{"x"}, {"w", "b"}, {"r"}, {"x", "r"}, {"x", "w", "b"}], ids=lambda f: "".join(sorted(f)))
def test_only_the_gradients_that_are_asked_for(frozen: set[str]) -> None:
    shape = (3, 4, 2, 2)
    given = dict(zip("xwbr", draw("cuda", shape, (4,), (4,), shape), strict=True))
    for name in frozen:
        given[name] = given[name].detach()
    asked = [t for t in given.values() if t.requires_grad]
    x, w, b, r = given.values()
    y = F.batch_norm_activation(x, None, None, w, b, r, training=True)
    right = F.relu(F.batch_norm(x, None, None, w, b, True) + r)
    close(grads(y, *asked), grads(right, *asked))


def test_a_channels_last_image_stays_one() -> None:
    x, r = (tt.randn(2, 8, 5, 3, device="cuda").to(memory_format=tt.channels_last).requires_grad_() for _ in range(2))
    w, b = tt.ones(8, device="cuda"), tt.zeros(8, device="cuda")
    y = F.batch_norm_activation(x, None, None, w, b, r, training=True)
    dx, dr = tt.autograd.grad(y.square().sum(), (x, r))
    assert all(t.is_contiguous(memory_format=tt.channels_last) for t in (y, dx, dr))


def test_sixteen_bits_are_rounded_once() -> None:
    x = tt.randn(64, 3, 4, dtype=tt.bfloat16, device="cuda")
    w, b = tt.randn(3, device="cuda"), tt.randn(3, device="cuda")
    y = F.batch_norm_activation(x, None, None, w, b, x, training=True)
    wide = x.float()
    right = F.relu(F.batch_norm(wide, None, None, w, b, True) + wide)
    assert y.dtype is tt.bfloat16
    assert tt.equal(y, right.to(tt.bfloat16))


def test_statistics_with_gradients_of_their_own() -> None:
    from tritensor.ops.table import ops

    x, w, b = draw("cuda", (4, 3, 5), (3,), (3,))
    y, mean, var = ops.batch_norm_activation(x, w, b, activation="silu", eps=1e-5)
    plain, m, v = ops.batch_norm(x, w, b, eps=1e-5)
    found = tt.autograd.grad(y.sum() + (mean * var).sum() + var.exp().sum(), (x, w, b))
    close(found, tt.autograd.grad(F.silu(plain).sum() + (m * v).sum() + v.exp().sum(), (x, w, b)))
    close(
        tt.autograd.grad(ops.batch_norm_activation(x, w, b, eps=1e-5)[2].sum(), (x,)),
        tt.autograd.grad(ops.batch_norm(x, w, b, eps=1e-5)[2].sum(), (x,)),
    )


def names(y: Any) -> list[str]:
    """The names of a graph's nodes, along first edges."""
    found, node = [], y.grad_fn
    while node is not None:
        found.append(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    return found


LAYERS = {
    "BatchNorm1d": (nn.BatchNorm1d(4), (3, 4, 5)),
    "BatchNorm2d": (nn.BatchNorm2d(4), (3, 4, 5, 2)),
    "BatchNorm3d": (nn.BatchNorm3d(4), (3, 4, 2, 2, 2)),
    "GroupNorm": (nn.GroupNorm(2, 4), (3, 4, 5, 2)),
}


@pytest.mark.parametrize(
    ("kind", "activation"), list(zip(LAYERS, (nn.ReLU(), nn.ReLU(inplace=True), nn.GELU(), nn.SiLU()), strict=True)), ids=str
)
def test_sequential_takes_it_on_a_gpu_and_the_layer_counts_and_follows(kind: str, activation: Any) -> None:
    layer, shape = LAYERS[kind]
    x, found = tt.randn(shape), []
    for on in ("cpu", "cuda"):
        net = nn.Sequential(type(layer)(2, 4) if kind == "GroupNorm" else type(layer)(4), activation).to(on)
        at = x.detach().clone().to(on).requires_grad_()
        y = net(at)
        assert any("Activation" in n for n in names(y)) == (on == "cuda")
        y.square().sum().backward()
        found.append(
            [t.detach().cpu().numpy().copy() for t in (y, at.grad, *[p.grad for p in net.parameters()], *net.buffers(), net.eval()(at))]
        )
    for right, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-4, atol=1e-4)


def test_what_somebody_wants_to_see_stays_apart() -> None:
    x = tt.randn(3, 4, 5, device="cuda")
    norm, plain = nn.BatchNorm1d(4).to("cuda"), nn.BatchNorm1d(4, affine=False).to("cuda")
    assert any("Activation" in n for n in names(nn.Sequential(norm, nn.ReLU())(x)))
    assert not any("Activation" in n for n in names(nn.Sequential(plain, nn.ReLU())(x.requires_grad_())))
    with norm.register_forward_hook(lambda module, given, y: None):
        assert not any("Activation" in n for n in names(nn.Sequential(norm, nn.ReLU())(x)))
    assert not any("Activation" in n for n in names(nn.Sequential(norm, nn.Sigmoid())(x)))


@pytest.mark.parametrize("block", [models.resnet.BasicBlock, models.resnet.Bottleneck], ids=lambda b: b.__name__)
def test_residual_blocks_are_the_same_on_a_gpu(block: Any) -> None:
    tt.manual_seed(0)
    net, x, found = block(8, 8 // block.expansion), tt.randn(2, 8, 4, 4), []
    for on in ("cpu", "cuda"):
        net, at = net.to(on), x.detach().clone().to(on).requires_grad_()
        y = net(at)
        assert any("BatchNormActivation" in n for n in names(y)) == (on == "cuda")
        net.zero_grad()
        y.square().sum().backward()
        found.append([t.detach().cpu().numpy().copy() for t in (y, at.grad, *[p.grad for p in net.parameters()])])
    for right, got in zip(*found, strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-3, atol=1e-3)


def test_bad_input() -> None:
    x, w, b = tt.ones(2, 3, 4), tt.ones(3), tt.zeros(3)
    with pytest.raises(ArgumentError, match="batch_norm_activation: activation is 'swish'; it is one of 'relu'"):
        F.batch_norm_activation(x, None, None, w, b, training=True, activation="swish")
    with pytest.raises(ArgumentError, match="group_norm_activation: activation is 'tanh'; it is one of 'relu'"):
        F.group_norm_activation(x, 3, w, b, activation="tanh")
    with pytest.raises(ShapeError, match=r"batch_norm_activation: residual \(2, 3\) is not of input's shape \(2, 3, 4\)"):
        F.batch_norm_activation(x, None, None, w, b, tt.ones(2, 3), training=True)
    with pytest.raises(DTypeError, match="residual"):
        F.batch_norm_activation(x, None, None, w, b, x.double(), training=True)
    with pytest.raises(ArgumentError, match="batch_norm_activation: expected running_mean to be defined when training=False"):
        F.batch_norm_activation(x, None, None, w, b)
    with pytest.raises(ShapeError, match="batch_norm_activation: expected more than 1 value per channel"):
        F.batch_norm_activation(tt.ones(1, 3), None, None, w, b, training=True)
    with pytest.raises(DTypeError, match="group_norm_activation: input is int64"):
        F.group_norm_activation(tt.ones(2, 4, dtype=tt.int64), 2, tt.ones(4), tt.ones(4))
    with pytest.raises(ShapeError, match="group_norm_activation: expected number of channels in input to be divisible"):
        F.group_norm_activation(x, 2, w, b)
