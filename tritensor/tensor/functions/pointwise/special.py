"""Special functions under PyTorch's names: those of `tritensor` and of Tensor, and those of `tritensor.special` alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground.errors import ArgumentError
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.derivatives import refuse_derivative
from tritensor.tensor.functions.pointwise.elementary import require_tensors
from tritensor.tensor.functions.shaping.reshaping import to_c_order
from tritensor.tensor.public_api.arguments import Operand
from tritensor.tensor.public_api.publish import function, namespaces, public, rename_function, twin

names = namespaces.setdefault("special", {})  # what tritensor.special holds, by name
_BY_FIRST = " by its first argument"


def _publish_unary(name: str, doc: str, *aliases: str, everywhere: bool, inplace: bool = True) -> None:
    """A function of one tensor that is its op and nothing else: of tritensor.special alone, or public everywhere."""

    def call(x: Tensor) -> Tensor:
        return getattr(ops, name)(x)

    # tritensor.special has no methods and no in-place forms.
    made = function(inplace=inplace and everywhere, out=True, names=aliases, namespace="" if everywhere else "special")(
        rename_function(call, name, doc)
    )
    # tritensor.special has it as gammaln alone, as PyTorch does.
    if everywhere and name != "lgamma":
        names.update({n: twin(made, n, "tritensor.special") for n in (name, *aliases)})


_EVERYWHERE: dict[str, tuple[str, tuple[str, ...]]] = {
    "erfinv": ("The inverse of erf: infinite at 1 and -1, NaN beyond.", ()),
    "lgamma": ("log |gamma(x)|, infinite at 0, -1, -2, ...", ()),
    "digamma": ("The derivative of lgamma; NaN at -1, -2, ...", ()),
    "i0": ("The modified Bessel function I0.", ()),
    "sinc": ("sin(pi x) / (pi x), 1 at 0.", ()),
}
_SPECIAL_ONLY = {
    "airy_ai": "The Airy function Ai. It has no gradient.",
    "bessel_j0": "The Bessel function J0. It has no gradient.",
    "bessel_j1": "The Bessel function J1. It has no gradient.",
    "bessel_y0": "The Bessel function of the second kind Y0, NaN below 0. It has no gradient.",
    "bessel_y1": "The Bessel function of the second kind Y1, NaN below 0. It has no gradient.",
    "entr": "-x log(x): 0 at 0, -inf below.",
    "erfcx": "exp(x^2) erfc(x), which does not vanish where erfc does.",
    "i0e": "exp(-|x|) I0(x).",
    "i1": "The modified Bessel function I1.",
    "i1e": "exp(-|x|) I1(x).",
    "log_ndtr": "log(ndtr(x)), finite where ndtr vanishes.",
    "modified_bessel_k0": "The modified Bessel function K0: inf at 0, NaN below. It has no gradient.",
    "modified_bessel_k1": "The modified Bessel function K1: inf at 0, NaN below. It has no gradient.",
    "ndtr": "The mass of the standard normal distribution below x.",
    "ndtri": "The x below which the standard normal distribution has the mass given; NaN outside [0, 1].",
    "scaled_modified_bessel_k0": "exp(x) K0(x). It has no gradient.",
    "scaled_modified_bessel_k1": "exp(x) K1(x). It has no gradient.",
    "spherical_bessel_j0": "sin(x) / x, 1 at 0. It has no gradient.",
}
for _name, (_doc, _aliases) in _EVERYWHERE.items():
    _publish_unary(_name, _doc, *_aliases, everywhere=True)
for _name, _doc in _SPECIAL_ONLY.items():
    _publish_unary(_name, _doc, everywhere=False)
names.update({n: twin(public[of], n, "tritensor.special") for n, of in (("gammaln", "lgamma"), ("psi", "digamma"))})


def _publish_without_gradient(name: str) -> None:
    """Of tritensor.special: a modified Bessel function that PyTorch gives no gradient under this name."""
    inner = names[name]

    def call(x: Tensor) -> Tensor:
        # PyTorch registers modified_bessel_i0 without a derivative, and i0 with one.
        return inner(x.detach())

    doc = f"The modified Bessel function {name.upper()}; without a gradient, which `{name}` has."
    function(namespace="special", out=True)(rename_function(call, f"modified_bessel_{name}", doc))


_publish_without_gradient("i0")
_publish_without_gradient("i1")


def _publish_binary(name: str, doc: str, second: str = "other") -> None:
    """A function of tritensor.special of two tensors, or of a tensor and a number."""

    def call(x: Operand, other: Operand) -> Tensor:
        _require_a_tensor(name, x, other)
        y = getattr(ops, name)(x, other)
        # PyTorch has no derivative of zeta by its first argument.
        return refuse_derivative(name, y, x, by=_BY_FIRST) if name == "zeta" else y

    also = {second: "other"} if second != "other" else None
    function(namespace="special", out=True, also=also)(rename_function(call, name, doc))


def _require_a_tensor(name: str, x: Any, other: Any) -> None:
    if not isinstance(x, Tensor) and not isinstance(other, Tensor):
        raise TypeError(f"{name}: both arguments are numbers; give a tensor for one of them (tritensor.tensor(...))")


_publish_binary("zeta", "The sum of (other + k)^-input over k = 0, 1, ...; its gradient is that by other, by input it raises GradError.")
_publish_binary("xlog1py", "input * log1p(other), 0 where input is 0 and other no NaN.")
for _name, _doc in {
    "chebyshev_polynomial_t": "Chebyshev's polynomial of the first kind",
    "chebyshev_polynomial_u": "Chebyshev's polynomial of the second kind",
    "chebyshev_polynomial_v": "Chebyshev's polynomial of the third kind",
    "chebyshev_polynomial_w": "Chebyshev's polynomial of the fourth kind",
    "shifted_chebyshev_polynomial_t": "Chebyshev's polynomial of the first kind at 2 x - 1",
    "shifted_chebyshev_polynomial_u": "Chebyshev's polynomial of the second kind at 2 x - 1",
    "shifted_chebyshev_polynomial_v": "Chebyshev's polynomial of the third kind at 2 x - 1",
    "shifted_chebyshev_polynomial_w": "Chebyshev's polynomial of the fourth kind at 2 x - 1",
    "hermite_polynomial_h": "Hermite's polynomial in the physicist's scaling",
    "hermite_polynomial_he": "Hermite's polynomial in the probabilist's scaling",
    "laguerre_polynomial_l": "Laguerre's polynomial",
    "legendre_polynomial_p": "Legendre's polynomial",
}.items():
    _publish_binary(_name, f"{_doc}, of degree n (cut to a whole number; below 0 the result is 0). It has no gradient.", "n")


@function(inplace=True, out=True)
def igamma(x: Tensor, other: Tensor) -> Tensor:
    """The regularised lower incomplete gamma function P(x, other). Raises GradError for a gradient by x; there is that by other alone."""
    require_tensors("igamma", input=x, other=other)
    return refuse_derivative("igamma", ops.igamma(x, other), x, by=_BY_FIRST)


@function(inplace=True, out=True)
def igammac(x: Tensor, other: Tensor) -> Tensor:
    """The regularised upper incomplete gamma function 1 - P(x, other). Raises GradError for a gradient by x; there is that by other alone."""
    require_tensors("igammac", input=x, other=other)
    return refuse_derivative("igammac", ops.igammac(x, other), x, by=_BY_FIRST)


def _polygamma(n: int, x: Tensor) -> Tensor:
    """(-1)^(n + 1) n! zeta(n + 1, x), DLMF 25.11.12; n = 0 and 1 have formulas of their own."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer):
        raise TypeError(f"polygamma: n is {n!r}; give an int, the order of the derivative")
    if n < 0:
        raise ArgumentError(f"polygamma: n is {n}; give 0 or more")
    if n < 2:
        return ops.trigamma(x) if n else ops.digamma(x)
    # 171! is beyond float64.
    factor = float(math.factorial(n)) if n < 171 else math.inf
    return ops.zeta(float(n + 1), x) * (factor if n % 2 else -factor)


