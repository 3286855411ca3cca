"""Names of ops that a mode below autograd is told, beside PyTorch's, of lines that programs write; and classes below autograd, whose results agree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

import tritensor as tt
from tests.overriding.wrappers import Holding, Log, make_holding

LINES: tuple[str, ...] = (
    "x + 1", "1 + x", "x - y", "2 - x", "x * 2", "x / 2", "x / y", "2 / x", "x ** 2", "2 ** x", "x ** y", "-x", "abs(x)", "x @ x.t()", "x // 2", "x % 2",
    "x == 2", "x != y", "x < 1", "1 < x", "x >= y", "(x > 0) & (y > 0)", "~(x > 0)", "x.exp()", "x.sqrt()", "x.tanh()", "T.sin(x)", "T.erf(x)",
    "x.sigmoid()", "x.round()", "x.clamp(0, 1)", "x.clamp(min=0)", "T.maximum(x, y)", "T.lerp(x, y, 0.5)", "T.where(x > 0, x, y)", "T.where(x > 0, x, 0.0)",
    "x.sum()", "x.sum(1)", "x.mean()", "x.mean(0)", "x.amax(1)", "x.max()", "x.max(1)", "x.argmax(1)", "x.std()", "x.var(1)", "x.logsumexp(1)",
    "x.cumsum(0)", "x.sort()", "x.topk(2)", "x.any()", "x.all()", "x.item if False else x.sum().item()", "x.detach()", "x.clone()", "x.double()",
    "x.to(T.float64)", "x.view(6)", "x.reshape(3, 2)", "x.t()", "x.transpose(0, 1)", "x[None].transpose(0, 2)", "x[None].permute(1, 2, 0)", "x[0]",
    "x[0, 1]", "x[None]", "x.unsqueeze(0)", "x[None].squeeze(0)", "x.expand(4, 2, 3)", "x.diagonal()", "x.flip(0)", "x.roll(1, 0)", "x.tril()",
    "x.unbind(0)", "T.cat([x, y])", "T.cat([x, y], 1)", "T.stack([x, y])", "x.index_select(0, T.arange(1))", "x.masked_fill(x > 0, 1.0)",
    "x.gather(1, T.zeros(2, 1, dtype=T.int64))", "x.repeat(2, 1)", "T.addmm(T.zeros(2), x, y.t())", "T.bmm(x[None], y.t()[None])", "T.mv(x, y[0])",
    "T.zeros(2)", "T.ones(2, 3)", "T.full((2,), 3.0)", "T.arange(3)", "T.arange(1, 3)", "T.empty(2)", "T.zeros_like(x)", "x.new_ones(2)", "T.eye(2)",
    "x.add_(1)", "x.mul_(y)", "x.exp_()", "x.zero_()", "x.fill_(2)", "x.copy_(y)", "x.clamp_(0, 1)", "x.relu_()", "x.masked_fill_(x > 0, 0.0)",
    "F.relu(x)", "F.gelu(x)", "F.silu(x)", "F.softplus(x)", "F.leaky_relu(x)", "F.elu(x)", "F.hardtanh(x)", "F.softmax(x, 1)", "F.log_softmax(x, 1)",
    "F.linear(x, y)", "F.linear(x, y, T.zeros(2))", "F.linear(x[None], y, T.zeros(2))", "F.mse_loss(x, y)", "F.nll_loss(x, T.zeros(2, dtype=T.int64))",
    "F.cross_entropy(x, T.zeros(2, dtype=T.int64))", "F.binary_cross_entropy_with_logits(x, y)", "F.layer_norm(x, (3,))", "F.group_norm(x, 1)",
    "F.embedding(T.zeros(2, dtype=T.int64), x)", "F.conv2d(T.zeros(1, 1, 4, 4), T.zeros(1, 1, 2, 2))", "F.pad(x, (1, 1))", "F.glu(T.zeros(2, 4))",
    "F.max_pool2d(T.zeros(1, 1, 4, 4), 2)", "F.batch_norm(x, T.zeros(3), T.ones(3))", "x.requires_grad_().mul(2)", "x.requires_grad_().exp().sum()",
)  # fmt: skip


_ASIDE = (
    "lift_fresh",
    "detach",
    "scalar_tensor",
    "empty",
)  # what PyTorch does on the way: values of lists, saved results, numbers, room for results


class _TheirLog(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


_TheirHolding = make_holding(torch, tree_map)


def _told(T: Any, log: Any, line: str) -> list[str]:
    """The ops of a line, without those that move nothing."""
    x, y = T.tensor([[1.5, -2.0, 0.5], [3.0, 0.25, -1.0]]), T.tensor([[0.5, 1.0, 2.0], [4.0, 0.5, 1.5]])
    names = {"T": T, "F": T.nn.functional, "x": x, "y": y}
    with log:
        eval(line, names)
    return [n for n in log.names if n.split(".")[1] not in _ASIDE or n.split(".")[1] in line]


@pytest.mark.parametrize("line", LINES)
def test_a_mode_is_told_the_same_names(line: str) -> None:
    assert _told(tt, Log(), line) == _told(torch, _TheirLog(), line)


def _everything(T: Any, hold: Callable[..., Any]) -> list[Any]:
    """What a class that holds a plain tensor computes: values, classes, gradients of first and second order."""
    x = hold(T.tensor([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
    y = (x.exp() @ x).mean()
    (g,) = T.autograd.grad(y, x, create_graph=True)
    g.sum().backward()
    layer = T.nn.Linear(2, 2)
    with T.no_grad():
        layer.weight.copy_(T.eye(2))
        layer.bias.zero_()
    layer(x).pow(2).sum().backward()
    z = hold(T.zeros(3))
    z.add_(2)
    z[0] = 5
    z[1:].mul_(3)
    found = [
        y,
        g,
        x.grad,
        layer.weight.grad,
        z,
        T.cat([z, T.ones(3)]),
        T.nn.functional.softmax(z, 0),
        T.func.grad(lambda t: (t**2).sum())(z),
    ]
    return [(type(t).__name__, t.held.detach().numpy().round(3).tolist()) for t in found] + [
        float(z.sum()),
        z._version,
    ]


def test_a_class_gives_the_same() -> None:
    assert _everything(tt, Holding) == _everything(torch, _TheirHolding)
