"""Owners that keep a tensor's memory alive: globals, attributes, containers, frames, graphs, cycles, as why_alive names them."""

from __future__ import annotations

import gc
import re
import sys
import threading
import time
import types
from collections.abc import Iterator
from typing import Any

import pytest

import tritensor as tt
from tritensor.cuda.memory import leak_search, report
from tritensor.cuda.runtime.active import runtime


class Holder:
    """Holds something."""

    def __init__(self, value: Any = None) -> None:
        self.value = value


class Slotted:
    """Holds something in a slot."""

    __slots__ = ("kept",)


@pytest.fixture
def module() -> Iterator[types.ModuleType]:
    """A module whose globals hold what a test puts there."""
    made = types.ModuleType("holding")
    sys.modules["holding"] = made
    yield made
    del sys.modules["holding"]


class Vector:
    """Makes vectors on the GPU; each test has a size of its own, by which its memory is found among what other tests left."""

    size = 3000


@pytest.fixture(autouse=True)
def _new_size() -> None:
    Vector.size += 7


def vector() -> tt.Tensor:
    return tt.ones(Vector.size, device="cuda")


def holders() -> list[str]:
    """What is said of the one allocation that `vector` made."""
    nbytes = 4 * Vector.size
    (pointer,) = [b["address"] for b in tt.cuda.memory_snapshot() if b["size"] == nbytes]
    searched = leak_search.of_storages(runtime().allocator(0), [s for s in leak_search.storages_of(0) if s.pointer == pointer])
    assert report.size(nbytes) in searched
    return [line.strip().removeprefix("held by ") for line in searched.splitlines()[1:]]


def test_a_global(module: Any) -> None:
    module.x = vector()
    assert holders() == ["holding.x"]


def test_an_attribute_of_a_module_of_layers(module: Any) -> None:
    module.net = tt.nn.Sequential(tt.nn.Linear(1, 1), tt.nn.Linear(Vector.size, 1, bias=False)).to("cuda")
    assert holders() == ["holding.net.1.weight"]
    module.net[1].weight.grad = vector().reshape(1, Vector.size)
    assert "holding.net.1.weight.grad" in tt.cuda.why_alive(module.net[1].weight.grad)


def test_a_buffer_and_an_attribute_of_layers(module: Any) -> None:
    module.net = tt.nn.Module()
    module.net.register_buffer("mean", vector())
    assert holders() == ["holding.net.mean"]


def test_an_attribute_a_slot_and_a_class(module: Any) -> None:
    module.holder = Holder(Holder(vector()))
    assert holders() == ["holding.holder.value.value"]
    del module.holder
    module.slotted = Slotted()
    module.slotted.kept = vector()
    assert holders() == ["holding.slotted.kept"]
    del module.slotted
    # A class of the suite's own is frozen (tests/conftest.py), and what is frozen is not asked.
    module.Counted = type("Counted", (), {"__module__": module.__name__})
    module.Counted.shared = vector()
    assert holders() == [f"{module.__name__}.Counted.shared"]


def test_containers(module: Any) -> None:
    module.kept = {"steps": [None, (vector(),)]}
    assert holders() == ["holding.kept['steps'][1][0]"]
    module.kept = {vector(): 1}
    assert holders() == ["a key of holding.kept"]
    module.kept = {vector()}
    assert holders() == ["holding.kept (inside a set)"]


def test_a_local_variable() -> None:
    def train() -> list[str]:
        activation = vector()
        found = holders()
        assert activation is not None
        return found

    (text,) = train()
    assert re.fullmatch(r"local variable activation of .*train \(tests/cuda/memory/test_why_alive\.py:\d+\)", text)


def test_asking_keeps_nothing_alive() -> None:
    x = vector()
    gc.collect()  # what earlier tests left in cycles, which asking collects too
    before = tt.cuda.memory_allocated()
    holders()
    tt.cuda.why_alive(x)
    del x
    assert tt.cuda.memory_allocated() == before - 4 * Vector.size, "the report itself kept the tensor"


