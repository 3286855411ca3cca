"""Patterns: attention written op by op becomes the library's own op, with the same values, and near misses are left as they are."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.fusion.graphs import Graph
from tritensor.cuda.runtime import active
from tritensor.fusion.patterns import attention, rewriting
from tritensor.nn import functional as F
from tritensor.ops import replay

rng = np.random.default_rng(5)
ON = ("cpu", "cuda")
INF = float("inf")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let arrays of a few elements be worth the op."""
    monkeypatch.setattr(attention, "LEAST", 0)
    replay.forget()


def leaf(*shape: int, on: str = "cpu", grad: bool = False, dtype: Any = tt.float32) -> Any:
    return tt.tensor(rng.normal(size=shape).astype(np.float32), device=on).to(dtype).requires_grad_(grad)


def triangle(n: int, on: str) -> Any:
    return tt.tensor(np.tril(np.ones((n, n), np.float32)), device=on)


def names(g: Graph) -> list[str]:
    return [name for name, _ in g.plan.patterns]


def op_of(on: str) -> str:
    return "attention" if on == "cpu" else "flash_attention"


# -- attention
CHAINS: dict[str, Callable[..., Any]] = {
    "bare": lambda q, k, v, m: (q @ k.transpose(-2, -1)).softmax(-1) @ v,
    "times": lambda q, k, v, m: ((q @ k.transpose(-2, -1)) * 0.37).softmax(-1) @ v,
    "times before": lambda q, k, v, m: (0.37 * (q @ k.mT)).softmax(dim=3) @ v,
    "divided": lambda q, k, v, m: ((q @ k.transpose(2, 3)) / math.sqrt(3)).softmax(-1) @ v,
    "both": lambda q, k, v, m: ((q @ k.transpose(2, 3)) / 7 * 2).softmax(-1) @ v,
    "filled": lambda q, k, v, m: ((q @ k.mT) * 0.5).masked_fill(m == 0, -INF).softmax(-1) @ v,
    "where": lambda q, k, v, m: tt.where(m != 0, (q @ k.mT) * 0.5, -INF).softmax(-1) @ v,
    "added": lambda q, k, v, m: ((q @ k.mT) * 0.5 + m).softmax(-1) @ v,
    "added before": lambda q, k, v, m: (m[0] + (q @ k.mT) * 0.5).softmax(-1) @ v,
    "added and filled": lambda q, k, v, m: ((q @ k.mT) * 0.5 + m).masked_fill(m == 0, -INF).softmax(-1) @ v,
    "functions": lambda q, k, v, m: tt.matmul(F.softmax(tt.div(tt.matmul(q, k.permute(0, 1, 3, 2)), 2.5), dim=-1), v),
    "cast": lambda q, k, v, m: ((q @ k.mT) * 0.5).double().softmax(-1).float() @ v,
    "many keys for one": lambda q, k, v, m: ((q @ k[:, :1].mT) * 0.5).softmax(-1) @ v[:, :1],
}


@pytest.mark.parametrize("on", ON)
@pytest.mark.parametrize("chain", CHAINS)
def test_attention(chain: str, on: str) -> None:
    q, k, v, m = leaf(2, 3, 5, 4, on=on), leaf(2, 3, 7, 4, on=on), leaf(2, 3, 7, 6, on=on), leaf(5, 7, on=on)
    m = m * (m > -0.5)
    g = Graph(lambda: CHAINS[chain](q, k, v, m)).check()
    assert names(g) == ["attention"]
    assert [a for a in g.alone if a != "add"] == [op_of(on)]
    with rewriting.only():
        other = Graph(lambda: CHAINS[chain](q, k, v, m)).check()
    assert names(other) == []
    assert other.alone.count("matmul") == 2


