"""Functions where their formulas meet 0, infinity, NaN, the edge of their domain and denormals: values, first and second derivatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
import tritensor.nn.functional as F

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
INF, NAN = math.inf, math.nan
DEVICES = ["cpu", "cuda"]
TYPES = [tt.float32, tt.float64]


def derivatives(
    f: Callable[..., Any], values: tuple[Any, ...], where: str, dtype: tt.dtype
) -> tuple[Any, tuple[Any, ...], list[tuple[Any, ...]]]:
    """y, its gradients, and of the sum of each gradient the gradients."""
    inputs = [tt.tensor(v, dtype=dtype, device=where, requires_grad=True) for v in values]
    y = f(*inputs)
    first = tt.autograd.grad(y.sum(), inputs, create_graph=True)
    none = tuple(tt.zeros_like(x) for x in inputs)  # a constant gradient has no graph
    second = [
        tuple(
            z if h is None else h
            for h, z in zip(tt.autograd.grad(g.sum(), inputs, retain_graph=True, allow_unused=True), none, strict=True)
        )
        if g.requires_grad
        else none
        for g in first
    ]
    return y, first, second


def same(got: Any, want: list[float]) -> None:
    np.testing.assert_allclose(got.detach().cpu().numpy(), np.array(want), rtol=2e-6, atol=0)


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("dtype", TYPES)
class TestOneInput:
    @pytest.mark.parametrize(
        ("f", "x", "first", "second"),
        [
            (tt.asin, [1.0, -1.0, 1e-30], [INF, INF, 1.0], [INF, -INF, 1e-30]),
            (tt.acos, [1.0, -1.0, 1e-30], [-INF, -INF, -1.0], [-INF, INF, -1e-30]),
            (tt.atanh, [1.0, -1.0, 1e-30], [INF, INF, 1.0], [INF, -INF, 2e-30]),
            (tt.acosh, [1.0, -1.0], [INF, INF], [-INF, INF]),
            (tt.logit, [-0.5, 2.0, 0.0, 1.0, 0.5], [NAN, NAN, INF, INF, 4.0], [0.0, 0.0, NAN, NAN, 0.0]),
            (lambda x: tt.logit(x, 0.125), [0.0, 0.0625, 1.0, NAN], [0.0] * 4, [0.0] * 4),
            (F.elu, [0.0, INF, 1e30, NAN, -INF], [1.0, 1.0, 1.0, 1.0, 0.0], [0.0] * 5),
            (F.softplus, [-INF, -1e30, INF], [0.0, 0.0, 1.0], [0.0] * 3),
            (F.silu, [-1e30, 1e30], [0.0, 1.0], [0.0, 0.0]),
            (F.gelu, [-1e30, 1e30], [0.0, 1.0], [0.0, 0.0]),
        ],
        ids=["asin", "acos", "atanh", "acosh", "logit", "logit clamped", "elu", "softplus", "silu", "gelu"],
    )
    def test_derivatives(self, f: Any, x: list[float], first: list[float], second: list[float], dtype: tt.dtype, where: str) -> None:
        _, (g,), ((h,),) = derivatives(f, (x,), where, dtype)
        same(g, first)
        same(h, second)

    def test_values(self, dtype: tt.dtype, where: str) -> None:
        x = tt.tensor([NAN, -0.0, 0.0, INF, -2.0], dtype=dtype, device=where)
        assert tt.sign(x).tolist() == [0.0, 0.0, 0.0, 1.0, -1.0]
        assert tt.clone(x).sign_().tolist() == [0.0, 0.0, 0.0, 1.0, -1.0]
        assert tt.sign(x[0]).item() == 0.0
        same(F.gelu(tt.tensor([INF, -INF], dtype=dtype, device=where)), [INF, 0.0])
        same(
            tt.logit(tt.tensor([0.5 + 2**-12, 0.5 - 2**-12], dtype=dtype, device=where)),
            [2 * math.atanh(2**-11), -2 * math.atanh(2**-11)],
        )
        same(tt.logit(tt.tensor([-0.5, 0.0, 0.5, 1.0, 2.0], dtype=dtype, device=where)), [NAN, -INF, 0.0, INF, NAN])

    @pytest.mark.parametrize(("beta", "threshold"), [(1.0, 20.0), (1.0, 0.0), (1.0, -1.0), (3.0, 20.0), (3.0, -1.0), (-2.0, 5.0)])
    def test_softplus_is_straight_above_its_threshold(self, beta: float, threshold: float, dtype: tt.dtype, where: str) -> None:
        x = np.array([-20.3, -7.7, -0.1, 0.0, 0.1, 0.7, 7.7, 30.3, 3e38, INF, -INF, NAN], np.float32 if dtype == tt.float32 else np.float64)
        y, (g,), _ = derivatives(lambda t: F.softplus(t, beta, threshold), (x,), where, dtype)
        z = x * x.dtype.type(beta)
        bent = np.logaddexp(0, np.where(z > threshold, 0, z).astype(np.float64)) / beta
        assert np.array_equal(y.detach().cpu().numpy()[z > threshold], x[z > threshold]), "to the last bit"
        same(y, np.where(z > threshold, x, bent).tolist())
        same(g, np.where(z > threshold, 1.0, 1 / (1 + np.exp(-z.astype(np.float64)))).tolist())

    def test_the_slope_of_abs_at_nan_is_0(self, dtype: tt.dtype, where: str) -> None:
        _, (g,), _ = derivatives(tt.abs, ([NAN, -0.0, -INF],), where, dtype)
        same(g, [0.0, 0.0, -1.0])
        _, (g,), _ = derivatives(lambda x: tt.norm(x, 3), ([NAN, 1.0],), where, dtype)
        same(g, [NAN, NAN])


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("dtype", TYPES)
class TestTwoInputs:
    def test_a_remainder_of_infinity_has_no_slope(self, dtype: tt.dtype, where: str) -> None:
        _, (_, g), _ = derivatives(tt.remainder, ([INF, -INF, 7.0, -7.0], [1.0, 2.0, 2.0, 2.0]), where, dtype)
        same(g, [NAN, NAN, -3.0, 4.0])

    def test_the_slope_of_a_remainder_where_a_division_rounds_up(self, dtype: tt.dtype, where: str) -> None:
        kind = np.float32 if dtype == tt.float32 else np.float64
        b = np.random.default_rng(5).uniform(0.5, 2.0, 500).astype(kind)
        whole = np.random.default_rng(6).integers(-1000, 1000, 500)
        a = np.concatenate([np.nextafter((whole * b).astype(kind), kind(to)) for to in (-INF, 0.0, INF)])
        a, b = np.append(a, kind([5.0, -5.0, 5.0, 0.0, -3.0])), np.append(np.tile(b, 3), kind([INF, INF, -INF, 2.0, 0.0]))
        a, b = np.concatenate([a, -a]), np.concatenate([b, -b])
        assert (np.floor(a / b) != np.floor_divide(a, b)).any()
        _, (_, g), _ = derivatives(tt.remainder, (a, b), where, dtype)
        assert np.array_equal(-g.cpu().detach().numpy(), np.floor_divide(a, b))

    def test_the_origin_has_no_angle(self, dtype: tt.dtype, where: str) -> None:
        _, first, second = derivatives(tt.atan2, ([0.0, 0.0, 3e-30, 3e30], [0.0, 2.0, 4e-30, 4e30]), where, dtype)
        same(first[0], [0.0, 0.5, 4 / 25 * 1e30, 4 / 25 * 1e-30])
        same(first[1], [0.0, 0.0, -3 / 25 * 1e30, -3 / 25 * 1e-30])
        assert [h[0].item() for row in second for h in row] == [0.0] * 4

    def test_an_upstream_zero_takes_nothing_of_an_infinite_slope(self, dtype: tt.dtype, where: str) -> None:
        a, b = (tt.tensor(v, dtype=dtype, device=where, requires_grad=True) for v in ([INF, 1.0, NAN, 1e30], [2.0, 0.0, 1.0, 1e-30]))
        assert tt.autograd.grad(a / b, b, tt.zeros_like(b))[0].tolist() == [0.0] * 4
        (g,) = tt.autograd.grad(a / b, b, tt.zeros_like(b), create_graph=True)
        assert g.tolist() == [0.0] * 4
        assert tt.autograd.grad(a**b, a, tt.zeros_like(b))[0].tolist() == [0.0] * 4

    @pytest.mark.parametrize("f", [tt.remainder, tt.fmod])
    def test_remainders_are_straight_also_where_they_are_nan(self, f: Any, dtype: tt.dtype, where: str) -> None:
        _, _, second = derivatives(f, ([1.0, 0.0, INF, 2.0], [0.0, NAN, 0.0, 3.0]), where, dtype)
        for h in second[1]:
            same(h, [0.0] * 4)

    @pytest.mark.parametrize("rounding", ["floor", "trunc"])
    def test_rounded_quotients_are_flat_also_where_they_are_nan(self, rounding: str, dtype: tt.dtype, where: str) -> None:
        y, first, _ = derivatives(
            lambda a, b: tt.div(a, b, rounding_mode=rounding), ([1.0, NAN, INF, -7.0], [NAN, 0.0, 0.0, 2.0]), where, dtype
        )
        same(y, [NAN, NAN, INF, -4.0 if rounding == "floor" else -3.0])
        for g in first:
            same(g, [0.0] * 4)

    def test_powers_of_exponent_0(self, dtype: tt.dtype, where: str) -> None:
        a = [0.0, 0.5, 2.0, -2.0, INF, NAN]
        y, (ga, gb), (ha, hb) = derivatives(tt.pow, (a, [0.0] * 6), where, dtype)
        same(y, [1.0] * 6)
        same(ga, [0.0] * 6)
        same(gb, [0.0, -math.log(2), math.log(2), NAN, INF, NAN])
        same(ha[0], [0.0] * 6)
        same(ha[1], [0.0, 2.0, 0.5, -0.5, 0.0, 0.0])  # d(b a^(b - 1)) / db = 1 / a
        same(hb[0], [0.0, 2.0, 0.5, -0.5, 0.0, NAN])  # d(a^b log a) / da, the same
        same(hb[1], [0.0, math.log(2) ** 2, math.log(2) ** 2, NAN, INF, NAN])

    def test_clamp_between_equal_bounds(self, dtype: tt.dtype, where: str) -> None:
        x = [0.0, 1.0, 2.0, 0.0, NAN, NAN]
        _, (g, low, high), _ = derivatives(tt.clamp, (x, [1.0] * 6, [1.0, 1.0, 1.0, 0.5, 1.0, 0.5]), where, dtype)
        same(g, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0])
        same(low, [0.0] * 6)
        same(high, [0.0, 0.0, 1.0, 1.0, 0.0, 1.0])


@pytest.mark.parametrize("where", DEVICES)
class TestDenormals:
    """1 / 1e-40 overflows in float32: what is multiplied by it must not be 0."""

    def test_a_quotient(self, where: str) -> None:
        _, (_, g), _ = derivatives(tt.div, ([0.0, 1e-40], [1e-40, 1.0]), where, tt.float32)
        same(g, [0.0, np.float32(-1e-40)])

    def test_xlogy(self, where: str) -> None:
        _, (_, g), (_, (_, h)) = derivatives(tt.xlogy, ([0.0], [1e-40]), where, tt.float32)
        same(g, [0.0])
        same(h, [0.0])

    def test_hypot(self, where: str) -> None:
        _, first, second = derivatives(tt.hypot, ([1e-40], [0.0]), where, tt.float32)
        same(first[0], [1.0])
        same(first[1], [0.0])
        same(second[1][0], [0.0])
        same(second[1][1], [INF])


def test_integers_divide_toward_0() -> None:
    a, b = tt.tensor([7, -7, 7, -7, 6]), tt.tensor([2, 2, -2, -2, 3])
    assert tt.div(a, b, rounding_mode="trunc").tolist() == [3, -3, -3, 3, 2]
    assert tt.div(a.cuda(), b.cuda(), rounding_mode="trunc").tolist() == [3, -3, -3, 3, 2]
    assert tt.div(tt.tensor([255, 7], dtype=tt.uint8), 2, rounding_mode="trunc").tolist() == [127, 3]
    with pytest.raises(ZeroDivisionError):
        tt.div(a, 0, rounding_mode="trunc")


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("again", [False, True])
def test_dividing_by_a_negative_zero(where: str, again: bool) -> None:
    x = tt.tensor([1.0, -2.0, 0.0], device=where, requires_grad=True)
    for zero in (0.0, -0.0, 0.0):
        for divisor in (zero, tt.tensor(zero, device=where)):
            (g,) = tt.autograd.grad((x / divisor).sum(), x, create_graph=again)
            assert g.tolist() == [math.copysign(INF, zero)] * 3
        (g,) = tt.autograd.grad(x / zero, x, tt.zeros(3, device=where), create_graph=again)
        assert g.tolist() == [0.0] * 3  # an upstream zero


@pytest.mark.parametrize("where", DEVICES)
@pytest.mark.parametrize("dtype", [*TYPES, tt.float16, tt.bfloat16])
def test_the_slope_of_copysign(where: str, dtype: tt.dtype) -> None:
    """The product of the signs of x and of the result: 0 at 0, NaN of NaN, whatever the other's sign is taken of."""
    sizes = [(NAN, NAN), (0.0, 0.0), (-0.0, 0.0), (INF, 1.0), (-INF, -1.0), (1.0, 1.0), (-2.0, -1.0)]
    signs = [NAN, -NAN, 0.0, -0.0, 1.0, -1.0, INF, -INF]
    for again in (False, True):
        for size, slope in sizes:
            x = tt.full((8,), size, dtype=dtype, device=where, requires_grad=True)
            y = tt.tensor(signs, dtype=dtype, device=where, requires_grad=True)
            gx, gy = tt.autograd.grad(tt.copysign(x, y).sum(), (x, y), create_graph=again)
            wanted = [slope * math.copysign(1.0, s) for s in signs]
            np.testing.assert_array_equal(gx.detach().float().cpu().numpy(), wanted)
            assert gy.tolist() == [0.0] * 8


