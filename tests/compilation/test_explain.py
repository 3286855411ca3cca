"""`explain`: what is told of one run, and the printed calls, which run."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.compilation.models import MODELS, OPTIMIZERS, train
from tritensor import nn
from tritensor.compilation.explain import Explanation
from tritensor.compilation.printed import Graph, leaves_of
from tritensor.lazy_evaluation import segment as segments
from tritensor.ops.lazy_array import at_once

HERE = Path(__file__).name


def asking(x: tt.Tensor, w: tt.Tensor) -> tuple[tt.Tensor, tt.Tensor]:
    h = (x @ w).tanh() * 2
    if h.sum().item() > 1e9:
        return h, h
    y = h.exp() + 1
    return y, h


def explained(f: Any, *args: Any) -> Explanation:
    found = tt.compiler.explain(f)(*args)
    assert isinstance(found, Explanation)
    return found


def test_segments_and_what_ended_them() -> None:
    x, w = tt.randn(4, 3), tt.randn(3, 3)
    found = explained(asking, x, w)
    first, second = found.segments
    assert first.calls == ["matmul", "tanh", "mul", "sum"]
    assert first.why == "item asks for a value"
    assert first.line.endswith(f"{HERE}:{asking.__code__.co_firstlineno + 2}")
    assert second.calls == ["exp", "add"]
    assert second.why == "the end of asking"
    assert [g.calls for g in first.groups] == [("matmul",), ("tanh", "mul", "sum")]
    assert [g.fused for g in first.groups] == [False, True]
    assert (first.before.launches, first.after.launches, second.after.launches) == (4, 2, 1)
    assert ("matmul", "tanh", "matmul is a kernel of its own") in first.apart
    # x, w and the product; then the product, what is returned, and the sum
    assert (first.after.bytes, second.after.bytes) == (4 * (12 + 9 + 12) + 4 * (12 + 12 + 1), 4 * (12 + 12))
    assert second.before.bytes == 4 * (2 * 12 + 2 * 12)
    text = str(found)
    assert text == repr(found)
    assert "asking: 2 segments, 6 calls" in text
    assert f"segment 1: 4 calls until item asks for a value, at {first.line}" in text
    assert "fused      100 B  tanh, mul, sum" in text
    want = asking(x, w)
    for got, expected in zip(found.result, want, strict=True):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-6)


def test_the_attributes_of_pytorchs_output() -> None:
    found = tt._dynamo.explain(asking)(tt.randn(4, 3), tt.randn(3, 3))
    assert (found.graph_count, found.graph_break_count, found.op_count) == (2, 1, 6)
    assert [r.reason for r in found.break_reasons] == ["item asks for a value"]
    assert HERE in found.break_reasons[0].user_stack[0]
    assert found.break_reasons[0].graph_break
    assert found.ops_per_graph == [["matmul", "tanh", "mul", "sum"], ["exp", "add"]]
    assert len(found.graphs) == 2
    assert found.out_guards == []
    assert tt._dynamo.explain(asking, tt.randn(4, 3), tt.randn(3, 3)).graph_count == 2  # the older way


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (lambda y: y.numpy(), "numpy"),
        (lambda y: bool(y.sum() > 0), "a condition (bool)"),
        (lambda y: repr(y), "print or repr"),
        (lambda y: y.tolist(), "tolist"),
        (lambda y: float(y.sum()), "float()"),
        (lambda y: y.nonzero(), "nonzero"),
    ],
)
def test_whatever_asks_for_a_value_is_named(ask: Any, why: str) -> None:
    def f(x: tt.Tensor) -> tt.Tensor:
        y = x * 2
        ask(y)
        return y + 1

    assert explained(f, tt.ones(2)).segments[0].why.startswith(why)


def test_long_segments_end_by_themselves() -> None:
    def f(x: tt.Tensor) -> tt.Tensor:
        for _ in range(4100):
            x = x + 1
        return x

    found = explained(f, tt.ones(2))
    assert [len(s.calls) for s in found.segments] == [4096, 4]
    assert found.segments[0].why == "4096 calls"
    assert found.result.tolist() == [4101, 4101]


def test_a_disabled_function_is_told() -> None:
    @tt.compiler.disable(reason="slow")
    def apart(y: tt.Tensor) -> tt.Tensor:
        return y * 3

    found = explained(lambda x: apart(x + 1) + 1, tt.ones(2))
    assert [s.why for s in found.segments] == ["apart, which is not compiled", "the end of <lambda>"]


def test_what_nobody_holds_is_not_computed() -> None:
    def f(x: tt.Tensor) -> tt.Tensor:
        x.sin()
        return x.cos()

    found = explained(f, tt.ones(2))
    assert (len(found.segments[0].calls), found.segments[0].needed) == (2, 1)
    assert "1 calls were not computed: nobody holds what they lead to" in str(found)


def test_modules_and_their_settings() -> None:
    model = tt.compile(nn.Linear(3, 3), backend="inductor", mode="max-autotune", fullgraph=True)
    found = explained(model, tt.ones(2, 3))
    assert found.notes[0] == 'backend "inductor" means "tritensor" here'
    assert any("fullgraph=True" in n for n in found.notes)
    assert any('mode="max-autotune" runs as "default"' in n for n in found.notes)
    assert found.segments[0].why.startswith("the end of Linear; its results require grad")
    assert tt.ones(1)._array is not None
    assert type((tt.ones(1) * 2)._array) is np.ndarray  # no region is left open


def test_plans_that_were_known_are_told() -> None:
    tt.compiler.reset()
    assert [explained(asking, tt.randn(4, 3), tt.randn(3, 3)).segments[0].known for _ in range(2)] == [False, True]


def run_again(run: Callable[[], Any]) -> list[str]:
    """Run something lazily; each of its segments is printed, and run once more on copies of what it read: its results are to be the same."""
    found: list[str] = []

    def begun(segment: Any, why: str) -> Callable[[], None]:
        calls, held = segment.waits(), segment.held()
        wanted = [s.value for s in held]
        graph = Graph(calls, wanted)
        inputs = [tt.tensor(v.array.copy(order="K")) for v in leaves_of(calls, wanted)]

        def ended() -> None:
            with at_once():  # in the region, which is not over, it would be noted
                got = graph(*inputs)
            got = got if isinstance(got, tuple) else (got,)
            if not held:  # nobody wants anything of it
                return
            assert len(got) == len(held)
            for y, storage in zip(got, held, strict=True):
                np.testing.assert_allclose(np.asarray(y._array, float), np.asarray(storage.real, float), rtol=1e-5, atol=1e-6)
            found.append(graph.code)

        return ended

    tt.compiler.reset()
    segments.watchers.append(begun)
    try:
        with tt.lazy():
            kept = run()
    finally:
        segments.watchers.remove(begun)
    del kept
    return found


def test_printed_calls_run() -> None:
    x, w = tt.randn(4, 3), tt.randn(3, 3)
    assert len(run_again(lambda: asking(x, w))) == 2
    found = explained(asking, x, w)
    assert found.graphs[0].inputs == [((4, 3), "float32"), ((3, 3), "float32")]
    names: dict[str, Any] = {}
    exec(found.graph, names)
    h = next(y for y in names["f1"](x, w) if y.ndim)
    np.testing.assert_allclose(names["f2"](h).numpy(), found.result[0].numpy(), rtol=1e-6)
    assert HERE in found.graph


def test_printed_views_writes_and_types_run() -> None:
    def f() -> tt.Tensor:
        y = (tt.randn(3, 4) * 2).T[1:].to(tt.bfloat16)
        y[0] = 3
        y[:, 1] += 1
        return y.float().masked_fill(y.float() > 3, -math.inf).view(-1)

    (code,) = run_again(f)
    assert "window(" in code
    assert "write(" in code
    assert 'float("-inf")' in code


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("name", MODELS)
def test_printed_training_runs(name: str, optimizer: str) -> None:
    make, shape = MODELS[name]
    tt.manual_seed(0)
    model = make()
    found = run_again(lambda: train(model, model, shape, optimizer, steps=2))
    assert any("gradient(" in code for code in found)


@pytest.mark.parametrize("name", MODELS)
def test_forward_and_backward_are_one_segment(name: str) -> None:
    make, shape = MODELS[name]
    model = make()

    def f(x: tt.Tensor) -> tt.Tensor:
        model.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        return loss

    for _ in range(3):
        explained(f, tt.randn(*shape))  # the first runs may yet learn how the gradients of attention and of convolutions lie
    assert explained(f, tt.randn(*shape)).graph_count == 1


LOGS = """
import tritensor as tt
def f(x):
    y = x * 2
    y.sum().item()
    return y + 1
c = tt.compile(f)
c(tt.ones(2)); c(tt.ones(2))
"""


def logs(asked: str) -> str:
    run = subprocess.run([sys.executable, "-c", LOGS], env={**os.environ, "TORCH_LOGS": asked}, capture_output=True, text=True, check=True)
    return run.stderr


def test_logs_of_the_environment() -> None:
    said = logs("+graph_breaks,recompiles,graph,output_code")
    assert "[graph_breaks] <string>:5: item asks for a value, after 2 calls" in said
    assert said.count("[recompiles]") == 2  # one for each segment, and none in the second call
    assert "[graph]     mul = ops.mul(x, 2)" in said
    assert "[output_code] fused: mul, sum" in said
    assert logs("dynamo,guards") == ""
    assert "TORCH_LOGS: 'graph_brakes' is not known" in logs("graph_brakes")
