"""Steps of optimizers as kernels: how many launches a group takes, tables whose addresses change, strided and mixed parameters, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.kernels.optimizers.launched import note_launches
from tritensor import optim
from tritensor.kernels.optimizers import gpu_table
from tritensor.ops.table import ops
from tritensor.optim.formula_optimizer import FormulaOptimizer

RNG = np.random.default_rng(0)
SETTINGS: dict[str, dict[str, Any]] = {  # of those whose usual ones leave a branch out
    "SGD": {"lr": 0.1, "momentum": 0.9, "nesterov": True}, "Adam": {"lr": 0.1, "amsgrad": True}, "NAdam": {"lr": 0.1, "weight_decay": 0.1},
    "RAdam": {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}, "Adagrad": {"lr": 0.1, "lr_decay": 0.1},
    "Adadelta": {"maximize": True}, "RMSprop": {"lr": 0.1, "momentum": 0.5, "centered": True}, "ASGD": {"lambd": 0.1, "t0": 1},
}  # fmt: skip
OPTIMIZERS = [n for n, c in vars(optim).items() if isinstance(c, type) and issubclass(c, FormulaOptimizer)]


def parameters(on: str, *shapes: tuple[int, ...], dtype: Any = tt.float32) -> list[tt.Tensor]:
    rng = np.random.default_rng(1)
    return [tt.nn.Parameter(tt.tensor(rng.standard_normal(s), dtype=dtype, device=on)) for s in shapes]


def graded(params: list[tt.Tensor], step: int) -> None:
    rng = np.random.default_rng(step)
    for p in params:
        p.grad = tt.tensor(rng.standard_normal(tuple(p.shape)), dtype=p.dtype, device=p.device)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the optimizers' kernels that are launched, by recordings too."""
    return note_launches(monkeypatch)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_group_is_three_launches_and_goes_where_the_cpu_goes(name: str, launches: list[str]) -> None:
    shapes = [(3, 5), (), (0,), (1030,), *[(2,)] * 16]
    cpu, gpu = parameters("cpu", *shapes), parameters("cuda", *shapes)
    steppers = [getattr(optim, name)(params, **SETTINGS.get(name, {"lr": 0.1})) for params in (cpu, gpu)]
    for step in range(3):
        for params, optimizer in zip((cpu, gpu), steppers, strict=True):
            graded(params, step)
            launches.clear()
            optimizer.step()
        assert launches.count("_step") == launches.count("_advance") == 1
        assert len(launches) <= 3
    for p, q in zip(cpu, gpu, strict=True):
        np.testing.assert_allclose(q.detach().cpu().numpy(), p.detach().numpy(), rtol=2e-5, atol=2e-6)


def test_gradients_that_stay_where_they_are_are_not_noted_again(launches: list[str]) -> None:
    params = parameters("cuda", (3,), (4,))
    optimizer = optim.SGD(params, lr=0.5)
    graded(params, 0)
    optimizer.step()
    assert launches == ["_note", "_advance", "_step"]
    launches.clear()
    optimizer.step()
    assert launches == ["_advance", "_step"]
    before = params[0].detach().cpu().numpy()
    params[0].grad = tt.ones(3, device="cuda")
    optimizer.step()
    np.testing.assert_allclose(params[0].detach().cpu().numpy(), before - 0.5)


def test_a_group_of_more_parameters_than_a_launch_takes_addresses(monkeypatch: pytest.MonkeyPatch, launches: list[str]) -> None:
    monkeypatch.setattr(gpu_table, "ADDRESSES", (2, 4))
    params = parameters("cuda", *[(2,)] * 9)
    graded(params, 0)
    want = [p.detach().cpu().numpy() - 0.5 * p.grad.cpu().numpy() for p in params]
    optim.SGD(params, lr=0.5).step()
    assert launches == [*["_note"] * 3, "_advance", "_step"]
    for p, w in zip(params, want, strict=True):
        np.testing.assert_allclose(p.detach().cpu().numpy(), w, rtol=1e-6)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_types_and_layouts_in_one_group(on: str) -> None:
    """16-bit parameters are stepped in float32 and rounded once; strided ones through copies; each type has its own launches."""
    values = RNG.standard_normal((4, 6))
    g = RNG.standard_normal((4, 6))
    base = tt.zeros(6, 8, dtype=tt.float64, device=on)
    with tt.no_grad():
        base[:, ::2] = tt.tensor(values.T.copy(), device=on)
    window = base[:, ::2].t().requires_grad_()
    params = [*[tt.nn.Parameter(tt.tensor(values, dtype=k, device=on)) for k in (tt.float32, tt.bfloat16, tt.float16)], window]
    optimizer = optim.Adam(params, lr=0.1)
    expected = values.copy()
    m = v = np.zeros_like(g)
    for t in range(1, 4):
        for p in params:
            p.grad = tt.tensor(g, dtype=p.dtype, device=on)
        optimizer.step()
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        expected -= 0.1 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    for p, tolerance in zip(params, (1e-5, 2e-2, 3e-3, 1e-11), strict=True):
        np.testing.assert_allclose(p.detach().double().cpu().numpy(), expected, rtol=tolerance, atol=tolerance)
    assert base[:, 1::2].abs().sum().item() == 0.0


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_new_memory_under_a_parameter_is_seen(on: str) -> None:
    (p,) = parameters(on, (3,))
    optimizer = optim.SGD([p], lr=1.0, momentum=0.5)
    for value, want in ((1.0, 0.0), (5.0, 3.5)):
        p.data = tt.full((3,), value, device=on)
        p.grad = tt.ones(3, device=on)
        optimizer.step()
        assert p.tolist() == [want] * 3


