"""Plans on device cuda: groups are launches of the kernels of tapes."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.fusion.graphs import Graph
from tests.fusion.test_groups import gelu, layer_norm
from tests.fusion.test_random_graphs import BINARY, FOLDS, UNARY, VIEWS, WHOLE, WRITES, ask

rng = np.random.default_rng(2)


def leaf(*shape: int, grad: bool = False, dtype: Any = tt.float32) -> Any:
    return tt.tensor(rng.normal(size=shape).astype(np.float32), device="cuda").to(dtype).requires_grad_(grad)


@pytest.mark.parametrize("dtype", [tt.float32, tt.bfloat16])
def test_an_activation_and_a_norm(dtype: Any) -> None:
    x, w, b = leaf(6, 40, dtype=dtype), leaf(40, dtype=dtype), leaf(40, dtype=dtype)
    g = Graph(lambda: gelu(x)).check(0)  # each step is rounded as its own kernel would
    assert len(g.plan.items) == 1
    g = Graph(lambda: layer_norm(x, w, b)).check(2e-2 if dtype == tt.bfloat16 else 2e-5)
    assert len(g.plan.items) == 1


def test_forward_and_backward() -> None:
    x, w, b = leaf(2, 3, 10, grad=True), leaf(10, grad=True), leaf(10, grad=True)

    def program() -> Any:
        gelu(layer_norm(x, w, b)).sum().backward()
        return x.grad, w.grad, b.grad

    g = Graph(program).check(1e-4)
    assert len(g.groups) == 1
    assert g.alone == ["sum", "sum"]


def test_a_mask_that_repeats_over_heads_is_added_before_the_rows() -> None:
    """One stride leads from a row of it to the next for the CPU's two axes, and none for a GPU's one."""

    def program(x: Any, mask: Any) -> Any:
        z = x / math.sqrt(2) + mask
        z = tt.exp(z - z.amax(-1, keepdim=True))
        return z / z.sum(-1, keepdim=True)

    x, mask = leaf(2, 2, 3, 4), leaf(3, 4)
    g = Graph(lambda: program(x, mask)).check()
    assert len(g.groups) == 2
    assert "its rows lie in several pieces" in [r.why for r in g.plan.why]
    x, mask = x.cpu(), mask.cpu()
    assert len(Graph(lambda: program(x, mask)).check().groups) == 1


@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed: int) -> None:
    draw = random.Random(seed)
    kinds = (*UNARY, *UNARY, *BINARY, *BINARY, *FOLDS, *VIEWS, *WHOLE, *WRITES)
    written = [
        (draw.choice(kinds), draw.randrange(8), draw.randrange(8), draw.randrange(2), round(draw.uniform(-2, 2), 2))
        for _ in range(draw.randrange(2, 14))
    ]
    ask(written, draw.randrange(1 << 14), (draw.randrange(1, 5), draw.randrange(2, 6)), seed, draw.random() < 0.5, "cuda")


def test_the_gradient_of_a_formula_of_two_operations() -> None:
    x, end, weight = leaf(7), leaf(7), leaf(7, grad=True)

    def program() -> Any:
        (tt.lerp(x, end, weight) * 2).sum().backward()
        return weight.grad

    assert len(Graph(program).check(1e-5).plan.items) == 1


@pytest.mark.parametrize("dtype", [tt.bfloat16, tt.float16])
def test_values_of_one_row_in_16_bits(dtype: tt.dtype) -> None:
    x = leaf(1, 5).to(dtype)

    def program() -> Any:
        total, largest = x.sum(-1, keepdim=True), x.amax(-1, keepdim=True)
        return total * largest + total - largest, x * total

    Graph(program).check(0)
