"""Accuracy that the special functions promise, against values known to 40 digits (tests/peer/special_values.py), on every device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.test_accuracy import DEVICES, on

VALUES: dict[str, Any] = json.loads(Path(__file__).with_name("special_values.json").read_text())
# Units in the last place, of float32 and of float64; 4 where no more is said.
ULPS: dict[str, tuple[float, float]] = {
    "i0": (6, 8), "i1": (6, 8), "i0e": (6, 8), "i1e": (8, 8),  # exp(-x) times a function that grows as exp(x) does
    "erfinv": (4, 6), "ndtri": (4, 6),
    "modified_bessel_k0": (4, 6), "modified_bessel_k1": (4, 6), "scaled_modified_bessel_k0": (4, 6), "scaled_modified_bessel_k1": (4, 6),
    "trigamma": (6, 6), "zeta": (8, 64),  # a sum of powers, each within 2 ulp; of large exponents one ulp of the base weighs many
    "gammainc": (2, 4096), "gammaincc": (2, 4096),  # computed in float64; a log x - x - lgamma(a) cancels: a few thousand ulp at a = 150
}  # fmt: skip
# Functions with zeros: beside them an ulp says nothing. In roundings (eps) of the largest value that the function has near x.
AROUND_ZEROS: dict[str, float] = {"gammaln": 6, "digamma": 6, "bessel_j0": 6, "bessel_j1": 6, "bessel_y0": 8, "bessel_y1": 8, "airy_ai": 24}


def _result(name: str, device: str, dtype: type) -> tuple[np.ndarray, np.ndarray]:
    *inputs, truth = (np.array(v) for v in VALUES[name])
    tensors = on(device, *[x.astype(dtype) for x in inputs])
    f: Any = (lambda x: tt.polygamma(1, x)) if name == "trigamma" else getattr(tt.special, name)
    return f(*tensors).cpu().numpy(), truth


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", list(VALUES))
def test_special(name: str, dtype: type, device: str) -> None:
    got, truth = _result(name, device, dtype)
    inside = np.abs(truth) > 1e-30
    if name in AROUND_ZEROS:
        bound = AROUND_ZEROS[name]
        error = np.abs(got - truth) / (np.finfo(dtype).eps * np.maximum(np.abs(truth), 1.0 if name != "airy_ai" else 0.25))
    else:
        bound = ULPS.get(name, (4, 4))[dtype is np.float64]
        error = np.abs(got.astype(np.float64) - truth) / np.spacing(np.abs(truth).astype(dtype)).astype(np.float64)
    error = error[inside]
    worst = int(np.argmax(error))
    assert not np.isnan(error).any()
    assert error[worst] <= bound, f"{name} at {VALUES[name][0][worst]!r} is {error[worst]:.2f} off, {bound} are promised"


# a polynomial of degree n is what numpy's recurrence makes of its coefficients
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("name", "basis"),
    [
        ("chebyshev_polynomial_t", np.polynomial.Chebyshev), ("hermite_polynomial_h", np.polynomial.Hermite), ("hermite_polynomial_he", np.polynomial.HermiteE),
        ("laguerre_polynomial_l", np.polynomial.Laguerre), ("legendre_polynomial_p", np.polynomial.Legendre),
    ],
)  # fmt: skip
def test_polynomials(name: str, basis: Any, device: str) -> None:
    x = np.linspace(-1.5, 1.5, 21)
    for n in (0, 1, 2, 5, 9):
        (t,) = on(device, x)
        want = basis.basis(n)(x)
        np.testing.assert_allclose(getattr(tt.special, name)(t, n).cpu().numpy(), want, rtol=1e-13, atol=1e-13 * np.abs(want).max())
