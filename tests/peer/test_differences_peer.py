"""docs/differences.md is true: each line of its tables, in both libraries."""

from __future__ import annotations

import copy
import importlib
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tritensor as tt
from tests.peer import written

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")]  # which its forward mode calls

PAGE = Path(__file__).resolve().parents[2] / "docs" / "differences.md"
Expression = Callable[[Any], Any]


def _linear(T: Any) -> Any:
    return T.nn.functional.linear(T.ones(1, 1, dtype=T.int64), T.ones(1, 1, dtype=T.int64))


def _embedding(T: Any) -> Any:
    return T.nn.functional.embedding(T.tensor([0]), T.ones(1, 4), max_norm=1.0)


def _by_last(T: Any) -> float:
    return float(T.func.jacfwd(lambda a, b: a * b, argnums=-1)(T.tensor(3.0), T.tensor(5.0)))


def _of_a_jump(T: Any) -> float:
    return float(T.func.grad(lambda x: (x * 1).logical_not_())(T.tensor(2.0)))


def _again(T: Any) -> float:
    def f(x: Any) -> Any:
        y = x.exp()
        z = y * x
        y.mul_(2)
        return z + y

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        push = T.func.linearize(f, T.tensor(0.0))[1]
    push(T.tensor(1.0))
    return float(push(T.tensor(1.0)))


