"""Random draws in groups: numbers of a stream are made where they are read, forward and backward, with eager's bits, and seeds stay numbers of the plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.fusion.graphs import Graph
from tritensor.fusion.patterns import rewriting
from tritensor.nn import functional as F
from tritensor.ops.table import ops

rng = np.random.default_rng(3)
DEVICES = pytest.mark.parametrize("device", ["cpu", "cuda"])
TYPES = pytest.mark.parametrize("dtype", [tt.float32, tt.bfloat16, tt.float16, tt.float64], ids=str)


def leaf(*shape: int, device: str = "cpu", dtype: Any = tt.float32, grad: bool = False) -> Any:
    return tt.tensor(rng.normal(size=shape).astype(np.float32), device=device).to(dtype).requires_grad_(grad)


def numpy(t: Any) -> np.ndarray:
    return np.asarray(t.detach().cpu().to(tt.float64).numpy())


@DEVICES
@TYPES
@pytest.mark.parametrize("shape", [(6, 40), (7, 13), (4, 3, 64), (1,), (300, 7)], ids=str)
def test_dropout_between_others_forward_and_backward(device: str, dtype: Any, shape: tuple[int, ...]) -> None:
    x, w = leaf(*shape, device=device, dtype=dtype, grad=True), leaf(*shape, device=device, dtype=dtype)

    def program() -> Any:
        y = F.dropout(x * 2 + 1, 0.3) * w
        y.sum().backward()
        found, x.grad = x.grad, None
        return y, found

    g = Graph(program).check(0)
    assert len(g.groups) == 1
    assert g.alone == []


@DEVICES
def test_backward_draws_the_mask_again(device: str) -> None:
    """The group of backward reads no mask: it is another group, as a product stands between, and takes seed and offset as numbers."""
    x, w = leaf(16, 24, device=device, grad=True), leaf(24, 8, device=device)

    def program() -> Any:
        h = F.dropout(tt.abs(x) + 1, 0.5) * 2
        y = h @ w
        (y * y).sum().backward()
        found, x.grad = x.grad, None
        return h, found

    g = Graph(program).check(0)
    forward, backward = [k for k in g.plan.groups if any("dropout" in g.calls[c].name for c in k.calls if c < len(g.calls))]
    masks = {o.place for o in forward.outs}
    assert len(masks) == 1  # h alone
    assert not masks & set(backward.reads)
    h, gradient = g.by_plan
    assert np.array_equal(h == 0, gradient == 0)
    assert 0.3 < (h == 0).mean() < 0.7


@DEVICES
@TYPES
def test_numbers_of_a_stream(device: str, dtype: Any) -> None:
    x = leaf(9, 20, device=device, dtype=dtype)

    def program() -> Any:
        noisy = x + 0.1 * tt.randn(9, 20, device=device, dtype=dtype)
        return noisy, tt.rand(9, 20, device=device, dtype=dtype) * x, tt.rand_like(x) < 0.4

    g = Graph(program).check(0)
    assert sorted(name for group in g.groups for name in group if "rand" in name) == ["rand", "rand", "randn"]
    assert g.alone == []


@DEVICES
@pytest.mark.parametrize("train", [
    lambda x: F.dropout2d(x, 0.4), lambda x: F.alpha_dropout(x, 0.3, True), lambda x: F.feature_alpha_dropout(x, 0.3, True),
    lambda x: tt.bernoulli(tt.sigmoid(x)), lambda x: F.dropout(x, 0.2) + F.dropout(x, 0.2), lambda x: tt.nn.Dropout(0.7)(x),
])  # fmt: skip
def test_other_ops_that_draw(device: str, train: Any) -> None:
    x = leaf(3, 4, 5, 6, device=device)
    g = Graph(lambda: train(x * 2) + 1).check(0)
    assert len(g.groups) == 1
    assert g.alone == []


@DEVICES
def test_the_ends_of_p(device: str) -> None:
    x = leaf(5, 8, device=device)

    def program() -> Any:
        return [ops.dropout(x * 2, p=p, seed=2**63 + 5, offset=2**33) + 1 for p in (0.0, 1.0, 2.0**-33, 1 - 2.0**-33, 0.5)]

    none, every, seldom, mostly, half = Graph(program).check(0).by_plan
    assert (every == 1).all()
    assert (mostly == 1).all()
    assert np.array_equal(none, seldom)
    assert not np.array_equal(half, none)


@DEVICES
def test_places_are_those_of_the_draw_whatever_the_space(device: str) -> None:
    """Where axes lie in another order, are split, repeat, or are one of each row, an element's place is still its own."""
    x, y, column = leaf(6, 20, device=device), leaf(20, 6, device=device), leaf(6, 1, device=device)

    def program() -> Any:
        turned = F.dropout(x * 2, 0.5).transpose(0, 1) + y
        lying = F.dropout(y.transpose(0, 1) * 2, 0.5) * x
        split = (tt.rand(120, device=device) + 1).reshape(6, 20) * x
        rows = tt.rand(6, 1, device=device) * x + column
        columns = tt.rand(20, device=device) * x - 1
        return turned, lying, split, rows, columns

    g = Graph(program).check(0)
    # what repeats down the columns is made once, as any other value
    assert g.alone == ["rand"]
    assert "its rows do not lie along memory" in [r.why for r in g.plan.why]


