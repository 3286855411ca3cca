"""Groups of programs that people write by hand: how many there are, and that they give what the calls give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.fusion.graphs import Graph

rng = np.random.default_rng(0)


def leaf(*shape: int, grad: bool = False) -> Any:
    return tt.tensor(rng.normal(size=shape).astype(np.float32), requires_grad=grad)


def gelu(x: Any) -> Any:
    return 0.5 * x * (1 + tt.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def layer_norm(x: Any, w: Any, b: Any) -> Any:
    mean = x.mean(-1, keepdim=True)
    var = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / tt.sqrt(var + 1e-5) * w + b


def test_gelu_by_hand_is_one_tape() -> None:
    x = leaf(4, 33)
    g = Graph(lambda: gelu(x)).check()
    assert len(g.groups) == 1
    assert len(g.groups[0]) == 8
    assert not g.alone
    (group,) = g.plan.groups
    assert group.shape == (132,)
    assert not group.rows
    assert (len(group.inputs), len(group.outs)) == (1, 1)
    assert not group.tape.folds


def test_swiglu_between_products() -> None:
    x, up, gate, down = leaf(8, 16), leaf(16, 32), leaf(16, 32), leaf(32, 16)

    def program() -> Any:
        a = x @ gate
        return ((a * tt.sigmoid(a)) * (x @ up)) @ down

    g = Graph(program).check()
    assert g.groups == [["sigmoid", "mul", "mul"]]
    assert g.alone == ["matmul"] * 3


def test_adam_by_hand_is_one_group() -> None:
    p, grad, m, v = leaf(5, 7), leaf(5, 7), leaf(5, 7), abs(leaf(5, 7))

    def program() -> Any:
        first = 0.9 * m + 0.1 * grad
        second = 0.999 * v + 0.001 * grad * grad
        return p - 0.01 * (first / (1 - 0.9**3)) / (tt.sqrt(second / (1 - 0.999**3)) + 1e-8), first, second

    g = Graph(program).check()
    assert len(g.groups) == 1
    assert not g.alone
    (group,) = g.plan.groups
    assert (len(group.inputs), len(group.outs)) == (4, 3)


@pytest.mark.parametrize("shape", [(6, 10), (2, 3, 10)])
def test_layer_norm_by_hand_is_one_group_of_rows(shape: tuple[int, ...]) -> None:
    x, w, b = leaf(*shape), leaf(10), leaf(10)
    g = Graph(lambda: layer_norm(x, w, b)).check()
    assert len(g.groups) == 1
    assert not g.alone
    (group,) = g.plan.groups
    assert group.shape == (6, 10)
    assert group.kept == 1
    assert [x.shape for x in group.inputs] == [(6, 10), (1, 10), (1, 10)]


def test_cross_entropy_with_one_hot_by_hand() -> None:
    x, t = leaf(6, 11), tt.tensor(np.eye(11, dtype=np.float32)[rng.integers(0, 11, 6)])

    def program() -> Any:
        z = x - x.amax(-1, keepdim=True)
        return -((z - tt.log(tt.exp(z).sum(-1, keepdim=True))) * t).sum(-1)

    g = Graph(program).check()
    assert len(g.groups) == 1
    assert not g.alone
    (group,) = g.plan.groups
    assert group.outs[0].shape == (6, 1)


def test_cell_has_one_group_behind_its_products() -> None:
    x, h, wx, wh, b = leaf(4, 5), leaf(4, 8), leaf(5, 8), leaf(8, 8), leaf(8)
    g = Graph(lambda: tt.tanh(x @ wx + h @ wh + b)).check()
    assert g.groups == [["add", "add", "tanh"]]
    assert g.alone == ["matmul", "matmul"]


def test_diamond() -> None:
    x = leaf(3, 4)

    def program() -> Any:
        y = tt.exp(x)
        return tt.sin(y) * tt.cos(y)

    g = Graph(program).check()
    assert g.groups == [["exp", "sin", "cos", "mul"]]


def test_another_way_leads_through_a_product() -> None:
    x, w = leaf(4, 4), leaf(4, 4)

    def program() -> Any:
        y = tt.exp(x) + 1
        return y * (y @ w) - 2

    g = Graph(program).check()
    assert g.groups == [["exp", "add"], ["mul", "sub"]]
    assert "another way leads through matmul" in [r.why for r in g.plan.why]


def test_wanted_values_between_are_stored_and_dropped_ones_not_computed() -> None:
    x = leaf(3, 4)

    def program() -> Any:
        y = tt.exp(x)
        z = y + 1
        tt.sin(z)
        return y, z * 2

    g = Graph(program).check()
    assert g.groups == [["exp", "add", "mul"]]
    assert len(g.plan.groups[0].outs) == 2


def test_scalar_is_not_spread_over_a_large_space_as_a_row() -> None:
    x = leaf(300, 200)
    g = Graph(lambda: x / (x * x).sum()).check()
    assert g.groups == [] or all(len(c) == 1 for c in g.groups)
    assert "sum" in g.alone
    assert "it needs the whole sum first" in [r.why for r in g.plan.why]


def test_whole_of_few_elements_is_a_row() -> None:
    x = leaf(30, 20)
    g = Graph(lambda: x / (x * x).sum() + 1).check()
    assert g.groups == [["mul", "sum", "div", "add"]]
    assert g.plan.groups[0].shape == (1, 600)
    assert g.plan.groups[0].kept == 1


def test_reshapes_between_steps_do_not_end_a_group() -> None:
    x = leaf(4, 6)
    g = Graph(lambda: (tt.exp(x).reshape(2, 2, 6, 1) * 2).reshape(24).sin()).check()
    assert g.groups == [["exp", "mul", "sin"]]
    g = Graph(lambda: tt.exp(x).transpose(0, 1) * 2 + 1).check()
    assert g.groups == [["exp", "mul", "add"]]


def test_parts_of_a_value_are_read_from_memory() -> None:
    x = leaf(4, 6)

    def program() -> Any:
        y = tt.exp(x) + 1
        return y[:, :3] * y[:, 3:] + 2

    g = Graph(program).check()
    assert g.groups == [["exp", "add"], ["mul", "add"]]


def test_columns_are_summed_by_a_kernel_of_their_own() -> None:
    x = leaf(64, 6)
    g = Graph(lambda: (tt.exp(x) + 1).sum(0)).check()
    assert g.alone == ["sum"]
    assert "it folds leading axes" in [r.why for r in g.plan.why]


def test_limits() -> None:
    x = leaf(3)

    def program() -> Any:
        y = x
        for _ in range(100):
            y = y * 1.01
        return y

    g = Graph(program).check()
    assert [len(c) for c in g.groups] == [64, 36]
    many = [leaf(3) for _ in range(40)]

    def sums() -> Any:
        y = many[0]
        for x in many[1:]:
            y = y + x
        return y

    g = Graph(sums).check()
    assert all(len(i.inputs) + len(i.outs) <= 24 for i in g.plan.groups)
    assert len(g.groups) == 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32"])
def test_types(dtype: str) -> None:
    x = (leaf(4, 5) * 3).to(getattr(tt, dtype))
    g = Graph(lambda: tt.where(x * 2 + 1 > x, x * x, -x)).check(1e-2 if dtype.endswith("16") else 1e-6)
    assert len(g.groups) == 1


def test_forward_and_backward_are_one_graph() -> None:
    x, w, b = leaf(6, 10, grad=True), leaf(10, grad=True), leaf(10, grad=True)

    def program() -> Any:
        gelu(layer_norm(x, w, b)).sum().backward()
        return x.grad, w.grad, b.grad

    g = Graph(program).check(1e-4)
    assert len(g.groups) == 1, g.groups
    assert g.alone == ["sum", "sum"]


def test_gradients_of_the_adam_and_entropy_programs() -> None:
    x, t = leaf(6, 11, grad=True), tt.tensor(np.eye(11, dtype=np.float32)[rng.integers(0, 11, 6)])

    def program() -> Any:
        z = x - x.amax(-1, keepdim=True)
        (-((z - tt.log(tt.exp(z).sum(-1, keepdim=True))) * t).sum(-1)).mean().backward()
        return x.grad

    g = Graph(program).check(1e-4)
    assert len(g.plan.items) <= 3, (g.groups, g.alone)


def test_blocks_of_a_transformer_by_hand() -> None:
    """Norm and gelu by hand, a block three groups: each norm with the sums before it, the activation, the sums at the end; in backward as many."""
    width, blocks = 16, 3

    def parameters() -> list[Any]:
        shapes = [
            (width,),
            (width,),
            (width, width),
            (width,),
            (width,),
            (width,),
            (width, 4 * width),
            (4 * width,),
            (4 * width, width),
            (width,),
        ]
        return [leaf(*s, grad=True) for s in shapes]

    def block(x: Any, p: list[Any]) -> Any:
        x = x + (layer_norm(x, p[0], p[1]) @ p[2] + p[3])
        return x + (gelu(layer_norm(x, p[4], p[5]) @ p[6] + p[7]) @ p[8] + p[9])

    weights = [parameters() for _ in range(blocks)]
    x = leaf(2, 8, width)

    def forward() -> Any:
        y = x
        for p in weights:
            y = block(y, p)
        return (y * y).mean()

    with tt.no_grad():
        g = Graph(forward).check()
    assert len(g.calls) == blocks * 36 + 2
    assert g.alone == ["matmul"] * 3 * blocks
    assert len(g.groups) == blocks * 3 + 1

    def step() -> Any:
        forward().backward()
        return [w.grad for p in weights for w in p]

    g = Graph(step).check(1e-3)
    assert g.alone.count("matmul") == 3 * blocks
    assert g.alone.count("matmul backward") == 6 * blocks
    assert g.alone.count("sum") == 7 * blocks  # of columns, for what is added to all rows
    assert len(g.alone) == 16 * blocks + 1  # the gradient of the first norm is asked of its weight alone: a step by itself
    assert len(g.groups) == 2 * 3 * blocks
