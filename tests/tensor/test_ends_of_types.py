"""Numbers near the ends of float32: whose squares it does not hold, integers below 0 that it holds exactly. The right values are mathematics'."""

from __future__ import annotations

import math

import pytest
from scipy import special

import tritensor as tt
from tritensor.nn import functional as F

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of squares that overflow


@pytest.mark.parametrize("scale", [1e25, 1e37, 1.0, 1e-18, 1e-25, 1e-37])
def test_deviations_of_any_size(scale: float) -> None:
    x = tt.tensor([1.0, 2.0, 4.0], requires_grad=True)
    y = (x.detach() * scale).requires_grad_()
    expected = math.sqrt(7 / 3)
    for of in (
        lambda v: v.std(),
        lambda v: v[None].std(1)[0],
        lambda v: tt.std_mean(v)[0],
        lambda v: v.std(0),
        lambda v: tt.stack([v, v]).std(1)[1],
    ):
        assert of(y).item() == pytest.approx(expected * scale, rel=1e-6)
        (g,) = tt.autograd.grad(of(y), y)
        (plain,) = tt.autograd.grad(of(x), x)
        assert g.tolist() == pytest.approx(plain.tolist(), rel=1e-5)
    assert tt.std_mean(y)[0].dtype is tt.float32
    assert tt.full((3,), scale).std().item() == 0
    assert math.isnan(tt.tensor([scale]).std().item())
    assert y.std(unbiased=False, keepdim=True, dim=0).tolist() == pytest.approx([expected * scale * math.sqrt(2 / 3)], rel=1e-6)


@pytest.mark.parametrize("value", [1e25, -3e38, 1e-30, -2e-40])
def test_norms_of_one_element_are_its_size(value: float) -> None:
    for on in ("cpu", "cuda"):
        x = tt.tensor([[value], [2.0]], device=on)
        size = pytest.approx([abs(value), 2.0], rel=1e-6)
        for p in (2, 3, 0.5, 1, math.inf):
            assert tt.linalg.vector_norm(x, p, dim=1).tolist() == size
            assert x.norm(p, 1, keepdim=True).flatten().tolist() == size
            assert x[0].norm(p).item() == pytest.approx(abs(value), rel=1e-6)
        assert x.norm(0, 1).tolist() == [1.0, 1.0]
        assert tt.renorm(x, 2, 0, 1.0)[0].item() == pytest.approx(max(-1.0, min(1.0, value)), rel=1e-5)
        assert F.normalize(x)[0].abs().item() == pytest.approx(min(1.0, abs(value) / 1e-12), rel=1e-5)
    x = tt.tensor([[value], [0.0]], requires_grad=True)
    (g,) = tt.autograd.grad(x.norm(2, 1).sum(), x)
    assert g.flatten().tolist() == [math.copysign(1.0, value), 0.0]


def test_log_gamma_of_integers_below_zero() -> None:
    for on in ("cpu", "cuda"):
        x = tt.tensor([0.0, -1.0, -3.0, -1e10, -(2.0**24), -1e38, -3.4e38, -math.inf], device=on)
        assert x.lgamma().tolist() == [math.inf] * 8
        assert x.double().lgamma().tolist() == [math.inf] * 8


def test_what_is_left_to_one_of_the_incomplete_gamma_function() -> None:
    """Q(a, x) where P is nearly 1: a times the exponential integral of x for the smallest a, and scipy's."""
    given = [(1e-30, 3e-30), (1e-8, 1e-4), (1e-25, 0.5), (0.25, 0.5), (0.4, 0.9), (0.49, 0.999), (0.1, 1e-30)]
    assert special.gammaincc(1e-25, 0.5) == pytest.approx(1e-25 * special.exp1(0.5), rel=1e-14)
    for on in ("cpu", "cuda"):
        for dtype, rel in ((tt.float64, 1e-13), (tt.float32, 1e-6)):
            a, x = (tt.tensor(list(v), dtype=dtype, device=on) for v in zip(*given, strict=True))
            truth = special.gammaincc(*(v.cpu().double().numpy() for v in (a, x)))
            assert tt.special.gammaincc(a, x).tolist() == pytest.approx(truth.tolist(), rel=rel)
