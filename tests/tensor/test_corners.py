"""Functions at their corners: zeros, infinities, NaN and ties; values and gradients, the same on every device."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.ground.errors import DTypeError, ShapeError

INF, NAN = math.inf, math.nan
DEVICES = ["cpu", "cuda"]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's of infinities and NaN, which the library silences


def asked(device: str, f: Callable[..., tt.Tensor], *inputs: list[float]) -> list[list[float]]:
    """f's value, and the gradients of its sum."""
    xs = [tt.tensor(x, dtype=tt.float64, device=device, requires_grad=True) for x in inputs]
    y = f(*xs)
    return [v.detach().cpu().numpy().tolist() for v in (y, *tt.autograd.grad(y.sum(), xs))]


def agree(got: list[Any], want: list[Any]) -> None:
    for g, w in zip(got, want, strict=True):
        np.testing.assert_allclose(g, w, rtol=1e-12, atol=0)


@pytest.mark.parametrize("device", DEVICES)
def test_xlogy(device: str) -> None:
    got = asked(device, tt.xlogy, [0.0, 0.0, 0.0, 1.0, NAN, 2.0, 2.0], [2.0, 0.0, NAN, 0.0, 1.0, -1.0, math.e])
    agree(got, [[0, 0, NAN, -INF, NAN, NAN, 2], [math.log(2), 0, NAN, -INF, 0, NAN, 1], [0, NAN, NAN, INF, NAN, -2, 2 / math.e]])
    assert tt.xlogy(tt.tensor([0, 1, 2], device=device), tt.tensor([3, 4, 5], device=device)).dtype == tt.float32
    agree([tt.xlogy(2, tt.tensor([0.5], device=device)).tolist()], [[np.float32(2 * math.log(0.5))]])
    agree([tt.xlogy(tt.tensor([2.0, 0.0], device=device), 0).tolist()], [[-INF, 0]])


@pytest.mark.parametrize("device", DEVICES)
def test_atan2(device: str) -> None:
    got = asked(device, tt.atan2, [0.0, 0.0, -0.0, 1.0, 0.0, 1e200, 1e-200], [0.0, -1.0, 1.0, 0.0, -0.0, 1e200, 1e-200])
    want_a = [0, -1, 1, 0, 0, 5e-201, 5e199]
    want_b = [0, 0, 0, -1, 0, -5e-201, -5e199]
    agree(got, [[0, math.pi, -0.0, math.pi / 2, math.pi, math.pi / 4, math.pi / 4], want_a, want_b])


@pytest.mark.parametrize("device", DEVICES)
def test_hypot(device: str) -> None:
    got = asked(device, tt.hypot, [0.0, 3.0, INF, NAN, 1.0, 1e200, 3e-300], [0.0, 4.0, NAN, -INF, NAN, 0.0, 4e-300])
    agree(got, [[0, 5, INF, INF, NAN, 1e200, 5e-300], [0, 0.6, NAN, NAN, NAN, 1, 0.6], [0, 0.8, NAN, NAN, NAN, 0, 0.8]])
    x, y = (tt.tensor(v, dtype=tt.float64, device=device, requires_grad=True) for v in ([0.0, 1.0, 0.0], [1.0, 1.0, 2.0]))
    gx, gy = tt.autograd.grad(tt.hypot(x, y).sum(), (x, y), create_graph=True)
    (xx, xy) = tt.autograd.grad(gx.sum(), (x, y), retain_graph=True)
    agree([xx.tolist(), xy.tolist()], [[1, 8**-0.5, 0.5], [0, -(8**-0.5), 0]])
    agree([tt.autograd.grad(gy.sum(), y)[0].tolist()], [[0, 8**-0.5, 0]])


@pytest.mark.parametrize("device", DEVICES)
def test_logaddexp(device: str) -> None:
    got = asked(device, tt.logaddexp, [-INF, INF, -INF, INF, 1.0, 1e5], [-INF, INF, 1.0, 2.0, 1.0, 0.0])
    agree(got, [[-INF, INF, 1, INF, 1 + math.log(2), 1e5], [NAN, NAN, 0, 1, 0.5, 1], [NAN, NAN, 1, 0, 0.5, 0]])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", ["floor", "trunc", "//"])
