"""Accuracy in float64, over long rows and far from zero: against extended precision and float64, on every device."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F
from tests.test_accuracy import DEVICES, count, on, ulps, values

EPS = np.finfo(np.float32).eps


# float64: erfc and what is made of it, 4 units in the last place
def erfc(x: np.ndarray) -> np.ndarray:
    """erfc in extended precision: below 1 by the series of erf without cancellation, above by the continued fraction."""
    x = x.astype(np.longdouble)
    pi, z = np.longdouble("3.14159265358979323846264338327950288"), np.abs(x)
    small = np.minimum(z, 1)
    term, total = small.copy(), small.copy()
    for n in range(1, 60):
        term = term * 2 * small * small / (2 * n + 1)
        total += term
    near = 1 - 2 / np.sqrt(pi) * np.exp(-small * small) * total
    rest, large = np.zeros_like(x), np.maximum(z, 1)
    for k in range(1500, 0, -1):
        rest = (np.longdouble(k) / 2) / (large + rest)
    far = np.exp(-large * large) / np.sqrt(pi) / (large + rest)
    y = np.where(z < 1, near, far)
    return np.where(x < 0, 2 - y, y)


DOUBLE: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float, float]] = {
    "erfc": (erfc, -6, 26),
    "gelu": (lambda x: x.astype(np.longdouble) / 2 * erfc(-x.astype(np.longdouble) / np.sqrt(np.longdouble(2))), -36, 8),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", list(DOUBLE))
def test_float64(name: str, device: str) -> None:
    truth, low, high = DOUBLE[name]
    n = count(device) // 8
    a = np.concatenate([values(low, high, n, 4), np.random.default_rng(5).uniform(-5, 5, n)])
    (x,) = on(device, a)
    got, want = (getattr(tt, name, None) or getattr(F, name))(x).cpu().numpy(), truth(a)
    error = (np.abs(got - want) / np.spacing(np.abs(want).astype(np.float64))).astype(np.float64)
    worst = int(np.argmax(error))
    assert error[worst] <= 4, f"{name}({a[worst]!r}) is {error[worst]:.2f} ULP off"


# float32 functions of two arguments
BOTH: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "atan2": np.arctan2,
    "hypot": np.hypot,
    "xlogy": lambda a, b: a * np.log(np.abs(b)),
}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", list(BOTH))
def test_two_arguments(name: str, device: str) -> None:
    n = count(device)
    a, b = values(-1e3, 1e3, n, 1).astype(np.float32), values(-1e3, 1e3, n, 2).astype(np.float32)
    b = np.abs(b) if name == "xlogy" else b
    x, y = on(device, a, b)
    error = ulps(getattr(tt, name)(x, y).cpu().numpy(), BOTH[name](a.astype(np.float64), b.astype(np.float64)))
    assert error.max() <= 4, f"{name} is {error.max():.2f} ULP off"


@pytest.mark.parametrize("device", DEVICES)
def test_logaddexp_loses_no_more_than_its_terms(device: str) -> None:
    n = count(device)
    a, b = values(-90, 90, n, 1).astype(np.float32), values(-90, 90, n, 2).astype(np.float32)
    x, y = on(device, a, b)
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    error = np.abs(tt.logaddexp(x, y).cpu().numpy() - np.logaddexp(wide_a, wide_b))
    assert (error <= 4 * EPS * (np.maximum(np.abs(wide_a), np.abs(wide_b)) + np.log(2))).all()


@pytest.mark.parametrize("device", DEVICES)
def test_the_slopes_of_atan2_and_hypot_overflow_nowhere(device: str) -> None:
    a, b = np.array([1e30, 3e-30, 1e-38, 2.0], np.float32), np.array([2e30, -4e-30, 1e-38, 3e20], np.float32)
    x, y = (t.requires_grad_() for t in on(device, a, b))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    squares = wide_a * wide_a + wide_b * wide_b
    with np.errstate(over="ignore"):
        for f, wants in ((tt.atan2, (wide_b / squares, -wide_a / squares)), (tt.hypot, (wide_a / squares**0.5, wide_b / squares**0.5))):
            for g, want in zip(tt.autograd.grad(f(x, y).sum(), (x, y)), wants, strict=True):
                inside = np.abs(want) < 3e38
                np.testing.assert_allclose(g.cpu().numpy()[inside], want[inside], rtol=4 * EPS, atol=2e-45)


# running sums
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("backward", [False, True])
def test_a_long_running_sum(backward: bool, device: str) -> None:
    n = 100_000 if device == "emulated" else 1_000_000
    a = np.full(n, 0.1, np.float32)
    (x,) = on(device, a)
    if backward:  # the gradient runs the other way
        x.requires_grad_()
        tt.cumsum(x, 0).backward(x.detach())
        assert x.grad is not None
        got = x.grad.cpu().numpy()[::-1]
    else:
        got = tt.cumsum(x, 0).cpu().numpy()
    truth = np.cumsum(a.astype(np.float64))
    # On the CPU runs of 16 are added in float32, which 16 equal numbers round the same way each time; their totals in float64.
    assert (np.abs(got / truth - 1)).max() <= (3 if device == "cpu" else 1) * EPS, "kept in float64, rounded once"


# far from zero: an offset of 1e4 costs nothing
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [0, 1, (0, 1)])
def test_variance_far_from_zero(dim: int | tuple[int, ...], device: str) -> None:
    shape = (90, 70) if device == "emulated" else (1000, 700)
    a = (1e4 + np.random.default_rng(0).standard_normal(shape)).astype(np.float32)
    (x,) = on(device, a)
    x.requires_grad_()
    y = tt.var(x, dim)
    truth = a.astype(np.float64).var(dim, ddof=1)
    assert (np.abs(y.detach().cpu().numpy() / truth - 1)).max() <= 2e-6
    if device != "cpu":
        (g,) = tt.autograd.grad(y.sum(), x)
        centred = a - a.astype(np.float64).mean(dim, keepdims=True)
        n = a.size / truth.size
        assert np.abs(g.cpu().numpy() - 2 * centred / (n - 1)).max() <= 8 * EPS * np.abs(centred).max() * 2 / (n - 1)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("offset", [0.0, 1e4, -1e6])
@pytest.mark.parametrize("target", ["labels", "weights", "probabilities"])
def test_cross_entropy_of_shifted_logits(target: str, offset: float, device: str) -> None:
    rng = np.random.default_rng(1)
    rows, classes = 40, 30
    a = (offset + np.round(rng.standard_normal((rows, classes)) * 64) / 64).astype(np.float32)
    labels, weight = rng.integers(0, classes, rows), rng.uniform(0.5, 2, classes).astype(np.float32)
    p = rng.dirichlet(np.ones(classes), rows).astype(np.float32)
    wide = a.astype(np.float64) - offset
    soft = np.exp(wide) / np.exp(wide).sum(1, keepdims=True)
    q = p.astype(np.float64) if target == "probabilities" else np.eye(classes)[labels]
    q = q * weight if target == "weights" else q
    share = weight.astype(np.float64)[labels].sum() if target == "weights" else rows
    x, t, w, probabilities = on(device, a, labels, weight, p)
    x.requires_grad_()
    loss = F.cross_entropy(x, probabilities if target == "probabilities" else t, w if target == "weights" else None)
    (g,) = tt.autograd.grad(loss, x)
    assert abs(loss.item() / ((-np.log(soft) * q).sum() / share) - 1) <= 16 * EPS
    assert np.abs(g.cpu().numpy() - (soft * q.sum(1, keepdims=True) - q) / share).max() <= 16 * EPS / rows