@pytest.mark.parametrize(("dtype", "close"), [(tt.complex64, 2e-7), (tt.complex128, 1e-15)])
def test_log1p_of_small_complex_numbers(dtype: tt.dtype, close: float) -> None:
    """log(1 + z) = z - z^2 / 2 + ..., each part to its own last digits."""
    x = tt.tensor([1e-10, 1e-10j, 1e-10 + 1e-10j, 1e-200 if dtype is tt.complex128 else 1e-30, -0.5 + 0.5j], dtype=dtype)
    want = [1e-10 - 5e-21, 5e-21 + 1e-10j, 1e-10 + 1e-10j - 1e-20j, x[3].item(), -0.5 * math.log(2) + 0.25j * math.pi]
    copy = x.clone()
    for y in (x.log1p(), copy.log1p_(), tt.log1p(x, out=tt.empty_like(x))):
        for got, wanted in zip(y.tolist(), want, strict=True):
            assert got.real == pytest.approx(wanted.real, rel=close)
            assert got.imag == pytest.approx(wanted.imag, rel=close)
    assert x[:1].log1p().item() == pytest.approx(x[0].log1p().item(), rel=1e-15)
    tiny = tt.logaddexp(x[0] * 0, x[0] * 0 - 25).real.item()  # log(1 + e^-25)
    assert tiny == pytest.approx(1.3887943864771144e-11, rel=close)