def test_a_local_variable_of_another_thread() -> None:
    ready, done = threading.Event(), threading.Event()

    def work() -> None:
        batch = vector()
        ready.set()
        done.wait()
        assert batch is not None

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        (text,) = holders()
        assert text.startswith("local variable batch of ")
    finally:
        done.set()
        thread.join()


def test_a_closure(module: Any) -> None:
    def make() -> Any:
        x = vector()

        def hook() -> Any:
            return x

        return hook

    module.hook = make()
    (text,) = holders()
    assert re.fullmatch(r"closure variable x of .*hook \(tests/cuda/memory/test_why_alive\.py:\d+\), which is holding\.hook", text)


def test_a_generator(module: Any) -> None:
    def batches() -> Iterator[int]:
        x = vector()
        yield 1
        assert x is not None

    module.stream = batches()
    next(module.stream)
    (text,) = holders()
    assert text.startswith("local variable x of ")
    assert text.endswith("kept by holding.stream")


def test_a_graph(module: Any) -> None:
    w = tt.ones(Vector.size, requires_grad=True, device="cuda")
    module.losses = []
    for _ in range(2):
        x = vector()
        module.losses.append((x * w).exp().sum())
        del x
    text = tt.cuda.why_alive(device=0, most=10_000)
    assert "held by the graph of holding.losses[0]: mul saved its input a" in text
    assert "held by the graph of holding.losses[1]: mul saved its input a" in text
    assert "held by the graph of holding.losses[0]: exp saved its output" in text
    assert re.search(r"held by the graph of holding\.losses\[[01]\]: a leaf of mul", tt.cuda.why_alive(w))
    assert "local variable w of test_a_graph" in tt.cuda.why_alive(w)


def test_what_a_users_function_saved(module: Any) -> None:
    class Double(tt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(vector())
            return x * 2.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2.0

    module.loss = Double.apply(tt.ones(2, requires_grad=True, device="cuda"))
    assert holders() == ["the graph of holding.loss: Double saved it with save_for_backward"]


def test_a_view(module: Any) -> None:
    module.part = vector()[:2]
    assert "holding.part" in holders()


def test_a_traceback(module: Any) -> None:
    def fails() -> None:
        batch = vector()
        raise ValueError(f"no good: {batch.shape}")

    try:
        fails()
    except ValueError as error:
        module.error = error
    (text,) = holders()
    assert text.startswith("local variable batch of ")
    assert text.endswith("kept by the traceback of holding.error (ValueError)")


def test_a_cycle() -> None:
    gc.collect()
    gc.disable()
    try:
        a = Holder(vector())
        a.me = a  # type: ignore[attr-defined]
        del a
        (text,) = holders()
        assert text == "a reference cycle (Holder <- dict <- Holder); gc.collect() frees it"
        gc.collect()
    finally:
        gc.enable()


def test_a_value_inside_an_expression() -> None:
    text = (lambda *_: tt.cuda.why_alive(device=0, most=10_000))(vector())
    found = [h for h in re.split(r"\n(?=\S)", text) if h.startswith(report.size(4 * Vector.size))]
    assert len(found) == 1
    assert "held by" in found[0]


def test_a_tensor_on_the_cpu(module: Any) -> None:
    module.x = tt.ones(7)
    text = tt.cuda.why_alive(module.x)
    assert "float32 (7,) on cpu, 28 B" in text
    assert "held by holding.x" in text


def test_long_graphs_are_walked_in_no_time(module: Any) -> None:
    x = tt.ones(1, device="cuda", requires_grad=True)
    y = x
    for _ in range(150):
        y = -y
    module.y = y
    del y
    start = time.process_time()
    text = tt.cuda.why_alive(x)
    assert time.process_time() - start < 5
    assert "held by the graph of holding.y: a leaf of neg" in text
