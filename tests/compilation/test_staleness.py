"""Nothing is stale: what PyTorch's users have reported of compiled functions that gave results of before, or had them overwritten."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import tritensor as tt
from tritensor import nn

factor = 2.0


def helper(x: tt.Tensor) -> tt.Tensor:
    return x + 1


class Lora(nn.Module):
    """A layer whose flag is read at each call."""

    def __init__(self) -> None:
        super().__init__()
        self.disabled = False
        self.config = SimpleNamespace(scale=1.0, sizes=[1])
        self.base, self.more = nn.Parameter(tt.ones(2)), nn.Parameter(tt.full((2,), 10.0))

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        y = x * self.base
        return y if self.disabled else y + self.more * self.config.scale


def value(t: tt.Tensor) -> float:
    return float(t.sum())


@pytest.mark.parametrize("grad", [False, True])
def test_attributes_of_modules(grad: bool) -> None:  # pytorch issues 98928, 124717
    model = Lora()
    compiled, x = tt.compile(model), tt.ones(2)
    with tt.set_grad_enabled(grad):
        for _ in range(3):
            assert value(compiled(x)) == 22
            model.disabled = True
            assert value(compiled(x)) == 2
            compiled.disabled = False
            assert value(compiled(x)) == 22


def test_the_dictionary_of_attributes() -> None:  # 197859
    model = Lora()
    compiled = tt.compile(model)
    assert value(compiled(tt.ones(2))) == 22
    model.__dict__["disabled"] = True
    assert value(compiled(tt.ones(2))) == 2
    model.__dict__.update(disabled=False)
    assert value(compiled(tt.ones(2))) == 22


def test_objects_that_attributes_hold() -> None:  # 111785
    model = Lora()
    compiled = tt.compile(model)
    for scale in (1.0, 2.0, 0.5, 2.0):
        model.config.scale = scale
        assert value(compiled(tt.ones(2))) == 2 + 20 * scale


def test_globals(monkeypatch: pytest.MonkeyPatch) -> None:  # 108898
    @tt.compile
    def f(x: tt.Tensor) -> tt.Tensor:
        return helper(x) * factor

    assert [f(tt.ones(1)).item(), f(tt.ones(1)).item()] == [4, 4]
    monkeypatch.setitem(globals(), "helper", lambda x: x * 100)
    assert f(tt.ones(1)).item() == 200
    monkeypatch.setitem(globals(), "factor", 3.0)
    assert f(tt.ones(1)).item() == 300


def test_cells_and_defaults() -> None:
    state = {"n": 1}
    scale = 1.0

    @tt.compile
    def f(x: tt.Tensor, more: list[float]) -> tt.Tensor:
        state["n"] += 1
        return x * scale + state["n"] + more[0]

    assert f(tt.zeros(1), [1.0]).item() == 3
    scale = 5.0
    assert f(tt.ones(1), [0.5]).item() == 8.5


def test_parameters_that_were_replaced() -> None:
    model = Lora()
    compiled = tt.compile(model)
    assert value(compiled(tt.ones(2))) == 22
    model.base = nn.Parameter(tt.full((2,), 3.0))
    assert value(compiled(tt.ones(2))) == 26
    model.base.data = tt.full((2,), 4.0)
    assert value(compiled(tt.ones(2))) == 28
    with tt.no_grad():
        model.base.add_(1)
    assert value(compiled(tt.ones(2))) == 30


def test_methods_that_were_replaced() -> None:
    model = Lora()
    compiled = tt.compile(model)
    assert value(compiled(tt.ones(2))) == 22
    model.forward = lambda x: x * 0  # type: ignore[method-assign]
    assert value(compiled(tt.ones(2))) == 0


def test_python_numbers_that_change() -> None:  # each a recompilation in 114293
    compiled = tt.compile(lambda x, n: x * n)
    assert [compiled(tt.ones(1), i).item() for i in range(12)] == list(range(12))
    assert [compiled(tt.ones(1), i / 4).item() for i in range(12)] == [i / 4 for i in range(12)]


def test_shapes_that_change() -> None:
    compiled = tt.compile(lambda x: (x * 2).sum(-1))
    for n in (3, 4, 3, 1, 0, 7):
        assert compiled(tt.ones(2, n)).tolist() == [2 * n, 2 * n]


def results_kept(f: Any, make: Any) -> None:
    kept = []
    for i in range(5):
        kept.append((i, f(make(i))))
    for i, y in kept:
        assert y.tolist() == [2.0 * i, 2.0 * i]


@pytest.mark.parametrize("mode", ["default", "reduce-overhead", "max-autotune"])
def test_results_are_not_overwritten_by_the_next_call(mode: str) -> None:  # 148439, 160281, 152887
    f = tt.compile(lambda x: x * 2, mode=mode)
    results_kept(f, lambda i: tt.full((2,), float(i)))
    results_kept(f, lambda i: tt.full((2,), float(i), requires_grad=True))


def test_results_that_are_inputs_and_views() -> None:
    same = tt.compile(lambda x: x)
    x = tt.ones(3)
    assert same(x) is x
    view = tt.compile(lambda x: x[1:])(x)
    view.add_(1)
    assert x.tolist() == [1, 2, 2]
    first, second = tt.compile(lambda x: ((y := x * 2), y.view(3)))(x)
    second.zero_()
    assert first.tolist() == [0, 0, 0]


def test_inputs_that_are_written() -> None:
    @tt.compile
    def f(x: tt.Tensor) -> tt.Tensor:
        x.mul_(2)
        return x + 1

    x = tt.ones(2)
    array = x.numpy()
    assert f(x).tolist() == [3, 3]
    assert f(x).tolist() == [5, 5]
    assert (x.tolist(), array.tolist()) == ([4, 4], [4, 4])


def test_memory_shared_with_numpy() -> None:
    compiled = tt.compile(lambda x: x + 1)
    x = tt.zeros(2)
    array = x.numpy()
    for i in range(4):
        array[:] = i
        assert compiled(x).tolist() == [i + 1, i + 1]