@pytest.mark.parametrize("on", ON)
def test_causal_attention_needs_no_mask(on: str) -> None:
    q, k, v = leaf(2, 3, 8, 4, on=on), leaf(2, 3, 8, 4, on=on), leaf(2, 3, 8, 4, on=on)
    ones = {"device": on}
    masks: list[Callable[[Any], Any]] = [
        lambda s: s.masked_fill(tt.tril(tt.ones(8, 8, **ones)) == 0, -INF),
        lambda s: s.masked_fill(~tt.ones(8, 8, dtype=tt.bool, **ones).tril(), -INF),
        lambda s: s.masked_fill(tt.triu(tt.ones(8, 8, dtype=tt.bool, **ones), diagonal=1), -INF),
        lambda s: tt.where(tt.tril(tt.ones(8, 8, **ones)).view(1, 1, 8, 8) != 0, s, -INF),
        lambda s: s + tt.triu(tt.full((8, 8), -INF, **ones), diagonal=1),
    ]
    for mask in masks:
        g = Graph(lambda mask=mask: mask((q @ k.mT) / 2).softmax(-1) @ v).check()
        assert names(g) == ["attention"]
        (item,) = g.plan.items
        assert item.attrs["causal"] is True  # type: ignore[union-attr]
        assert item.given[3] is None  # type: ignore[union-attr]
    g = Graph(lambda: ((q @ k.mT) / 2).masked_fill(tt.tril(tt.ones(8, 8, **ones), diagonal=1) == 0, -INF).softmax(-1) @ v).check()
    assert names(g) == ["attention"]
    assert g.plan.items[-1].attrs["causal"] is False  # type: ignore[union-attr]


@pytest.mark.parametrize("on", ON)
def test_products_of_merged_heads(on: str) -> None:
    q, k, v, m = leaf(2, 3, 5, 4, on=on), leaf(2, 3, 7, 4, on=on), leaf(2, 3, 7, 6, on=on), leaf(2, 1, 5, 7, on=on)

    def summed() -> Any:
        s = tt.einsum("bhqd,bhkd->bhqk", q, k) * 0.5
        return tt.einsum("bhqk,bhkd->bhqd", s.softmax(-1), v)

    def merged() -> Any:
        a, b, c = q.view(6, 5, 4), k.view(6, 7, 4), v.view(6, 7, 6)
        s = tt.bmm(a, b.transpose(1, 2)).view(2, 3, 5, 7) * 0.5 + m
        return tt.bmm(s.view(6, 5, 7).softmax(-1), c)

    for program in (summed, merged):
        assert names(Graph(program).check()) == ["attention"]


@pytest.mark.parametrize("on", ON)
def test_a_row_that_sees_nothing_is_nan_as_by_hand(on: str) -> None:
    q, k, v = leaf(2, 5, 4, on=on), leaf(2, 5, 4, on=on), leaf(2, 5, 4, on=on)
    seen = tt.tensor(np.tril(np.ones((5, 5)), -1) != 0, device=on)
    added = tt.where(seen, 0.0, -INF)
    for chain in (lambda s: s.masked_fill(~seen, -INF), lambda s: s + added, lambda s: (s + added).masked_fill(seen, -INF)):
        g = Graph(lambda chain=chain: chain((q @ k.mT) * 0.5).softmax(-1) @ v).check()  # which asks for NaN at the same places
        assert names(g) == ["attention"]
        assert np.isnan(g.by_plan[0][:, 0]).all()