@DEVICES
@pytest.mark.parametrize("n", [32, 39, 200])
def test_between_a_softmax_and_a_product(device: str, n: int) -> None:
    x, v = leaf(6, n, device=device, grad=True), leaf(n, 5, device=device)

    def program() -> Any:
        e = tt.exp(x - x.amax(-1, keepdim=True))
        p = F.dropout(e / e.sum(-1, keepdim=True), 0.4)
        (p @ v).sum().backward()
        found, x.grad = x.grad, None
        return p, found

    with rewriting.only():
        g = Graph(program).check(1e-5)
    forward = next(k for k in g.plan.groups if k.tape.folds)
    assert "dropout" in [g.calls[c].name for c in forward.calls if c < len(g.calls)]
    assert np.array_equal(g.by_plan[0] == 0, g.by_calls[0] == 0)


@DEVICES
def test_steps_of_training_share_one_plan(device: str) -> None:
    x, w = leaf(16, 24, device=device, grad=True), leaf(24, 8, device=device)

    def program() -> Any:
        h = F.dropout(tt.abs(x) + 1, 0.5) * 2
        (h @ w).sum().backward()
        found, x.grad = x.grad, None
        return h, found

    tt.manual_seed(11)
    first, second = Graph(program).check(0), Graph(program).check(0)
    assert first.plan is second.plan
    assert not np.array_equal(first.by_plan[0], second.by_plan[0])
    tt.manual_seed(2**64 - 3)
    third = Graph(program).check(0)
    assert third.plan is first.plan
    assert not np.array_equal(first.by_plan[1], third.by_plan[1])
    for group in first.plan.groups:
        assert 11 not in group.numbers
        assert isinstance(hash(group.tape), int)


@DEVICES
@pytest.mark.parametrize("forms", ["backward at once", "a value asked between", "forward not needed"])
def test_lazy_training_is_eager_training(device: str, forms: str) -> None:
    """Over known paths, too, where backward draws what this run's forward has drawn."""
    start, data = rng.normal(size=(12, 12)).astype(np.float32), rng.normal(size=(8, 12)).astype(np.float32)

    def trained(lazily: bool) -> list[Any]:
        tt.manual_seed(5)
        w, x = tt.tensor(start, device=device, requires_grad=True), tt.tensor(data, device=device)
        found: list[Any] = []

        def step() -> Any:
            h = F.dropout(F.dropout(x @ w, 0.5) * 2 + tt.rand(8, 12, device=device), 0.3)
            loss = h.sum() if forms == "forward not needed" else (h * h).sum()
            if forms == "a value asked between":
                found.append(float(loss))
            loss.backward()
            with tt.no_grad():
                w.sub_(w.grad * 0.001)
            w.grad = None
            return None if forms == "forward not needed" else loss.detach()

        for _ in range(8):
            if lazily:
                with tt.lazy():
                    loss = step()
            else:
                loss = step()
            found.append(numpy(w))
            if loss is not None:
                found.append(float(loss))
        return found

    for a, b in zip(trained(True), trained(False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_each_replay_of_a_graph_draws_anew() -> None:
    x = tt.ones(64, device="cuda", requires_grad=True)

    def step() -> Any:
        with tt.lazy():
            y = F.dropout(x * 2, 0.5) + 1
            y.sum().backward()
            found, x.grad = x.grad, None
            return y.detach(), found

    for _ in range(4):  # so that the path is known
        step()
    graph = tt.cuda.CUDAGraph()
    tt.manual_seed(0)
    with tt.cuda.graph(graph):
        y, gradient = step()
    drawn = []
    for _ in range(3):
        graph.replay()
        drawn.append((numpy(y), numpy(gradient)))
    tt.manual_seed(0)
    for found in drawn:
        for a, b in zip(found, step(), strict=True):
            assert np.array_equal(a, numpy(b))
    assert not np.array_equal(drawn[0][0], drawn[1][0])


def test_each_replay_of_a_known_path_draws_anew() -> None:
    x = tt.ones(64, device="cuda")

    def step() -> Any:
        with tt.lazy():
            return F.dropout(x * 2, 0.5) + 1

    for _ in range(4):
        step()
    graph = tt.cuda.CUDAGraph()
    tt.manual_seed(0)
    with tt.cuda.graph(graph):
        y = step()
    drawn = []
    for _ in range(3):
        graph.replay()
        drawn.append(numpy(y))
    tt.manual_seed(0)
    assert all(np.array_equal(found, numpy(step())) for found in drawn)