@pytest.mark.parametrize("name", ["round", "floor", "ceil", "trunc", "fix"])
def test_complex_numbers_are_not_rounded(name):
    z = tt.tensor([1.5 + 2.5j])
    for call in (getattr(tt, name), getattr(tt.Tensor, f"{name}_")):
        with pytest.raises(tt.DTypeError, match="input is complex64"):
            call(z)
    assert z.tolist() == [1.5 + 2.5j]
    assert getattr(tt, name)(tt.tensor([3])).tolist() == [3]


def test_nan_to_num_of_complex_numbers_takes_both_parts():
    z = tt.tensor([[complex(NAN, 1), complex(1, INF)], [complex(-INF, NAN), 2 - 3j]])
    assert z.nan_to_num(4.0, 5.0, 6.0).tolist() == [[4 + 1j, 1 + 5j], [6 + 4j, 2 - 3j]]
    largest = tt.finfo(tt.float32).max
    assert z.t().nan_to_num_().tolist() == [[1j, complex(-largest, 0)], [complex(1, largest), 2 - 3j]]
    assert z.tolist() == [[1j, complex(1, largest)], [complex(-largest, 0), 2 - 3j]]
    x = tt.tensor([complex(NAN, 1), 3 + 4j], requires_grad=True)
    tt.view_as_real(x.nan_to_num()).sum().backward()
    assert x.grad.tolist() == [1j, 1 + 1j]


def test_cosine_similarity_is_of_real_vectors():
    z = tt.tensor([[1 + 2j, 3j]])
    with pytest.raises(tt.DTypeError, match="cosine_similarity: x1 is complex64; it takes float types; view_as_real"):
        tt.cosine_similarity(z, z)
    parts = tt.view_as_real(z).flatten(-2)
    assert tt.cosine_similarity(parts, parts).item() == pytest.approx(1.0)