@pytest.mark.parametrize("on", ON)
def test_heads_that_go_back_beside_each_other_are_not_copied(on: str) -> None:
    x, w, out, m = leaf(2, 8, 12, on=on), leaf(36, 12, on=on), leaf(12, 12, on=on), triangle(8, on).view(1, 1, 8, 8)

    def block() -> Any:  # nanoGPT's CausalSelfAttention
        b, t, c = x.shape
        q, k, v = F.linear(x, w).split(12, dim=2)
        q, k, v = (a.view(b, t, 3, 4).transpose(1, 2) for a in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = F.softmax(att.masked_fill(m[:, :, :t, :t] == 0, -INF), dim=-1)
        return F.linear((att @ v).transpose(1, 2).contiguous().view(b, t, c), out)

    g = Graph(block).check()
    assert names(g) == ["attention"]
    assert g.alone == ["linear", op_of(on), "linear"]
    assert len(g.groups) == 1  # the mask's
    kept = Graph(lambda: (block(), ((x @ x.mT) * 0.5).softmax(-1) @ x)).check()
    assert names(kept) == ["attention", "attention"]


def test_a_result_lies_as_the_product_said() -> None:
    q, k, v = (leaf(2, 5, 3, 4).transpose(1, 2) for _ in range(3))
    with tt.lazy():
        y = ((q @ k.mT) * 0.5).softmax(-1) @ v
        said = y.stride()
    assert y.stride() == said == (60, 20, 4, 1)


@pytest.mark.parametrize("on", ON)
def test_gradients_of_attention(on: str) -> None:
    q, k_t, v, m = (
        leaf(2, 3, 5, 4, on=on, grad=True),
        leaf(2, 3, 4, 7, on=on, grad=True),
        leaf(2, 3, 7, 4, on=on, grad=True),
        leaf(5, 7, on=on),
    )
    chains: list[Callable[..., Any]] = [
        lambda q, k_t, v: ((q @ k_t) * 0.5).softmax(-1) @ v,
        lambda q, k_t, v: ((q @ k_t) / 3).masked_fill(m > 1, -INF).softmax(-1) @ v,
        lambda q, k_t, v: (m + (q @ k_t) / 3).softmax(-1) @ v,
        lambda q, k_t, v: ((q @ k_t) / 3).double().softmax(-1).float() @ v,
    ]
    for chain in chains:
        for wanted in ([q, k_t, v], [q], [k_t, v]):

            def program(chain: Any = chain, wanted: Any = wanted) -> Any:
                y = chain(q * 1, k_t * 1, v * 1)
                return y.detach(), tt.autograd.grad((y * y).sum(), wanted)

            g = Graph(program).check()
            assert names(g) == ["attention"]
            assert [a for a in g.alone if "attention" in a] == [op_of(on), f"{op_of(on)} backward"]
            assert not any(["softmax" in a or "matmul" in a for a in g.alone])


def test_a_mask_that_wants_a_gradient_keeps_the_chain() -> None:
    q, k_t, v, m = leaf(2, 5, 4, grad=True), leaf(2, 4, 7, grad=True), leaf(2, 7, 4, grad=True), leaf(2, 5, 7, grad=True)
    g = Graph(lambda: tt.autograd.grad(((((q * 1) @ (k_t * 1)) + m * 1).softmax(-1) @ (v * 1)).sum(), [q, m])).check()
    assert names(g) == []
    assert "softmax backward" in g.alone


NEAR: dict[str, Callable[..., Any]] = {
    "another axis": lambda q, k, v, m: (q @ k.mT).softmax(-2) @ v,
    "held scores": lambda q, k, v, m: (s := (q @ k.mT) * 0.5, s.softmax(-1) @ v),
    "held weights": lambda q, k, v, m: (w := (q @ k.mT).softmax(-1), w @ v),
    "weights read twice": lambda q, k, v, m: (lambda w: w @ v + w.sum(-1, keepdim=True))((q @ k.mT).softmax(-1)),
    "a tensor as scale": lambda q, k, v, m: ((q @ k.mT) * m[0, 0]).softmax(-1) @ v,
    "a scale below 0": lambda q, k, v, m: ((q @ k.mT) * -0.5).softmax(-1) @ v,
    "a number added": lambda q, k, v, m: ((q @ k.mT) + 0.5).softmax(-1) @ v,
    "filled with a finite number": lambda q, k, v, m: (q @ k.mT).masked_fill(m > 1, -1e9).softmax(-1) @ v,
    "filled with infinity": lambda q, k, v, m: (q @ k.mT).masked_fill(m > 1, INF).softmax(-1) @ v,
    "scaled behind the mask": lambda q, k, v, m: ((q @ k.mT + m) * 0.5).softmax(-1) @ v,
    "a larger mask": lambda q, k, v, m: ((q[:, :1] @ k[:, :1].mT) + m.expand(2, 3, 5, 5)).softmax(-1) @ v,
    "a mask of another type": lambda q, k, v, m: (((q @ k.mT).double() + m.double()).softmax(-1)).float() @ v,
    "something between": lambda q, k, v, m: (q @ k.mT).tanh().softmax(-1) @ v,
    "weights transposed": lambda q, k, v, m: (q @ k.mT).softmax(-1).mT @ v,
    "scores transposed": lambda q, k, v, m: (q @ k.mT).mT.softmax(-1) @ v,
    "log": lambda q, k, v, m: (q @ k.mT).log_softmax(-1) @ v,
    "a vector": lambda q, k, v, m: (q @ k.mT).softmax(-1) @ v[0, 0, :, 0],
}


@pytest.mark.parametrize("near", NEAR)
def test_near_misses_of_attention_stay(near: str) -> None:
    q, k, v, m = leaf(2, 3, 5, 4), leaf(2, 3, 5, 4), leaf(2, 3, 5, 4), leaf(5, 5)
    g = Graph(lambda: NEAR[near](q, k, v, m)).check()
    assert names(g) == []
    assert g.alone.count("matmul") == 2


def test_few_weights_are_no_work_for_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = leaf(2, 3, 5, 4), leaf(2, 3, 5, 4), leaf(2, 3, 5, 4)
    monkeypatch.setattr(attention, "LEAST", 2 * 3 * 5 * 5 + 1)
    assert names(Graph(lambda: (q @ k.mT).softmax(-1) @ v).check()) == []
    assert attention.LEAST < 8 * 12 * 256 * 256


@pytest.mark.parametrize("on", ON)
def test_other_scales_share_a_plan(on: str) -> None:
    q, k, v = leaf(2, 5, 4, on=on), leaf(2, 5, 4, on=on), leaf(2, 5, 4, on=on)

    def scaled(by: float, after: float = 1.5) -> Graph:
        return Graph(lambda: (((q @ k.mT) / by).softmax(-1) @ v) * after).check()

    first = scaled(2.0)
    assert names(first) == ["attention"]
    for by, after in ((0.5, 3.0), (7.0, -1.0)):
        g = scaled(by, after)
        assert (g.plan is first.plan) == (after > 0)
        assert names(g) == ["attention"]
    assert names(scaled(-2.0)) == []  # which divides by a number of the same type


def test_a_fill_is_part_of_the_structure() -> None:
    q, k, v, m = leaf(2, 5, 4), leaf(2, 5, 4), leaf(2, 5, 4), leaf(5, 5) > 0

    def filled(by: float) -> Graph:
        return Graph(lambda: (q @ k.mT).masked_fill(m, by).softmax(-1) @ v).check()

    assert [names(filled(by)) for by in (-INF, -1e9, -INF, -1e4)] == [["attention"], [], ["attention"], []]


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16])
@pytest.mark.parametrize("on", ON)
def test_the_op_is_nearer_to_the_truth(on: str, dtype: Any) -> None:
    q, k, v = (leaf(4, 33, 16, on=on, dtype=dtype) for _ in range(3))
    g = Graph(lambda: ((q @ k.mT) * 0.25).softmax(-1) @ v)
    assert names(g) == ["attention"]
    a, b, c = (x.double().cpu().numpy() for x in (q, k, v))
    s = np.exp(a @ b.swapaxes(-1, -2) * 0.25)
    truth = s / s.sum(-1, keepdims=True) @ c
    by_op, by_hand = (np.abs(x[0].astype(np.float64) - truth).mean() for x in (g.by_plan, g.by_calls))
    assert by_op <= by_hand


