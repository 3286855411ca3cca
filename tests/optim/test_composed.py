"""LBFGS, Adafactor and Muon: minima that are found, steps by hand, states that go on."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor import nn, optim
from tritensor.optim.line_search import Point, cubic_minimum, strong_wolfe
from tritensor.optim.optimizers.muon import orthogonalise


def rosenbrock(p: tt.Tensor) -> tt.Tensor:
    return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2


def closure_of(optimizer: Any, loss_of: Any) -> Any:
    calls = []

    def closure() -> tt.Tensor:
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        calls.append(loss.item())
        return loss

    closure.calls = calls  # type: ignore[attr-defined]
    return closure


def test_lbfgs_finds_the_end_of_the_valley() -> None:
    p = nn.Parameter(tt.tensor([-1.2, 1.0], dtype=tt.float64))
    optimizer = optim.LBFGS([p], line_search_fn="strong_wolfe", max_iter=60, history_size=5)
    closure = closure_of(optimizer, lambda: rosenbrock(p))
    first = optimizer.step(closure)
    assert first.item() == closure.calls[0] == pytest.approx(24.2)
    np.testing.assert_allclose(p.detach().numpy(), [1.0, 1.0], atol=1e-4)
    state = optimizer.state[p]
    assert state["func_evals"] == len(closure.calls) < 75
    assert len(state["old_dirs"]) == len(state["ro"]) <= 5


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_goes_the_same_way_on_a_gpu(search: str | None) -> None:
    found = []
    for on in ("cpu", "cuda"):
        p = nn.Parameter(tt.tensor([-1.2, 1.0], dtype=tt.float64, device=on))
        optimizer = optim.LBFGS([p], lr=0.1, line_search_fn=search, max_iter=3)
        optimizer.step(closure_of(optimizer, lambda p=p: rosenbrock(p)))
        found.append(p.detach().cpu().numpy())
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


def test_lbfgs_solves_a_quadratic_and_goes_on_from_its_state() -> None:
    rng = np.random.default_rng(0)
    m = rng.standard_normal((6, 6))
    a, b = m @ m.T + np.eye(6), rng.standard_normal(6)
    p, q = (nn.Parameter(tt.zeros(6, dtype=tt.float64)) for _ in range(2))

    def loss(x: tt.Tensor) -> tt.Tensor:
        return 0.5 * (x @ (tt.tensor(a) @ x)) - (tt.tensor(b) * x).sum()

    one, two = (optim.LBFGS([x], lr=0.5, max_iter=7) for x in (p, q))
    for k in range(8):
        one.step(closure_of(one, lambda: loss(p)))
        if k == 2:
            with tt.no_grad():
                q.copy_(p)
            two.load_state_dict(pickle.loads(pickle.dumps(one.state_dict())))
        if k > 2:
            two.step(closure_of(two, lambda: loss(q)))
    assert p.tolist() == q.tolist()
    np.testing.assert_allclose(p.detach().numpy(), np.linalg.solve(a, b), rtol=1e-3)
    still = closure_of(one, lambda: loss(p) * 0.0)
    one.step(still)  # a gradient of 0: nothing moves
    assert (len(still.calls), p.tolist()) == (1, q.tolist())


def test_the_line_search() -> None:
    """The minimum of a cubic from two points; a step that satisfies both conditions from a first one that is too short, and too long."""

    def point(t: float) -> Point:
        slope = tt.tensor(3 * (t - 2.0) ** 2 - 1.0, dtype=tt.float64)
        return Point(t, (t - 2.0) ** 3 - (t - 2.0), None, slope)

    assert float(cubic_minimum(point(1.5), point(3.0))) == pytest.approx(2 + 3**-0.5)
    assert float(cubic_minimum(point(3.0), point(1.5), (0.0, 2.25))) == 2.25

    def valley(t: Any) -> Point:
        t = float(t)
        return Point(t, (t - 3.0) ** 2, None, tt.tensor(2 * (t - 3.0), dtype=tt.float64))

    for first in (1e-3, 0.1, 5.9, 40.0):
        found, evaluations = strong_wolfe(valley, valley(0.0), first, tt.tensor(1.0), 25)
        assert abs(float(found.slope)) <= 0.9 * 6
        assert found.loss <= 9.0 - 1e-4 * float(found.t) * 6
        assert evaluations < 10
    assert strong_wolfe(valley, valley(0.0), 1e-9, tt.tensor(1.0), 1)[1] == 2


def test_adafactor_by_hand() -> None:
    rng = np.random.default_rng(0)
    p, g = rng.standard_normal((3, 4)), rng.standard_normal((3, 4))
    x, y = nn.Parameter(tt.tensor(p)), nn.Parameter(tt.tensor(p[0]))
    optimizer = optim.Adafactor([x, y], lr=0.01, weight_decay=0.1)
    x.grad, y.grad = tt.tensor(g), tt.tensor(g[0])
    optimizer.step()

    def expected(p: np.ndarray, v: np.ndarray, g: np.ndarray) -> np.ndarray:
        size = np.sqrt((p * p).mean()) * 0.01
        u = g / np.sqrt(v)
        return p * (1 - 0.01 * 0.1) - size * u / max(1.0, np.sqrt((u * u).mean()))

    rows, columns = (g * g).mean(1, keepdims=True), (g * g).mean(0, keepdims=True)
    np.testing.assert_allclose(x.detach().numpy(), expected(p, rows @ columns / rows.mean(), g), rtol=1e-10)
    np.testing.assert_allclose(y.detach().numpy(), expected(p[0], g[0] ** 2, g[0]), rtol=1e-10)
    one = nn.Parameter(tt.tensor(2.0, dtype=tt.float64))
    one.grad = tt.tensor(-3.0, dtype=tt.float64)
    optim.Adafactor([one], lr=0.01).step()
    assert one.item() == pytest.approx(2.0 + 2.0 * 0.01)
    assert {k: tuple(v.shape) for k, v in optimizer.state[x].items()} == {"step": (), "row_var": (3, 1), "col_var": (1, 4)}
    assert list(optimizer.state[y]) == ["step", "variance"]


@pytest.mark.parametrize("on", ["cpu", "cuda"])
@pytest.mark.parametrize("shape", [(4, 9), (9, 4)])
def test_muon_makes_the_step_nearly_orthogonal(on: str, shape: tuple[int, int]) -> None:
    g = np.random.default_rng(0).standard_normal(shape)
    u = orthogonalise(tt.tensor(g, dtype=tt.float32, device=on), (3.4445, -4.775, 2.0315), 5, 1e-7).float().cpu().numpy()
    assert np.abs(np.linalg.svd(u, compute_uv=False) - 1).max() < 0.4
    left, _, right = np.linalg.svd(g, full_matrices=False)
    assert np.abs(u - left @ right).max() < 0.3
    p = nn.Parameter(tt.zeros(*shape, device=on))
    p.grad = tt.tensor(g, dtype=tt.float32, device=on)
    optim.Muon([p], lr=0.1, nesterov=False, momentum=0.0).step()
    np.testing.assert_allclose(p.detach().cpu().numpy(), -0.1 * max(1, shape[0] / shape[1]) ** 0.5 * u, atol=2e-3)
    for coefficients, steps, message in (((1.0, 2.0), 5, "exactly 3 values"), ((1.0, 2.0, 3.0), 100, "less than 100")):
        with pytest.raises(ValueError, match=message):
            orthogonalise(p.detach(), coefficients, steps, 1e-7)  # type: ignore[arg-type]


def test_muon_takes_matrices_in_later_groups_too() -> None:
    made = optim.Muon([nn.Parameter(tt.zeros(2, 2))])
    with pytest.raises(ValueError, match=r"a parameter of size \(3,\), and Muon only supports 2D"):
        made.add_param_group({"params": [nn.Parameter(tt.zeros(3))]})
    assert len(made.param_groups) == 1