def test_rounded_quotients_stay_in_the_graph(mode: str, device: str) -> None:
    def f(a: tt.Tensor, b: tt.Tensor) -> tt.Tensor:
        return a // b if mode == "//" else tt.div(a, b, rounding_mode=mode)

    got = asked(device, f, [5.0, -7.0, 0.0], [2.0, 2.0, 1.0])
    agree(got, [[2, -3 if mode == "trunc" else -4, 0], [0, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("device", DEVICES)
def test_division_by_truth_values(device: str) -> None:
    agree(asked(device, lambda x: x / True, [1.0, 2.0]), [[1, 2], [1, 1]])
    b = tt.tensor([True, False], device=device)
    agree(asked(device, lambda x: x / b, [1.0, 2.0]), [[1, INF], [1, INF]])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("p", [0, 0.3, 0.5, 1, 1.5, 2, 2.5, 3, 4, INF, -INF, -1, -2])
def test_norm_of_zeros(p: float, device: str) -> None:
    agree(asked(device, lambda x: tt.norm(x, p), [0.0, 0.0, 0.0]), [0, [0, 0, 0]])
    x = tt.tensor([0.0, 1.0, -2.0], dtype=tt.float64, device=device, requires_grad=True)
    y = tt.norm(x, p)
    (g,) = tt.autograd.grad(y, x, create_graph=True)
    power = [2.0**p] if 0 < abs(p) < INF else []
    want = 2.0 if p in (0, INF) else 0.0 if p < 0 else (1 + power[0]) ** (1 / p)
    assert y.item() == pytest.approx(want, rel=1e-12)
    assert g[0].item() == 0
    assert np.isfinite(g.detach().cpu().numpy()).all()
    if p == 0 or p < 0:
        assert g.tolist() == [0, 0, 0]
    if g.requires_grad:
        (h,) = tt.autograd.grad(g.sum(), x)
        assert np.isfinite(h.cpu().numpy()).all()


@pytest.mark.parametrize("device", DEVICES)
def test_norm_of_infinities(device: str) -> None:
    x = tt.tensor([INF, 1.0], device=device)
    assert [tt.norm(x, p).item() for p in (1, 2, 3, -1)] == [INF, INF, INF, 1.0]
    assert tt.norm(tt.tensor([INF], device=device), -1).item() == INF


@pytest.mark.parametrize(("device", "shape"), [("cpu", (4, 6)), ("cpu", (6, 3)), ("cpu", (2, 3, 4)), ("cuda", (2, 2))])
def test_nuclear_norm(shape: tuple[int, ...], device: str) -> None:
    a = np.random.default_rng(0).normal(size=shape)
    dim = None if len(shape) == 2 else (2, 0)
    x = tt.tensor(a, device=device, requires_grad=True)
    y = tt.norm(x, "nuc", dim)
    matrices = a if dim is None else np.transpose(a, (1, 2, 0))
    u, s, vt = np.linalg.svd(matrices, full_matrices=False)
    np.testing.assert_allclose(y.detach().cpu().numpy(), s.sum(-1), rtol=1e-13)
    (g,) = tt.autograd.grad(y.sum(), x)
    want = u @ vt if dim is None else np.transpose(u @ vt, (2, 0, 1))
    np.testing.assert_allclose(g.cpu().numpy(), want, atol=1e-13)
    assert tt.norm(x, "nuc", dim, keepdim=True).shape == ((1, 1) if dim is None else (1, 3, 1))


def test_nuclear_norm_of_deficient_and_wrong_matrices() -> None:
    x = tt.zeros(3, 2, dtype=tt.float64, requires_grad=True)
    y = tt.norm(x, "nuc")
    y.backward()
    assert y.item() == 0
    assert x.grad.tolist() == [[0, 0]] * 3
    big = tt.tensor([[3e30, 0.0], [0.0, 4e30]])
    assert tt.norm(big, "nuc").item() == pytest.approx(7e30, rel=1e-6)
    assert tt.norm(tt.zeros(0, 3), "nuc").item() == 0
    with pytest.raises(ShapeError, match=r"p='nuc' of input \(3,\)"):
        tt.norm(tt.ones(3), "nuc")
    with pytest.raises(ValueError, match="neither 'fro' nor 'nuc'"):
        tt.norm(tt.ones(3), "two")
    with pytest.raises(DTypeError, match="norm takes floating types"):
        tt.norm(tt.ones(3, dtype=tt.int64))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dim", [None, (0, 2), 1])
def test_product_of_permuted_inputs_to_second_order(dim: Any, device: str) -> None:
    a = np.random.default_rng(1).uniform(0.5, 1.5, (3, 4, 5))
    w = np.cos(np.arange(3 * 4 * 5)).reshape(3, 4, 5)

    def second(permuted: bool) -> tuple[list[Any], ...]:
        x = tt.tensor(a if not permuted else np.ascontiguousarray(a.transpose(2, 0, 1)), device=device, requires_grad=True)
        y = tt.prod(x.permute(1, 2, 0) if permuted else x, dim)
        (g,) = tt.autograd.grad((y * y).sum(), x, create_graph=True)
        (h,) = tt.autograd.grad((g * tt.tensor(w if not permuted else w.transpose(2, 0, 1).copy(), device=device)).sum(), x)
        back = (1, 2, 0)
        return tuple((v.detach().permute(*back) if permuted else v.detach()).cpu().numpy() for v in (g, h))

    for got, want in zip(second(True), second(False), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
def test_reductions_of_nothing(device: str) -> None:
    assert asked(device, lambda x: tt.logsumexp(x, 0), []) == [-INF, []]
    empty = tt.zeros(2, 0, device=device)
    assert tt.logsumexp(empty, 1).tolist() == [-INF, -INF]
    assert tt.logsumexp(empty, 0).shape == (0,)
    assert tt.logsumexp(empty, (0, 1), keepdim=True).tolist() == [[-INF]]
    assert tt.sum(empty, 1).tolist() == [0, 0]
    assert tt.sum(empty, 0).shape == (0,)
    assert tt.prod(empty, 1).tolist() == [1, 1]
    assert tt.mean(empty, 1).isnan().all()
    assert tt.var(empty, 1).isnan().all()


@pytest.mark.parametrize("device", DEVICES)
def test_pow(device: str) -> None:
    base = [0.0, 0.0, 0.0, -0.0, -1.0, -2.0, -2.0, INF, -INF, NAN, 1.0, 2.0]
    power = [0.0, 2.0, -1.0, -1.0, 0.5, 3.0, 2.0, -1.0, 3.0, 0.0, NAN, INF]
    value, by_base, by_power = asked(device, tt.pow, base, power)
    agree([value], [[1, 0, INF, -INF, NAN, -8, 4, 0, -INF, 1, 1, INF]])
    agree([by_base[:3], by_base[5:7]], [[0, 0, -INF], [12, -4]])
    assert by_base[9] == 0, "the slope of x^0"
    assert by_power[:2] == [0, 0]
    for exponent, slope in ((1, 1.0), (2, 6.0), (3, 27.0), (0.5, 0.5 / 3**0.5), (-0.5, -0.5 * 3**-1.5), (-1, -1 / 9), (0, 0.0)):
        agree(asked(device, lambda x, e=exponent: x**e, [3.0]), [[3.0**exponent], [slope]])
    whole = tt.tensor([-2, -1, 0, 1, 3], device=device)
    assert (whole**3).tolist() == [-8, -1, 0, 1, 27]
    assert (whole ** tt.tensor([0, 5, 0, 9, 2], device=device)).tolist() == [1, -1, 1, 1, 9]
    assert (whole ** tt.tensor([-1, -1, 2, -3, -2], device=device)).tolist() == [0, -1, 0, 1, 0]
    with pytest.raises(ValueError, match="fractions, which integers cannot hold"):
        whole**-1


@pytest.mark.parametrize("device", DEVICES)
def test_remainders_have_the_sign_of_the_divisor_and_fmod_of_the_dividend(device: str) -> None:
    a, b = [7.0, -7.0, 7.0, -7.0, 6.0, -6.0], [3.0, 3.0, -3.0, -3.0, 3.0, -3.0]
    agree(asked(device, tt.remainder, a, b), [[1, 2, -2, -1, 0, 0], [1] * 6, [-2, 3, 3, -2, -2, -2]])
    agree(asked(device, tt.fmod, a, b), [[1, -1, 1, -1, 0, 0], [1] * 6, [-2, 2, 2, -2, -2, -2]])
    x, y = (tt.tensor([int(v) for v in s], device=device) for s in (a, b))
    assert tt.remainder(x, y).tolist() == [1, 2, -2, -1, 0, 0]
    assert tt.fmod(x, y).tolist() == [1, -1, 1, -1, 0, 0]
    assert (x // y).tolist() == [2, -3, -3, 2, 2, 2]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("n", [3, 20_000])
def test_softmax_of_rows_without_a_finite_score(n: int, device: str) -> None:
    x = np.full((3, n), -INF, np.float32)
    x[1, :2] = 0.0
    x[2] = 1.0
    for f, filled in ((tt.softmax, 0.5), (tt.log_softmax, math.log(0.5))):
        y = f(tt.tensor(x, device=device), 1).cpu().numpy()
        assert np.isnan(y[0]).all(), "nothing to share out"
        np.testing.assert_allclose(y[1, :2], filled, rtol=1e-6)
        assert (y[1, 2:] == (0 if f is tt.softmax else -INF)).all()
        np.testing.assert_allclose(y[2], 1 / n if f is tt.softmax else -math.log(n), rtol=1e-5)


@pytest.mark.parametrize("equation", ["iii->i", "iii->", "iij->j", "iij->ij", "iji->j", "jii->j", "jii->ij", "iij,j->i", "iji,i->j"])
def test_einsum_with_a_letter_twice_in_one_term(equation: str) -> None:
    """numpy's, whose definition is the same: the diagonal."""
    x, y = np.arange(27.0).reshape(3, 3, 3), np.array([2.0, -1.0, 3.0])
    operands = (x, y) if "," in equation else (x,)
    found = tt.einsum(equation, *map(tt.tensor, operands))
    assert found.tolist() == np.einsum(equation, *operands).tolist()


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_as_tensor_copies_only_for_another_type_or_device(on: str) -> None:
    x = tt.ones(2, device=on)
    other = "cpu" if on == "cuda" else "cuda"
    assert tt.as_tensor(x) is x
    assert tt.as_tensor(x, dtype=tt.float32).data_ptr() == x.data_ptr()
    assert tt.as_tensor(x, dtype=tt.float64).dtype == tt.float64
    assert tt.as_tensor(x, device=other).device.type == other
    both = tt.as_tensor(x, dtype=tt.int64, device=other)
    assert (both.dtype, both.device.type) == (tt.int64, other)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_lerp_ends_where_it_shall(on: str) -> None:
    """start + 1 * (end - start) is not end where the difference is rounded."""
    x, end = tt.tensor([1e8, 1.0, -1e8], device=on), tt.tensor([1.0, 1e8, 3.0], device=on)
    for one in (1.0, tt.ones(3, device=on)):
        assert tt.lerp(x, end, one).tolist() == end.tolist()
    for zero in (0.0, tt.zeros(3, device=on)):
        assert tt.lerp(x, end, zero).tolist() == x.tolist()
    weight = tt.tensor([0.25, 0.5, 0.75], device=on, requires_grad=True)
    (g,) = tt.autograd.grad(tt.lerp(x, end, weight).sum(), weight)
    assert g.tolist() == (end - x).tolist()


def test_numbers_that_a_type_does_not_hold_are_told_so() -> None:
    with pytest.raises(OverflowError, match=r"^full_like: -1 does not fit uint8 \(0 to 255\); cast the tensor first$"):
        tt.full_like(tt.zeros(2, dtype=tt.uint8), -1)
    with pytest.raises(OverflowError, match=r"^arange: -3 does not fit uint8 \(0 to 255\); cast the tensor first$"):
        tt.arange(-3, 5, dtype=tt.uint8)


@pytest.mark.parametrize("on", ["cpu", "cuda"])
def test_several_steps_of_16_bits_are_rounded_once(on: str) -> None:
    x = tt.tensor([2048.0, 1.0], dtype=tt.float16, device=on)
    a, b = tt.tensor([-45.0, 300.0], dtype=tt.float16, device=on), tt.tensor([45.5, 300.0], dtype=tt.float16, device=on)
    assert tt.addcmul(x, a, b).tolist() == [0.5, float("inf")]  # -2047.5 is no float16
    assert tt.addcmul(x, a, b, value=0.5)[1].item() == 44992.0  # nor is 90000
    assert tt.addcdiv(x, a, b, value=2048.0)[0].item() == 22.5
    assert tt.lerp(x, -x, 0.25).tolist() == [1024.0, 0.5]
    assert (
        tt.lerp(tt.tensor(60000.0, dtype=tt.float16, device=on), tt.tensor(-60000.0, dtype=tt.float16, device=on), 0.25).item() == 30000.0
    )


def test_what_is_not_rounded() -> None:
    z = tt.tensor([1.5 + 1.5j])
    for name in ("floor", "ceil", "trunc", "round"):
        with pytest.raises(NotImplementedError, match=rf"^{name}: input is complex64, which has no order; take"):
            getattr(tt, name)(z)
        with pytest.raises(NotImplementedError, match="has no order"):
            getattr(z, name + "_")()
    with pytest.raises(NotImplementedError, match=r"^round: input is int64, decimals is -1; tens are rounded of floats"):
        tt.tensor([15, 25]).round(decimals=-1)
    assert tt.tensor([15, 25]).round(decimals=2).tolist() == [15, 25]
    assert tt.tensor([15.0, 25.0]).round(decimals=-1).tolist() == [20.0, 20.0]


def test_a_complex_number_is_a_real_one_without_an_imaginary_part() -> None:
    assert float(tt.tensor(2.5 + 0j)) == 2.5
    assert int(tt.tensor(2.5 + 0j)) == 2
    for kind in (float, int):
        with pytest.raises(RuntimeError, match=rf"^{kind.__name__}: \(1\+2j\) has an imaginary part; take x.real, or x.abs\(\)$"):
            kind(tt.tensor(1 + 2j))


def test_a_tensor_contains_numbers() -> None:
    x = tt.tensor([1, 2])
    assert 2 in x
    assert 2.5 not in x
    assert tt.tensor(1) in x
    for strange in ("a", None):
        with pytest.raises(RuntimeError, match=r"^in: a tensor holds numbers, not a \w+; give a number or a tensor$"):
            strange in x  # noqa: B015