def launches(program: Callable[[], Any], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels that a lazy program launches when it is run."""
    seen: list[str] = []
    runtime = active.runtime()
    with monkeypatch.context() as patch:
        before = runtime.launch
        patch.setattr(runtime, "launch", lambda call: (seen.append(call.kernel.__name__), before(call))[1])
        replay.forget()  # a recording knows what it calls
        with tt.lazy():
            y = program()
        y.cpu()
    replay.forget()
    return seen


def test_launches_of_attention_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v, m = (leaf(2, 3, 16, 16, on="cuda") for _ in range(4))

    def program() -> Any:
        return ((q @ k.mT) * 0.25).softmax(-1) @ v

    assert launches(program, monkeypatch) == ["_forward_kernel"]
    with rewriting.only():
        assert len(launches(program, monkeypatch)) == 4
        assert len(launches(lambda: (((q @ k.mT) * 0.25).masked_fill(m > 1, -INF)).softmax(-1) @ v, monkeypatch)) == 4
    assert len(launches(lambda: (((q @ k.mT) * 0.25).masked_fill(m > 1, -INF)).softmax(-1) @ v, monkeypatch)) == 2


# -- all of them
def test_what_was_found_is_told_by_the_places_of_calls() -> None:
    q, k, v, x, y = leaf(2, 5, 4), leaf(2, 5, 4), leaf(2, 5, 4), leaf(6, 5), tt.tensor(np.arange(6) % 5)
    g = Graph(lambda: (((q @ k.mT) * 0.5).softmax(-1) @ v * 2 + 1, F.nll_loss(tt.log_softmax(x, 1), y))).check()
    assert {name: [g.calls[p].name for p in places] for name, places in g.plan.patterns} == {
        "attention": ["matmul", "mul", "softmax", "matmul"], "cross_entropy": ["log_softmax", "nll_loss"],
    }  # fmt: skip
    assert g.groups == [["mul", "add"]]
    assert all([0 <= p < len(g.calls) for i in g.plan.items for p in i.calls])


def test_patterns_are_chosen_by_name() -> None:
    q, k, v, x, y = leaf(2, 5, 4), leaf(2, 5, 4), leaf(2, 5, 4), leaf(6, 5), tt.tensor(np.arange(6) % 5)

    def found() -> list[str]:
        return names(Graph(lambda: ((q @ k.mT).softmax(-1) @ v, F.nll_loss(tt.log_softmax(x, 1), y))).check())

    with rewriting.only("cross_entropy"):
        assert found() == ["cross_entropy"]
    assert found() == ["attention", "cross_entropy"]
    with (
        pytest.raises(ValueError, match="patterns: softmin is none of attention, cross_entropy, linear_cross_entropy, softmax"),
        rewriting.only("softmin"),
    ):
        pass


@pytest.mark.parametrize("seed", range(40))
def test_random_chains(seed: int) -> None:
    """Scales, masks, casts, layouts and broadcasts of leading sizes in any order: replaced or not, the values are those of the calls."""
    draw = random.Random(seed)
    lead = draw.choice([(), (3,), (2, 3), (2, 1, 2)])
    length, keys, size = draw.randrange(1, 6), draw.randrange(1, 6), draw.randrange(1, 5)
    short = tuple([draw.choice([1, n]) for n in lead])
    q, k, v = (
        leaf(*lead, length, size),
        leaf(*draw.choice([lead, short]), keys, size),
        leaf(*draw.choice([lead, short]), keys, draw.randrange(1, 5)),
    )
    if draw.random() < 0.5:
        k = leaf(*k.shape[:-2], size, keys).mT
    steps = [draw.choice(["mul", "div", "fill", "where", "add", "cast", "view", "neg"]) for _ in range(draw.randrange(5))]
    masks = [leaf(*draw.choice([(length, keys), (keys,), (length, 1), (*short, length, keys)])) for _ in steps]
    numbers = [draw.choice([0.5, 2, 3.0, -1.0]) for _ in steps]

    def program() -> Any:
        s = q @ k.mT
        for step, m, n in zip(steps, masks, numbers, strict=True):
            if step == "mul":
                s = s * n
            elif step == "div":
                s = s / n
            elif step == "fill":
                s = s.masked_fill(m > 0.8, -INF)
            elif step == "where":
                s = tt.where(m < 0.9, s, -INF)
            elif step == "add":
                s = s + m
            elif step == "cast":
                s = s.double().float()
            elif step == "view":
                s = s.reshape(-1, length, keys).reshape(s.shape)
            else:
                s = -s
        return s.softmax(-1) @ v

    g = Graph(program).check()
    if names(g):
        assert "neg" not in steps
        assert "softmax" not in g.alone
