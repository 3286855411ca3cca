"""Special functions where the questions do not reach: neighbours in every floating type, 16-bit types, far arguments, refusals, tritensor.special's names."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tritensor as tt

DEVICES = ["cpu", "cuda"]
BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16, np.dtype(np.float32), np.dtype(np.float64)])
def test_the_next_number_is_one_step_of_the_bits(dtype: np.dtype, device: str) -> None:
    bits = {2: np.int16, 4: np.int32, 8: np.int64}[dtype.itemsize]
    start = np.array([1.0, 1.5, 3.0, 0.25, 2.0], dtype)
    x = tt.from_numpy(start).to(device)
    for towards, step in ((9.0, 1), (-9.0, -1)):
        got = tt.nextafter(x, tt.full((5,), towards, dtype=x.dtype, device=device)).cpu().numpy()
        np.testing.assert_array_equal(got.view(bits), start.view(bits) + bits(step))
        got = tt.nextafter(-x, tt.full((5,), -towards, dtype=x.dtype, device=device)).cpu().numpy()
        np.testing.assert_array_equal(got.view(bits), (-start).view(bits) + bits(step))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16])
def test_neighbours_of_zero_infinity_and_nan_in_16_bits(dtype: np.dtype, device: str) -> None:
    tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal)
    a = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 2.0], dtype)
    b = np.array([1.0, -1.0, 0.0, 0.0, 1.0, np.nan, 2.0], dtype)
    largest = float(ml_dtypes.finfo(dtype).max)
    got = tt.nextafter(*(tt.from_numpy(v).to(device) for v in (a, b))).cpu().numpy().astype(np.float64)
    np.testing.assert_array_equal(got, [tiny, -tiny, largest, -largest, np.nan, np.nan, 2.0])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.dtype(np.float16), BF16])
@pytest.mark.parametrize("name", ["erfcx", "i1", "bessel_j0", "airy_ai", "modified_bessel_k1", "gammaln", "digamma", "ndtri"])
def test_16_bit_types_compute_in_float32_and_round_once(name: str, dtype: np.dtype, device: str) -> None:
    a = np.linspace(0.05, 0.95, 19).astype(dtype)
    f = getattr(tt.special, name)
    want = f(tt.from_numpy(a.astype(np.float32))).numpy().astype(dtype)
    got = f(tt.from_numpy(a).to(device)).cpu().numpy()
    near = np.abs(got.view(np.int16).astype(int) - want.view(np.int16).astype(int)) <= (device != "cpu")  # float32 results a few ulp apart
    assert near.all()


@pytest.mark.parametrize("device", DEVICES)
def test_numbers_that_are_whole_divide_each_other(device: str) -> None:
    for dtype in (tt.int8, tt.int16, tt.int32, tt.uint8):
        a, b = (tt.tensor(v, dtype=dtype, device=device) for v in ([12, 18, 0, 7, 0], [8, 12, 5, 0, 0]))
        assert tt.gcd(a, b).tolist() == [4, 6, 5, 7, 0]
        assert tt.lcm(a, b).tolist() == [24, 36, 0, 0, 0]


@pytest.mark.parametrize("device", DEVICES)
def test_incomplete_gamma_functions_of_large_a_add_to_one(device: str) -> None:
    a = tt.tensor([60.0, 300.0, 1000.0], dtype=tt.float64, device=device)
    for factor in (0.9, 1.0, 1.1):
        p, q = tt.special.gammainc(a, a * factor), tt.special.gammaincc(a, a * factor)
        assert abs(p + q - 1).max().item() < 1e-12
    assert p[2].item() > 0.99


def test_zeta_left_of_zero_is_the_sum_over_all_numbers_less_its_mirror() -> None:
    q = np.array([-0.5, -2.25, -7.75])
    got = tt.special.zeta(2.0, tt.from_numpy(q)).numpy()
    k = np.arange(200_000)
    want = [((v + k) ** -2.0).sum() + 1 / (v + k.size - 0.5) for v in q]
    np.testing.assert_allclose(got, want, rtol=1e-9)


def test_modified_bessel_functions_have_no_gradient_under_pytorchs_names_without_one() -> None:
    x = tt.tensor([0.5], requires_grad=True)
    assert not tt.special.modified_bessel_i0(x).requires_grad
    assert tt.special.i0(x).requires_grad


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: tt.maximum(x, 2), "maximum: other is an int; give a tensor (tritensor.tensor(...))"),
        (lambda x: tt.lt(2.0, x), "lt: input is a float; give a tensor (tritensor.tensor(...))"),
        (lambda x: tt.special.zeta(2.0, 3.0), "zeta: both arguments are numbers; give a tensor for one of them (tritensor.tensor(...))"),
        (lambda x: tt.polygamma(-1, x), "polygamma: n is -1; give 0 or more"),
        (lambda x: tt.polygamma(0.5, x), "polygamma: n is 0.5; give an int, the order of the derivative"),
        (lambda x: tt.mvlgamma(x, 0), "mvlgamma: p is 0; give 1 or more"),
        (lambda x: tt.frexp(x.long()), "frexp: input is int64; frexp takes float types"),
        (lambda x: tt.heaviside(x, x.double()), "heaviside: input is float32, values is float64; cast one of them with .to(...)"),
        (lambda x: tt.isclose(x, x, rtol=-1.0), "isclose: rtol is -1.0, atol 1e-08; neither may be negative"),
        (lambda x: x.float_power_(2), "float_power_: the tensor is float32, the result float64; use the out-of-place form"),
    ],
)
def test_refusals(call: object, said: str) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError)) as raised:
        call(tt.ones(3))  # type: ignore[operator]
    assert str(raised.value).startswith(said)


@pytest.mark.parametrize("f", [tt.igamma, tt.igammac, tt.special.zeta])
def test_a_gradient_by_the_first_argument_is_refused_and_the_other_is_there(f: Any) -> None:
    a = tt.tensor([1.5, 2.5], dtype=tt.float64, requires_grad=True)
    x = tt.tensor([2.0, 1.0], dtype=tt.float64, requires_grad=True)
    alone = tt.autograd.grad(f(a.detach(), x).sum(), x)[0]
    assert tt.autograd.grad(f(a, x).sum(), x)[0].tolist() == alone.tolist()
    with pytest.raises(tt.GradError, match=f"{f.__name__}: there is no derivative by its first argument"):
        f(a, x).sum().backward()


def test_hermite_polynomials_in_float32_are_those_in_float64_rounded() -> None:
    """Where the recurrence cancels: He_7 near its zero at 1.1544."""
    x = tt.linspace(1.1, 1.2, 64, dtype=tt.float32)
    exact = tt.special.hermite_polynomial_he(x.double(), 7)
    assert tt.special.hermite_polynomial_he(x, 7).tolist() == exact.float().tolist()


@pytest.mark.parametrize("device", DEVICES)
def test_functions_of_denormal_numbers(device: str) -> None:
    x = tt.tensor([1e-40, -1e-40, 1e-3], device=device, requires_grad=True)
    y = x.lgamma().tolist()
    assert y == pytest.approx([92.103404, 92.103404, 6.9071789], rel=1e-5)  # -log |x| - 0.5772 x
    tt.special.i1e(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([0.5, 0.5, 0.4990009369], rel=1e-6)  # 1/2 - |x| + 15 x^2 / 16
    assert tt.tensor([1e-45, -1e-45], device=device).lgamma().tolist() == pytest.approx(
        [103.27893, 103.27893], rel=1e-6
    )  # of the least number
    tiny = tt.tensor([1e-310], dtype=tt.float64, device=device)
    assert tiny.lgamma().item() == pytest.approx(713.8013788, rel=1e-9)