def test_refused() -> None:
    x = tt.zeros(3)
    with pytest.raises(ValueError, match=r"sgd_step: g \(2,\) for a parameter of shape \(3,\)"):
        ops.sgd_step(x, tt.zeros(2), tt.zeros(2))
    with pytest.raises(TypeError, match="g float64; cast one so that both are the same"):
        ops.sgd_step(x, tt.zeros(3, dtype=tt.float64), tt.zeros(2))
    for kind in (tt.int64, tt.float8_e5m2):
        p = tt.zeros(3).to(kind)
        optimizer = optim.SGD([p], lr=1.0)
        p.grad = tt.ones(3).to(kind)
        with pytest.raises(tt.DTypeError, match=rf"SGD: a parameter of {kind.name} on cpu cannot be stepped"):
            optimizer.step()


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_a_parameter_in_the_graph_is_not_overwritten(on: str) -> None:
    p, numbers = tt.ones(3, device=on, requires_grad=True), tt.tensor([0.0, 0.5], device=on)
    with pytest.raises(tt.GradError, match=r"sgd_step: p requires grad and would be overwritten; call it under no_grad\(\)"):
        ops.sgd_step(p, tt.ones(3, device=on), numbers)
    assert (p.tolist(), p._version) == ([1.0] * 3, 0)
    with tt.no_grad():
        ops.sgd_step(p, tt.ones(3, device=on), numbers)
    assert (p.tolist(), p._version) == ([0.5] * 3, 1)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("rated", [False, True])
def test_the_numbers_of_a_step(on: str, rated: bool) -> None:
    """Of Adam: 1 - lr weight_decay, lr / (1 - beta1^t), sqrt(1 - beta2^t) of the step that is to come, which is then counted."""
    counts, numbers = tt.tensor([[0.0], [4.0]], dtype=tt.float64, device=on), tt.zeros(2, 7, dtype=tt.float64, device=on)
    rate = tt.tensor(0.1, dtype=tt.float64, device=on) if rated else None
    ops.adam_numbers(numbers, counts, rate, lr=0.0 if rated else 0.1, beta1=0.9, beta2=0.99, eps=1e-8, weight_decay=0.5, decay=2)
    want = [[1 - 0.1 * 0.5, 0.1 / (1 - 0.9**t), (1 - 0.99**t) ** 0.5] for t in (1, 5)]
    np.testing.assert_allclose(numbers.numpy(force=True)[:, :3], want, rtol=1e-12)
    assert counts.tolist() == [[1.0], [5.0]]


def test_a_graph_and_plain_steps_in_turn() -> None:
    """Each replay finds its own gradients, wherever those of a plain step between two replays were."""
    (p,) = parameters("cuda", (5,), dtype=tt.float64)
    (q,) = parameters("cpu", (5,), dtype=tt.float64)
    ours, plain = (optim.NAdam([x], lr=0.1) for x in (p, q))

    def follow(value: float) -> None:
        q.grad = tt.full((5,), value, dtype=tt.float64)
        plain.step()

    own = p.grad = tt.full((5,), 1.0, dtype=tt.float64, device="cuda")
    ours.step()
    follow(1.0)
    with tt.cuda.graph() as g:
        ours.step()
    for value in (2.0, 3.0):
        own.fill_(value)
        g.replay()
        follow(value)
        p.grad = tt.full((5,), -value, dtype=tt.float64, device="cuda")
        ours.step()
        follow(-value)
    np.testing.assert_allclose(p.detach().cpu().numpy(), q.detach().numpy(), rtol=1e-12)
    assert ours.state[p]["step"].item() == 5.0
