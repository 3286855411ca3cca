"""Powers and remainders at their corners: unsigned bases, the sign of a zero, alike on both devices; rolls that name no dimension."""

from __future__ import annotations

import numpy as np
import pytest

import tritensor as tt

DEVICES = ("cpu", "cuda")
WHOLE = ("uint8", "int8", "int16", "int32", "int64")


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("kind", WHOLE)
def test_integer_powers_wrap(kind: str, on: str) -> None:
    base, powers = np.arange(9).astype(kind), np.array([0, 1, 2, 3, 4, 5, 6, 7, 8], kind)
    x = tt.from_numpy(base).to(on)
    with np.errstate(over="ignore"):
        for n in (0, 4, 5, 7):
            assert (x**n).tolist() == (base ** np.array(n, kind)).tolist()
            assert (n**x).tolist() == (np.array(n, kind) ** base).tolist()
        assert (x ** tt.from_numpy(powers).to(on)).tolist() == (base**powers).tolist()
    assert (x**4).dtype is x.dtype


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize("kind", [tt.float32, tt.float64, tt.float16, tt.bfloat16])
def test_a_remainder_of_zero_has_the_sign_of_the_dividend(kind: tt.dtype, on: str) -> None:
    a = tt.tensor([0.0, -0.0, 6.0, -6.0], dtype=kind, device=on)
    b = tt.tensor([-3.0, 3.0, -3.0, 3.0], dtype=kind, device=on)
    want = [False, True, False, True]
    assert np.signbit((a % b).float().cpu().numpy()).tolist() == want
    assert np.signbit((a % -3.0).float().cpu().numpy()).tolist() == want
    assert np.signbit((a % 3.0).float().cpu().numpy()).tolist() == want
    assert (tt.tensor([5.0, -5.0], dtype=kind, device=on) % 3.0).tolist() == [2.0, 1.0]


@pytest.mark.parametrize("on", DEVICES)
def test_roll_refuses_dimensions_that_are_not_there(on: str) -> None:
    for x, dim in ((tt.tensor(2.0, device=on), 0), (tt.tensor(2.0, device=on), -1), (tt.zeros(3, device=on), 1)):
        with pytest.raises(IndexError, match="roll: dim"):
            x.roll(1, dim)
    assert tt.tensor(2.0, device=on).roll(1).item() == 2.0


@pytest.mark.parametrize("kind", ["uint8", "int8", "int32"])
def test_many_numbers_at_the_limits_of_integers_are_replayed(kind: str) -> None:
    info = np.iinfo(kind)
    x = np.array([0, 1, 7], kind)
    there = tt.from_numpy(x).to("cuda")
    with np.errstate(over="ignore"):
        for k in range(20):  # more than are learnt one by one
            for n in (info.max - k, info.min + k):
                assert (there * n).tolist() == (x * np.array(n, kind)).tolist()


@pytest.mark.parametrize("on", DEVICES)
@pytest.mark.parametrize(
    ("kind", "low", "high"), [("uint8", 0, 255), ("int8", -128, 127), ("int32", -(2**31), 2**31 - 1), ("int64", -(2**63), 2**63 - 1)]
)
def test_numbers_fit_up_to_the_limits(kind: str, low: int, high: int, on: str) -> None:
    x = tt.zeros(2, dtype=getattr(tt, kind), device=on)
    assert (x + low).tolist() == [low, low]
    assert (x + high).tolist() == [high, high]
    for n in (low - 1, high + 1):
        with pytest.raises(OverflowError, match=f"{n} does not fit {kind}"):
            x + n


@pytest.mark.parametrize("on", DEVICES)
def test_bools_to_the_power_of_a_bool_are_bools(on: str) -> None:
    x = tt.tensor([False, True], device=on)
    for y, want in (
        (x**True, [False, True]),
        (x**False, [True, True]),
        (True**x, [True, True]),
        (False**x, [True, False]),
        (x**x, [True, True]),
    ):
        assert (y.dtype, y.tolist()) == (tt.bool, want)
    assert x.pow_(False).tolist() == [True, True]
    assert (x**2).dtype is tt.int64


@pytest.mark.parametrize(("dtype", "large"), [(tt.complex64, 1e19), (tt.complex128, 1e154)])
def test_complex_powers_below_0_of_numbers_whose_squares_overflow(dtype: tt.dtype, large: float) -> None:
    z = 3j * large
    x = tt.tensor([z, 2 + 1j], dtype=dtype, requires_grad=True)
    want = [-1 / 9 / large**2, (2 + 1j) ** -2]
    for y in (x**-2, x**-2.0, x ** tt.tensor([-2, -2]), x.detach().clone().pow_(-2), tt.pow(x.detach(), -2, out=tt.empty(2, dtype=dtype))):
        for got, wanted in zip(y.tolist(), want, strict=True):
            assert got == pytest.approx(wanted, rel=1e-5)
    assert (x[0].detach() ** -2).item() == pytest.approx(want[0], rel=1e-5)
    (x**-1).real.sum().backward()  # conj(-1 / z^2)
    assert x.grad.tolist()[0] == pytest.approx(-want[0], rel=1e-5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("base", [-np.inf, np.inf, -0.0, 0.0])
@pytest.mark.parametrize("exponent", [0.5, -0.5, 3.0, -3.0, 2.0, 0.0])
def test_one_base_for_many_exponents(base: float, exponent: float) -> None:
    """What an infinite base, or 0, gives is said of every element, not of the first alone."""
    many = tt.full((5,), exponent)
    with np.errstate(all="ignore"):
        want = np.power(np.float32(base), np.full(5, exponent, np.float32))
    for found in (tt.tensor(base) ** many, tt.full((5,), base) ** many, tt.pow(tt.tensor([base]), many)):
        np.testing.assert_array_equal(found.numpy(), want)
        np.testing.assert_array_equal(np.signbit(found.numpy()), np.signbit(want))
