"""utils.checkpoint: gradients bit-equal, with dropout too; less is kept; what does not repeat is named."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
from tritensor.autograd import graph
from tritensor.nn import GELU, BatchNorm1d, Dropout, Flatten, Linear, Sequential
from tritensor.nn import functional as F
from tritensor.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential, set_checkpoint_early_stop


def block(width: int = 16) -> Sequential:
    return Sequential(Linear(width, 4 * width), GELU(), Dropout(0.5), Linear(4 * width, width))


def model() -> tuple[list[Sequential], tt.Tensor]:
    tt.manual_seed(0)
    return [block() for _ in range(4)], tt.randn(8, 16, requires_grad=True)


def gradients(run) -> list[tt.Tensor]:
    blocks, x = model()
    y = x
    tt.manual_seed(1)
    for b in blocks:
        y = run(b, y)
    after = tt.rand(3)
    (y * y).sum().backward()
    return [y.detach(), after, x.grad, *[p.grad for b in blocks for p in b.parameters()]]


@pytest.mark.parametrize("reentrant", [False, True])
def test_gradients_are_bit_equal_with_dropout(reentrant: bool) -> None:
    for a, b in zip(gradients(lambda b, y: b(y)), gradients(lambda b, y: checkpoint(b, y, use_reentrant=reentrant)), strict=True):
        assert tt.equal(a, b)


def test_without_the_random_state_they_are_not() -> None:
    plain = gradients(lambda b, y: b(y))
    other = gradients(lambda b, y: checkpoint(b, y, use_reentrant=False, preserve_rng_state=False))
    assert tt.equal(plain[0], other[0])
    assert not all(tt.equal(a, b) for a, b in zip(plain[3:], other[3:], strict=True))


def kept(run) -> int:
    """Bytes that the graph of the model keeps for backward, parameters and inputs not counted."""
    blocks, x = model()
    own = {id(p._array) for b in blocks for p in b.parameters()} | {id(x._array)}
    y = x
    for b in blocks:
        y = run(b, y)
    gc.collect()
    found: dict[int, int] = {}
    stack, seen = [y.grad_fn], set()
    while stack:
        node = stack.pop()
        if node is None or id(node) in seen or not hasattr(node, "edges"):
            continue
        seen.add(id(node))
        for held in (*(node.inputs or ()), *[a for a, _ in (o for o in node.outputs or () if o is not None)]):
            array = getattr(held, "_array", held)
            if hasattr(array, "nbytes") and id(array) not in own:
                found[id(array)] = array.nbytes
        stack += [n for n, _ in node.next_functions]
    return sum(found.values())


def test_less_is_kept() -> None:
    plain, less = kept(lambda b, y: b(y)), kept(lambda b, y: checkpoint(b, y, use_reentrant=False))
    assert plain > 4 * 8 * 64 * 4 * 2  # at least two activations of every block
    assert less == 0  # inputs alone, which the frames hold


def test_what_a_second_run_gives_goes_as_backward_proceeds() -> None:
    """At most one block's activations are alive at a time."""
    blocks, x = model()
    alive, most = [0], [0]

    class Count(tt.autograd.Function):
        @staticmethod
        def forward(ctx, y):
            ctx.save_for_backward(y.clone())
            return y.clone()

        @staticmethod
        def backward(ctx, g):
            assert ctx.saved_tensors[0].shape == g.shape
            arrays = [
                o
                for o in gc.get_objects()
                if isinstance(o, tt.Tensor) and type(getattr(o, "_array", None)) is np.ndarray and o._array.shape == (8, 64)
            ]
            alive[0] = len({id(o._array) for o in arrays})
            most[0] = max(most[0], alive[0])
            return g

    y = x
    for b in blocks:
        y = checkpoint(lambda t, b=b: Count.apply(b(t)), y, use_reentrant=False)
    y.sum().backward()
    assert 0 < most[0] <= 5


def test_nested_and_twice() -> None:
    blocks, x = model()

    def all_of_them(y):
        for b in blocks:
            y = checkpoint(b, y, use_reentrant=False)
        return y

    tt.manual_seed(1)
    y = checkpoint(all_of_them, x, use_reentrant=False)
    (y * y).sum().backward(retain_graph=True)
    first = x.grad.clone()
    assert tt.equal(first, gradients(lambda b, y: b(y))[2])
    x.grad = None
    (y * y).sum().backward()
    assert tt.equal(x.grad, first)


def test_second_derivatives() -> None:
    x = tt.tensor([0.3, -1.2], dtype=tt.float64, requires_grad=True)
    f = lambda t: checkpoint(lambda s: s.sin() * s.exp(), t, use_reentrant=False)  # noqa: E731
    assert tt.autograd.gradcheck(f, x)
    assert tt.autograd.gradgradcheck(f, x)


def test_keywords_contexts_and_hooks_around() -> None:
    seen = []

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            seen.append(self.name)

        def __exit__(self, *exc):
            pass

    x = tt.ones(3, requires_grad=True)
    with graph.save_on_cpu():
        y = checkpoint(
            lambda a, *, scale: (a * scale).exp(), x, scale=2.0, use_reentrant=False, context_fn=lambda: (Note("first"), Note("second"))
        )
    assert tt.autograd.grad(y.sum(), x)[0].tolist() == pytest.approx([14.778112] * 3)
    assert seen == ["first", "second"]
    with tt.no_grad():
        assert not checkpoint(tt.exp, x, use_reentrant=False).requires_grad