@function(method=False, out=True)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of digamma. Raises ArgumentError for n below 0."""
    return _polygamma(n, input)


def _method(x: Tensor, n: int) -> Tensor:
    return _polygamma(n, x)


function(inplace=True, free=False)(rename_function(_method, "polygamma", "The n-th derivative of digamma."))


@function(inplace=True, out=True)
def mvlgamma(x: Tensor, p: int) -> Tensor:
    """log of the multivariate gamma function of p dimensions: p (p - 1) / 4 log(pi) + sum of lgamma(x - k / 2) for k < p (DLMF 35.3.4).

    Raises ArgumentError for p below 1.
    """
    if isinstance(p, bool) or not isinstance(p, int):
        raise TypeError(f"mvlgamma: p is {p!r}; give an int, the number of dimensions")
    if p < 1:
        raise ArgumentError(f"mvlgamma: p is {p}; give 1 or more")
    y = ops.lgamma(x)
    for k in range(1, p):
        y = ops.add(y, ops.lgamma(ops.sub(x, 0.5 * k)))
    # PyTorch builds a new tensor of p terms, whose sum lies in C order.
    return to_c_order(ops.add(y, 0.25 * p * (p - 1) * math.log(math.pi)))


_SHARED = {"gammainc": igamma, "gammaincc": igammac, "polygamma": polygamma, "multigammaln": mvlgamma}
names.update({name: twin(f, name, "tritensor.special") for name, f in _SHARED.items()})
