"""In-place forms and `out=`: where an op writes straight into memory, and that it comes to the same as computing and copying."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.stub import control
from tests.stub.child import on_stub
from tritensor.ground.errors import DTypeError, GradError, ShapeError
from tritensor.tensor.aliasing import inplace
from tritensor.tensor.functions.pointwise import operators
from tritensor.tensor.public_api import publish

UNARY = [
    "neg", "abs", "square", "sqrt", "rsqrt", "reciprocal", "exp", "log", "sin", "cos", "tanh", "erf", "sigmoid", "relu", "sign", "floor",
    "ceil", "trunc", "round",
]  # fmt: skip
BINARY = ["add", "sub", "mul", "div", "pow", "remainder", "fmod", "floor_divide", "atan2"]
DEVICES = ("cpu", "cuda")
TYPES = ("float16", "bfloat16", "float32", "float64")


def made(shape: tuple[int, ...], device: str, dtype: str, seed: int = 0) -> Any:
    values = np.random.default_rng(seed).uniform(0.5, 2.0, shape)
    return tt.tensor(values).to(device, getattr(tt, dtype))


def same(x: Any, y: Any) -> bool:
    return x.dtype == y.dtype and x.shape == y.shape and x.cpu().double().tolist() == y.cpu().double().tolist()


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each write was done straight."""
    answers: list[bool] = []
    plain = inplace.compute_into

    def told(*args: Any) -> bool:
        answer = plain(*args)
        answers.append(answer)
        return answer

    for module in (publish, operators):
        monkeypatch.setattr(module, "compute_into", told)
    return answers


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("device", DEVICES)
def test_in_place_is_the_function_and_a_copy(device: str, dtype: str) -> None:
    x, y, row = (made(s, device, dtype, i) for i, s in enumerate([(3, 5), (3, 5), (5,)]))
    numbers = {n: () if n == "atan2" else (1.5, 2) for n in BINARY}  # PyTorch's atan2 takes tensors only
    calls = [(n, ()) for n in UNARY] + [(n, (o,)) for n in BINARY for o in (y, row, *numbers[n], x)]
    for name, others in calls:
        want = getattr(tt, name)(x, *others)
        z = x.clone()
        got = getattr(z, name + "_")(*[z if o is x else o for o in others])
        assert got is z
        assert same(z, want), f"{name}_, {others}"
        out = tt.zeros(3, 5, device=device, dtype=getattr(tt, dtype))
        assert getattr(tt, name)(x, *others, out=out) is out
        assert same(out, want), f"{name}(out=), {others}"
    z = x.clone()
    z.add_(y, alpha=0.5)
    assert same(z, tt.add(x, y, alpha=0.5))


@pytest.mark.parametrize("device", DEVICES)
def test_into_windows_of_other_strides(device: str, direct: list[bool]) -> None:
    memory = made((4, 6), device, "float32")
    before = memory.clone()
    y = made((4,), device, "float32", 1)
    memory[:, 2].mul_(y)
    memory.t()[4].add_(1)
    assert direct == [True, True]
    want = before.clone()
    want[:, 2] = before[:, 2] * y
    want[:, 4] = before[:, 4] + 1
    assert same(memory, want)


@pytest.mark.parametrize("device", DEVICES)
def test_where_contents_are_remembered_or_shared_the_long_way_is_taken(device: str, direct: list[bool]) -> None:
    memory = made((6,), device, "float32")
    before = memory.clone()
    memory[1:].add_(memory[:-1])
    assert same(memory[1:], before[1:] + before[:-1])
    square = made((4, 4), device, "float32")
    want = square + square.t()
    square.add_(square.t())
    assert same(square, want)
    w = made((3,), device, "float32").requires_grad_()
    h = w * 2
    h.mul_(w)  # the graph needs the old h
    h.sum().backward()
    assert w.grad.tolist() == (4 * w).tolist()
    wide = made((2, 3), device, "float32")
    x = made((3,), device, "float32")
    with pytest.raises(ShapeError):
        x.add_(wide)
    whole = tt.ones(3, device=device, dtype=tt.int64)
    with pytest.raises(DTypeError):
        whole.add_(0.5)
    with pytest.raises(ShapeError, match="expanded"):
        tt.ones(1, device=device).expand(3).add_(1)
    with pytest.raises(GradError):
        w.add_(1)
    with tt.no_grad():
        w.add_(1)
    assert direct == [False] * 7 + [True]


def test_what_was_saved_for_a_gradient_is_still_found_overwritten() -> None:
    w = tt.ones(3, requires_grad=True)
    x = tt.ones(3)
    y = w * x
    x.add_(1)
    with pytest.raises(GradError, match="add_"):
        y.sum().backward()
    y = w * x
    x.fill_(2.0)
    with pytest.raises(GradError, match="fill_"):
        y.sum().backward()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("device", DEVICES)
def test_filling(device: str, dtype: str) -> None:
    for value in (0, 1.5, -0.0, float("inf"), 60000):
        x = made((3, 4), device, dtype)
        x.fill_(value)
        assert same(x, tt.full((3, 4), value, device=device, dtype=getattr(tt, dtype))), value
        x[:, 1] = 7
        x[2] = 8
        assert x[:, 1].tolist() == [7, 7, 8]
    x.zero_()
    assert x.sum().item() == 0
    for z in (x.fill_(-0.0), tt.full((3, 4), -0.0, device=device, dtype=getattr(tt, dtype))):
        assert np.signbit(z.cpu().double().numpy()).all()


@on_stub()
def test_one_launch_and_no_memory() -> None:
    x, y = tt.ones(64, device="cuda"), tt.ones(64, device="cuda")
    for call in (
        lambda: x.add_(y),
        lambda: x.mul_(0.5),
        lambda: x.sqrt_(),
        lambda: x.zero_(),
        lambda: tt.mul(x, y, out=y),
        lambda: x.copy_(y),
    ):
        for _ in range(2):
            call()
        tt.cuda.reset_peak_memory_stats()
        before = tt.cuda.memory_allocated()
        with control.counted() as calls:
            call()
        assert calls == {"cuLaunchKernelEx": 1}
        assert tt.cuda.max_memory_allocated() == before


@on_stub()
def test_gradients_that_meet_and_accumulate_cost_one_launch_each() -> None:
    x = tt.ones(64, device="cuda", requires_grad=True)
    g = tt.ones(64, device="cuda")
    for _ in range(3):
        x.backward(g)
    with control.counted() as calls:
        x.backward(g)
    assert calls == {"cuLaunchKernelEx": 1}