def test_early_stop() -> None:
    runs = []

    def f(a):
        b = a.exp().sin()
        runs.append(1)
        return b + 1

    for early, count in ((True, 1), (False, 2)):
        runs.clear()
        with set_checkpoint_early_stop(early):
            y = checkpoint(f, tt.ones(2, requires_grad=True), use_reentrant=False)
        y.sum().backward()
        assert len(runs) == count


@pytest.mark.parametrize("reentrant", [False, True])
def test_the_second_run_is_under_the_same_autocast(reentrant: bool) -> None:
    seen = []
    w = tt.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)

    def part(x: tt.Tensor) -> tt.Tensor:
        seen.append((tt.is_autocast_enabled("cpu"), tt.get_autocast_dtype("cpu")))
        with tt.autocast("cpu", enabled=False):
            y = (x @ w).exp()
        return (y @ w).tanh()  # 16 bits again: the region inside has put the outer one back

    x = tt.tensor([[0.1, 0.2]], requires_grad=True)
    with tt.autocast("cpu", dtype=tt.float16):
        checkpoint(part, x, use_reentrant=reentrant).float().sum().backward()
    assert seen == [(True, tt.float16)] * 2
    assert x.grad is not None
    assert not tt.is_autocast_enabled("cpu")
    assert (w @ w).dtype is tt.float32


def test_sequential() -> None:
    tt.manual_seed(0)
    net = Sequential(*[Linear(4, 4) for _ in range(5)])
    x = tt.randn(2, 4, requires_grad=True)
    y = checkpoint_sequential(net, 2, x, use_reentrant=False)
    (g,) = tt.autograd.grad(y.sum(), x)
    assert tt.equal(y, net(x))
    assert tt.equal(g, tt.autograd.grad(net(x).sum(), x)[0])
    with pytest.raises(ValueError, match="6 segments of 5 modules"):
        checkpoint_sequential(net, 6, x, use_reentrant=False)


def ending(kind: str, norm: BatchNorm1d) -> Callable[[tt.Tensor], tt.Tensor]:
    """A function that saves nothing behind its batch normalisation."""
    fused = {"running_mean": norm.running_mean, "running_var": norm.running_var, "weight": norm.weight, "bias": norm.bias, "training": True}
    return {
        "layer": norm,
        "flattened": Sequential(norm, Flatten()),
        "fused": lambda x: F.batch_norm_activation(x, **fused),
        "native": lambda x: tt.batch_norm(x, norm.weight, norm.bias, norm.running_mean, norm.running_var, True, 0.1, 1e-5, True),
    }[kind]


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("kind", ["layer", "flattened", "fused", "native"])
def test_running_statistics_follow_both_runs_as_in_pytorch(kind: str, device: str) -> None:
    """The second run ends as soon as all is saved, and what a batch normalisation writes is written by then: 0.9 (0.9 m + 0.1 b) + 0.1 b."""
    norm = BatchNorm1d(2).to(device)
    x = tt.tensor([[1.0, -2.0], [3.0, 4.0]], device=device, requires_grad=True)
    checkpoint(ending(kind, norm), x, use_reentrant=False).sum().backward()
    np.testing.assert_allclose(norm.running_mean.cpu().numpy(), np.array([2.0, 1.0]) * 0.19, rtol=1e-6)
    np.testing.assert_allclose(norm.running_var.cpu().numpy(), 0.81 + np.array([2.0, 18.0]) * 0.19, rtol=1e-6)


def test_what_does_not_repeat_is_named() -> None:
    calls = []

    def grows(a):
        calls.append(1)
        return (a.repeat(len(calls)).exp() * 2).sum()

    with pytest.raises(CheckpointError, match=r"tensor 0 was float32\[2\] on cpu and is float32\[4\]"):
        checkpoint(grows, tt.ones(2, requires_grad=True), use_reentrant=False).backward()
    flip = []

    def less(a):
        flip.append(1)
        return a.exp().sin() if len(flip) == 1 else a.exp()

    with pytest.raises(CheckpointError, match="A different number of tensors"):
        checkpoint(less, tt.ones(2, requires_grad=True), use_reentrant=False).sum().backward()
    x = tt.ones(2, requires_grad=True)
    h = x * 2
    y = checkpoint(tt.exp, h, use_reentrant=False)
    h.add_(1)
    with pytest.raises(RuntimeError, match="overwritten in place by add_"):
        y.sum().backward()


def test_the_old_form_says_what_it_does_not_do() -> None:
    x = tt.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed"):
        y = checkpoint(tt.exp, x)
    with pytest.raises(RuntimeError, match="use_reentrant=False"):
        tt.autograd.grad(y.sum(), x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad"):
        checkpoint(tt.exp, x.detach(), use_reentrant=True)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        checkpoint(tt.exp, x, use_reentrant=True, scale=2)
    with pytest.raises(ValueError, match="determinism_check 'some'"):
        checkpoint(tt.exp, x, use_reentrant=False, determinism_check="some")