def _of_a_step(T: Any) -> Any:
    x, y, values = (T.tensor(v, requires_grad=True) for v in (0.0, 2.0, 0.5))
    return T.stack(T.autograd.grad(T.heaviside(x, values) + x // y, (x, y, values)))


def _of_a_dual(T: Any) -> float:
    A = importlib.import_module(T.__name__ + ".autograd.forward_ad")
    with A.dual_level():
        x = A.make_dual(T.tensor(3.0), T.tensor(1.0))
        x.mul_(x.detach())
        return float(A.unpack_dual(x).tangent)


def _divergence(T: Any) -> Any:
    p, q = T.distributions.Binomial(3, T.tensor([0.3])), T.distributions.Binomial(5, T.tensor([0.4]))
    k = T.arange(4.0).unsqueeze(1)
    return (T.distributions.kl_divergence(p, q) - (p.log_prob(k).exp() * (p.log_prob(k) - q.log_prob(k))).sum(0)).abs() < 1e-5


def _inferred(T: Any) -> Any:
    w = T.ones(2, requires_grad=True)
    with T.inference_mode():
        y = T.ones(2) * 2
    assert y.is_inference() == (T is torch)
    (y.add_(1) * w).sum().backward()
    return w.grad


def _doubled(T: Any) -> Any:
    x = T.arange(3.0)
    x.unfold(0, 2, 1).mul_(2)
    return x


def _spread(T: Any) -> Any:
    return T.index_put(T.zeros(2, 2), (None, T.tensor([0])), T.tensor([5.0]))


def _older(T: Any) -> Any:
    """func.grad of a Function of the older form."""

    class Older(T.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return T.func.grad(lambda x: Older.apply(x).sum())(T.ones(2))


def _reduced(reduce: str) -> Callable[[Any], Expression]:
    """scatter_reduce of x to one place, of which the index reaches the first two elements."""
    return lambda T: lambda x: T.ones(1, dtype=T.float64).scatter_reduce(0, T.tensor([0, 0]), x, reduce)


def _window(T: Any) -> Expression:
    return lambda x: (T.as_strided_scatter(x, T.zeros(1, dtype=T.float64), (1,), (1,), 0) * 3).sum()


def _twice(T: Any) -> Any:
    p = T.nn.Parameter(T.ones(1))
    p.grad = T.ones(1)
    T.optim.SGD([p, p], lr=0.25).step()
    return p.detach()


def _through_momentum(T: Any) -> float:
    """The derivative of p after a step by its gradient."""
    p, g = T.tensor([1.0], requires_grad=True).clone(), T.tensor([1.0], requires_grad=True)
    optimizer = T.optim.SGD([p], lr=0.5, momentum=0.9, differentiable=True)
    p.grad = g.clone()
    optimizer.step()
    found = T.autograd.grad(p.sum(), g, allow_unused=True)[0]
    return 0.0 if found is None else found.item()


def _unseen(T: Any) -> float:
    """A weight of a query that sees no key."""
    q = T.ones(1, 1, 4)
    _, weights = T.nn.MultiheadAttention(4, 2)(q, q, q, key_padding_mask=T.tensor([[True]]))
    return weights.item()  # type: ignore[no-any-return]


def _clipped(T: Any) -> Any:
    given = [T.nn.Parameter(T.zeros(2)), T.nn.Parameter(T.zeros(0, 4))]
    given[0].grad, given[1].grad = T.tensor([3.0, -4.0]), T.zeros(0, 4)
    return T.nn.utils.clip_grad_norm_(given, 1.0, norm_type=math.inf)


# What the page says: (what PyTorch gives, what raises here)
RAISES: dict[str, tuple[Expression, Any, type[Exception]]] = {
    "uint8_tensor + 300": (lambda T: T.zeros(1, dtype=T.uint8) + 300, [44], OverflowError),
    "int8_tensor < 200": (lambda T: T.zeros(1, dtype=T.int8) < 200, [False], OverflowError),
    "mse_loss((n, 1), (n,))": (lambda T: T.nn.functional.mse_loss(T.ones(3, 1), T.zeros(3)), 1.0, tt.ShapeError),
    "a write through `as_strided` of a tensor in a graph whose memory has gaps": (written.gapped, [0.0], tt.GradError),
    "`b[1:3]` after `b.resize_(2)`": (written.beyond, [1.0, 2.0], tt.GradError),
    "writes over one of several views": (written.parts_written, 2.0, tt.GradError),
    '`empty(2, 3, device="meta") @ ones(3, 2)`': (
        lambda T: T.zeros_like(T.empty(2, 3, device="meta") @ T.ones(3, 2), device="cpu"),
        [[0.0, 0.0], [0.0, 0.0]],
        tt.DeviceError,
    ),
    "SGD([p, p])": (_twice, [0.5], ValueError),
    "`batch.add_(1)` between `matrix @ batch`": (written.written_batch, [[4.0, 4.0]], tt.GradError),
    "l1_loss": (lambda T: T.nn.functional.l1_loss(T.ones(3, 1), T.zeros(3)), 1.0, tt.ShapeError),
    **{
        name: (lambda T, name=name: getattr(T.nn.functional, name)(T.ones(3, 1), T.zeros(3)), value, tt.ShapeError)
        for name, value in (("smooth_l1_loss", 0.5), ("huber_loss", 0.5), ("kl_div", 0.0))
    },
    "x.unfold(0, 2, 1).mul_(2)": (_doubled, [0.0, 4.0, 4.0], tt.ShapeError),
}
# (what raises in PyTorch, what is given here)
WORKS: dict[str, tuple[Expression, type[Exception], Any]] = {
    "after `copy.deepcopy(layer)`": (lambda T: _copied_layer(T), AttributeError, [[1.0]]),
    "tensor + [1, 2]": (lambda T: T.ones(2) + [1, 2], TypeError, [2.0, 3.0]),
    "float32_matrix @ float64_matrix": (lambda T: T.ones(1, 1) @ T.ones(1, 1, dtype=T.float64), RuntimeError, [[1.0]]),
    "isclose": (lambda T: T.isclose(T.ones(1), T.ones(1, dtype=T.float64)), RuntimeError, [True]),
    "kl_divergence(Binomial(3, p), Binomial(5, q))": (_divergence, NotImplementedError, [True]),
    "GeneralizedPareto(...).log_prob": (
        lambda T: T.distributions.GeneralizedPareto(*T.tensor([0.0, 1.0, 0.5], dtype=T.float64)).log_prob(T.zeros(1, dtype=T.float64)),
        RuntimeError,
        [0.0],
    ),
    "Multinomial(...).expand((2,)).entropy()": (
        lambda T: T.tensor(T.distributions.Multinomial(2, T.ones(2)).expand((2,)).entropy().shape),
        AttributeError,
        [2],
    ),
    "add(int_tensor, int_tensor, alpha=0.5)": (lambda T: T.add(T.tensor([1]), T.tensor([3]), alpha=0.5), RuntimeError, [2.5]),
    "uint16_tensor + int32_tensor": (lambda T: T.ones(1, dtype=T.uint16) + T.ones(1, dtype=T.int32), RuntimeError, [2]),
    "bool_tensor ** bool_tensor": (lambda T: T.tensor([True, False]) ** T.tensor([False, True]), RuntimeError, [True, False]),
    "expand(2, 4).zero_()": (lambda T: T.tensor(_gradient(T, lambda x: (x * 1).expand(2, 1).zero_().sum(), [1.0])), RuntimeError, [0.0]),
    "x[1:] = x[:-1]": (written.moved, RuntimeError, [0, 0, 1, 2]),
    "x[:0].index_select(1, tensor([9]))": (lambda T: T.ones(2, 3)[:0].index_select(1, T.tensor([9])), RuntimeError, []),
    "x[1:].add_(x[:-1])": (written.added, RuntimeError, [0, 1, 3, 5]),
    "x[::-1]": (lambda T: T.arange(3)[::-1], ValueError, [2, 1, 0]),
    "vector.cumsum()": (lambda T: T.arange(3).cumsum(), TypeError, [0, 1, 3]),
    "x.transpose()": (lambda T: T.arange(2).reshape(1, 2).transpose(), TypeError, [[0], [1]]),
    "permute(axes=)": (lambda T: T.arange(2).reshape(1, 2).permute(axes=(1, 0)), TypeError, [[0], [1]]),
    "index_put(x, (None, i), v)": (_spread, TypeError, [[5.0, 0.0]] * 2),
    "`heaviside(x, values)`": (_of_a_step, RuntimeError, [0.0, 0.0, 1.0]),
    "func.grad": (_older, RuntimeError, [2.0, 2.0]),
    "clip_grad_norm_([a, b], 1.0, norm_type=inf)": (_clipped, RuntimeError, 4.0),
    "writes over a tensor from outside": (written.outside, RuntimeError, [2.0, 2.0]),
    "x.__array_namespace__()": (lambda T: T.ones(2).__array_namespace__().ones((1,)), AttributeError, [1.0]),
    "x.to_device(d)": (lambda T: T.ones(1).to_device(T.device("cpu")), AttributeError, [1.0]),
    "y.is_inference()": (_inferred, RuntimeError, [3.0, 3.0]),
    "v = x.view(-1); v.mul_(2)": (written.written_view, RuntimeError, [2.0, 2.0]),
    "tensor(2 ** 63)": (lambda T: T.tensor(2**63), (ValueError, RuntimeError), 2**63),
}


@pytest.mark.parametrize("line", RAISES)
@pytest.mark.filterwarnings("ignore")
def test_what_raises_here_and_not_there(line: str) -> None:
    run, theirs, error = RAISES[line]
    assert line in PAGE.read_text()
    assert torch.allclose(run(torch).to(torch.float64), torch.tensor(theirs, dtype=torch.float64), atol=1e-6)
    with pytest.raises(error):
        run(tt)


@pytest.mark.parametrize("line", WORKS)
def test_what_works_here_and_not_there(line: str) -> None:
    run, error, ours = WORKS[line]
    assert line in PAGE.read_text()
    with pytest.raises(error):
        run(torch)
    assert run(tt).tolist() == ours


def _slope(T: Any, f: Expression, *at: float, of: int = 0, by: int | None = None) -> float:
    """The derivative of f by its input `of`, then, where one is given, by its input `by`."""
    inputs = [T.tensor(x, requires_grad=True) for x in at]
    g = T.autograd.grad(f(*inputs), inputs, create_graph=True)[of]
    return g.item() if by is None else T.autograd.grad(g, inputs[by])[0].item()


def _gradient(T: Any, f: Expression, x: list[float]) -> list[float]:
    v = T.tensor(x, dtype=T.float64, requires_grad=True)
    return T.autograd.grad(f(v), v)[0].tolist()


def _responses(T: Any) -> Expression:
    return lambda x: T.nn.CrossMapLRN2d(3, alpha=3.0, beta=1.0)(x.reshape(1, 4, 1, 1)).sum()


def _copied_layer(T: Any) -> Any:
    layer = T.nn.utils.parametrizations.weight_norm(T.nn.Linear(1, 1, bias=False))
    other = copy.deepcopy(layer)
    other.weight = T.ones(1, 1)
    T.nn.utils.parametrize.remove_parametrizations(layer, "weight")
    return other.weight


def _sparsity(T: Any) -> float:
    w = T.ones(3, 2, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        T.nn.functional.embedding(T.tensor([0]), w, sparse=True).sum().backward()
    return float(w.grad.is_sparse)


# What the page says: (expression, PyTorch's number, the one here)
def _law(T: Any, name: str, *numbers: float) -> Any:
    return getattr(T.distributions, name)(*T.tensor(numbers, dtype=T.float64))


def _loaded(T: Any) -> float:
    """The bytes of mu_product after a state of NAdam is loaded, of a float16 parameter."""
    p = T.nn.Parameter(T.ones(2, dtype=T.float16))
    p.grad = T.ones(2, dtype=T.float16)
    optimizer = T.optim.NAdam([p])
    optimizer.step()
    optimizer.load_state_dict(optimizer.state_dict())
    return optimizer.state_dict()["state"][0]["mu_product"].element_size()


def _cycled(T: Any) -> float:
    """The rate of a group that began with a number, after a whole cycle."""
    optimizer = T.optim.SGD([T.nn.Parameter(T.ones(1))], lr=0.1)
    schedule = T.optim.lr_scheduler.CyclicLR(optimizer, T.tensor(0.25), T.tensor(0.75), step_size_up=1, cycle_momentum=False)
    for _ in range(2):
        optimizer.step()
        schedule.step()
    return float(optimizer.param_groups[0]["lr"])


NUMBERS: dict[str, tuple[Expression, float, float]] = {
    "`mu_product` of NAdam": (_loaded, 2, 4),
    "`CyclicLR` whose rates are tensors": (_cycled, 0.75, 0.25),
    "special.bessel_j0(5.6)": (
        lambda T: T.special.bessel_j0(T.tensor(5.6, dtype=T.float64)).item(),
        0.026970750053358895,
        0.026970884685114677,
    ),
    "sinc(3.0)": (lambda T: T.sinc(T.tensor(3.0)).item(), -2.530538223410872e-09, -0.0),
    "Bernoulli(0.0).log_prob(1.0)": (
        lambda T: T.distributions.Bernoulli(T.tensor(0.0)).log_prob(T.tensor(1.0)).item(),
        -15.942384719848633,
        -math.inf,
    ),
    "ContinuousBernoulli(logits=30.0).log_prob(1.0)": (
        lambda T: T.distributions.ContinuousBernoulli(logits=T.tensor(30.0)).log_prob(T.tensor(1.0)).item(),
        2.768981456756592,
        3.4011973816621555,
    ),
    "special.gammaincc(1e-30, 3e-30)": (
        lambda T: T.special.gammaincc(T.tensor(1e-30, dtype=T.float64), T.tensor(3e-30, dtype=T.float64)).item(),
        6.797894050115326e-29,
        6.740172483625173e-29,
    ),
    "Kumaraswamy(2.0, 3.0).mode": (lambda T: T.distributions.Kumaraswamy(2.0, 3.0).mode.item(), math.nan, 0.2**0.5),
    "GeneralizedPareto(0.0, 1.0, 0.7).variance": (
        lambda T: _law(T, "GeneralizedPareto", 0.0, 1.0, 0.7).variance.item(),
        math.nan,
        math.inf,
    ),
    "VonMises(0.0, 150.0).variance": (lambda T: _law(T, "VonMises", 0.0, 150.0).variance.item(), 0.0033379952, 0.0033389263171720307),
    "kl_divergence(Uniform(0.0, 1.0), ContinuousBernoulli(0.3))": (
        lambda T: T.distributions.kl_divergence(_law(T, "Uniform", 0.0, 1.0), _law(T, "ContinuousBernoulli", 0.3)).item(),
        math.inf,
        0.029736123,
    ),
    "ones(3, 4)[3:].storage_offset()": (lambda T: float(T.ones(3, 4)[3:].storage_offset()), 12.0, 0.0),
    "Normal(tensor([1, 2]), 1.5)": (lambda T: float(T.distributions.Normal(T.tensor([1, 2]), 1.5).scale[0]), 1.0, 1.5),
    "amax": (lambda T: _gradient(T, T.amax, [1.0, math.nan])[0], math.nan, 0.0),
    "scatter_reduce`, `index_reduce": (lambda T: _gradient(T, _reduced("amax")(T), [1.0, math.nan])[0], math.nan, 0.0),
    "scatter_reduce(prod)": (
        lambda T: _gradient(T, lambda x: T.ones(1, dtype=T.float64).scatter_reduce(0, T.tensor([0]), x, "prod"), [2.0, 4.0])[1],
        0.5,
        0.0,
    ),
    "SGD(momentum=, differentiable=True)": (_through_momentum, 0.0, -0.5),
    "narrow_copy": (lambda T: _gradient(T, lambda x: T.narrow_copy(x, 0, -1, 1), [1.0, 2.0])[1], 0.0, 1.0),
    "func.jacfwd with argnums=-1": (_by_last, 0.0, 3.0),
    "func.linearize(f, x)[1]`, called again": (_again, 5.0, 3.0),
    "x.logical_not_()": (_of_a_jump, 1.0, 0.0),
    "multiplied in place by itself, detached": (_of_a_dual, 9.0, 3.0),
    "as_strided_scatter": (lambda T: _gradient(T, _window(T), [1.0, 2.0])[0], 3.0, 0.0),
    "nn.CrossMapLRN2d": (lambda T: _gradient(T, _responses(T), [1.0, 2.0, 3.0, 4.0])[0], 1 / 9, 0.07611590007551003),
    "F.embedding(sparse=True)": (lambda T: _sparsity(T), 1.0, 0.0),
    "strides of `einsum`": (lambda T: float(T.einsum("ijk,ljk->ilj", *[T.ones(2, 3, 4)] * 2).stride()[-1]), 4.0, 1.0),
    "linalg.inv(a)": (lambda T: float(T.linalg.inv(T.eye(2)).stride()[-1]), 2.0, 1.0),
    "norm(p=3)": (lambda T: _gradient(T, lambda x: T.norm(x, 3), [1.0, math.inf])[1], math.nan, 0.0),
    "logsumexp": (lambda T: _gradient(T, lambda x: T.logsumexp(x, 0), [1e30, 1e30])[0], 1.0, 0.5),
    "gelu(inf)": (lambda T: T.nn.functional.gelu(T.full((8,), float("-inf"), dtype=T.float64))[0].item(), math.nan, 0.0),
    "fmod(1e30, 1e-30)": (lambda T: T.fmod(T.full((64,), 1e30), 1e-30)[0].item(), math.nan, math.fmod(np.float32(1e30), np.float32(1e-30))),
    "kron(a, b)": (written.written_factor, 2.0, 1.0),
    "(zeros(1).sqrt() * 0).sum()": (lambda T: _slope(T, lambda x: (x.sqrt() * 0).sum(), 0.0), math.nan, 0.0),
    "batch_norm(full((1, 5, 100), 1e7), training=True)": (
        lambda T: float(T.nn.functional.batch_norm(T.full((1, 5, 100), 1e7), None, None, training=True).abs().max() > 1),
        1.0,
        0.0,
    ),
    "addr": (
        lambda T: T.addr(*(T.full(s, x, dtype=T.bfloat16) for s, x in (((1, 1), -8256.0), ((1,), 91.0), ((1,), 91.0)))).item(),
        0.0,
        25.0,
    ),
    "MultiheadAttention": (_unseen, math.nan, 0.0),
    "tensor(5e9).to(uint32)": (lambda T: float(T.full((64,), 5e9).to(T.uint32)[0].item()), 0.0, 705032704.0),
    "softplus": (lambda T: float(_slope(T, lambda x: T.nn.functional.softplus(x, 2.0, 4.0), 2.0, by=0) > 0.03), 0.0, 1.0),
    "prelu": (lambda T: _slope(T, lambda x, w: T.nn.functional.prelu(x, w), 0.0, 0.25, by=1), 0.0, 1.0),
    "copysign(inf, y)": (lambda T: _slope(T, T.copysign, math.inf, -2.0), math.nan, -1.0),
    "`kl_div` by a target of 0": (
        lambda T: _slope(T, lambda x, t: T.nn.functional.kl_div(x, t, reduction="sum"), -1.0, 0.0, of=1),
        math.nan,
        1.0,
    ),
    "hypot(0, 0)": (lambda T: _slope(T, T.hypot, 0.0, 0.0), math.nan, 0.0),
    "atan2(0, 0)": (lambda T: _slope(T, T.atan2, 0.0, 0.0, of=0, by=1), math.nan, 0.0),
    "xlogy(0, 0)": (lambda T: _slope(T, T.xlogy, 0.0, 0.0, of=0, by=1), math.nan, 0.0),
    "a ** b": (lambda T: _slope(T, T.pow, 2.0, 0.0, of=0, by=1), 0.0, 0.5),
    "atan2(1e30, 1e30)": (lambda T: _slope(T, T.atan2, 1e30, 1e30), 0.0, 5e-31),
    "elu(nan)": (
        lambda T: T.autograd.grad(T.nn.functional.elu(x := T.full((64,), math.nan, requires_grad=True)).sum(), x)[0][0].item(),
        math.nan,
        1.0,
    ),
}


@pytest.mark.parametrize("line", NUMBERS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers(line: str) -> None:
    run, theirs, ours = NUMBERS[line]
    assert line in PAGE.read_text()
    assert run(torch) == pytest.approx(theirs, rel=1e-6, abs=0, nan_ok=True)
    assert run(tt) == pytest.approx(ours, rel=1e-6, abs=0, nan_ok=True)


@pytest.mark.filterwarnings("ignore:ComplexHalf support")
def test_what_has_another_value() -> None:
    assert "float16 beside a complex number" in PAGE.read_text()
    assert (torch.ones(1, dtype=torch.float16) * 1j).dtype is torch.complex32
    assert (tt.ones(1, dtype=tt.float16) * 1j).dtype is tt.complex64
    page = PAGE.read_text()
    assert "manual_seed(0)" in page
    torch.manual_seed(0)
    tt.manual_seed(0)
    assert torch.rand(4).tolist() != tt.rand(4).tolist()
