# Written by `python -m tritensor.tools.stubs`; edit the functions themselves.
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

def airy_ai(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Airy function Ai. It has no gradient."""

def bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function J0. It has no gradient."""

def bessel_j1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function J1. It has no gradient."""

def bessel_y0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind Y0, NaN below 0. It has no gradient."""

def bessel_y1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The Bessel function of the second kind Y1, NaN below 0. It has no gradient."""

def chebyshev_polynomial_t(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the first kind, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def chebyshev_polynomial_u(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the second kind, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def chebyshev_polynomial_v(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the third kind, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def chebyshev_polynomial_w(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the fourth kind, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def digamma(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of lgamma; NaN at -1, -2, ..."""

def entr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """-x log(x): 0 at 0, -inf below."""

def erfcx(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x^2) erfc(x), which does not vanish where erfc does."""

def erfinv(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of erf: infinite at 1 and -1, NaN beyond."""

def gammainc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised lower incomplete gamma function P(x, other). Raises GradError for a gradient by x; there is that by other alone."""

def gammaincc(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The regularised upper incomplete gamma function 1 - P(x, other). Raises GradError for a gradient by x; there is that by other alone."""

def gammaln(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log |gamma(x)|, infinite at 0, -1, -2, ..."""

def hermite_polynomial_h(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Hermite's polynomial in the physicist's scaling, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def hermite_polynomial_he(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Hermite's polynomial in the probabilist's scaling, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I0."""

def i0e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(-|x|) I0(x)."""

def i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I1."""

def i1e(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(-|x|) I1(x)."""

def laguerre_polynomial_l(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Laguerre's polynomial, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def legendre_polynomial_p(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Legendre's polynomial, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def log_ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """log(ndtr(x)), finite where ndtr vanishes."""

def modified_bessel_i0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I0; without a gradient, which `i0` has."""

def modified_bessel_i1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function I1; without a gradient, which `i1` has."""

def modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function K0: inf at 0, NaN below. It has no gradient."""

def modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The modified Bessel function K1: inf at 0, NaN below. It has no gradient."""

def multigammaln(input: Tensor, p: _builtins.int, *, out: Tensor | None = None) -> Tensor:
    """log of the multivariate gamma function of p dimensions: p (p - 1) / 4 log(pi) + sum of lgamma(x - k / 2) for k < p (DLMF 35.3.4)."""

def ndtr(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The mass of the standard normal distribution below x."""

def ndtri(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The x below which the standard normal distribution has the mass given; NaN outside [0, 1]."""

def polygamma(n: _builtins.int, input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The n-th derivative of digamma. Raises ArgumentError for n below 0."""

def psi(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The derivative of lgamma; NaN at -1, -2, ..."""

def scaled_modified_bessel_k0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x) K0(x). It has no gradient."""

def scaled_modified_bessel_k1(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """exp(x) K1(x). It has no gradient."""

def shifted_chebyshev_polynomial_t(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the first kind at 2 x - 1, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def shifted_chebyshev_polynomial_u(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the second kind at 2 x - 1, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def shifted_chebyshev_polynomial_v(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the third kind at 2 x - 1, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def shifted_chebyshev_polynomial_w(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """Chebyshev's polynomial of the fourth kind at 2 x - 1, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient."""

def sinc(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""

def spherical_bessel_j0(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """sin(x) / x, 1 at 0. It has no gradient."""

def xlog1py(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """input * log1p(other), 0 where input is 0 and other no NaN."""

def zeta(input: Any, other: Any, *, out: Tensor | None = None) -> Tensor:
    """The sum of (other + k)^-input over k = 0, 1, ...; its gradient is that by other, by input it raises GradError."""
