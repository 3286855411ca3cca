"""The normal distribution, the error function's inverse and its scaled complement, entropy, x log(1 + y), sinc."""

from __future__ import annotations

import math

import numpy as np
import triton

from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.cpu.blocks import blocked
from tritensor.kernels.parts.cpu.special import erfinv32, normal_cdf
from tritensor.kernels.parts.elementwise import elementwise
from tritensor.kernels.parts.pointwise_samples import Domain, every_pair, few
from tritensor.kernels.parts.special import error as special
from tritensor.ops.table import FLOATS, Sample


# d erfcx(x) / dx = 2 x erfcx(x) - 2 / sqrt(pi)
@triton.jit
def _erfcx_grad(g, y, x):
    return (2.0 * x * y - 1.1283791670955126) * g


# d erfinv(x) / dx = sqrt(pi) / 2 exp(y^2)
@triton.jit
def _erfinv_grad(g, y):
    return maths.chain(g, 0.8862269254527580 * maths.exp(y * y))


# d ndtri(p) / dp = sqrt(2 pi) exp(y^2 / 2)
@triton.jit
def _ndtri_grad(g, y):
    return maths.chain(g, 2.5066282746310002 * maths.exp(0.5 * y * y))


# d ndtr(x) / dx = exp(-x^2 / 2) / sqrt(2 pi)
@triton.jit
def _ndtr_grad(g, x):
    return g * (0.3989422804014327 * maths.exp(-0.5 * x * x))


# d log ndtr(x) / dx = sqrt(2 / pi) / erfcx(-x / sqrt(2))
@triton.jit
def _log_ndtr_grad(g, x):
    return maths.div(0.7978845608028654 * g, special.erfcx(x * -0.7071067811865476))


# d (-x log x) / dx = -(1 + log x)
@triton.jit
def _entr_grad(g, x):
    return maths.chain(g, -1.0 - maths.log(x))


# y = a log(1 + b), 0 where a is 0 and b no NaN; dy/da = log(1 + b), 0 where a is 0 and b not above -1; dy/db = a / (1 + b)
@triton.jit
def _xlog1py(a, b):
    return maths.where((a == 0) & (b == b), 0.0, a * maths.log1p(b))


@triton.jit
def _xlog1py_a(g, a, b):
    return maths.where(maths.both(a == 0, b <= -1), maths.zeros(g), maths.chain(g, maths.log1p(b)))


@triton.jit
def _xlog1py_b(g, a, b):
    return maths.div(g * a, maths.safe(g, b + 1.0))


# y = log2(2^a + 2^b); dy/da = 1 / (1 + 2^(b - a))
@triton.jit
def _logaddexp2(a, b):
    gap = maths.where(a == b, 0.0, -maths.abs(a - b))
    more = 1.4426950408889634 * maths.log1p(maths.exp2(gap))
    return maths.maximum(a, b) + maths.where(a == b, 1.0, more)  # exactly one, also where a GPU fuses the product into the sum


@triton.jit
def _logaddexp2_a(g, a, b):
    return maths.div(g, 1.0 + maths.exp2(b - a))


@triton.jit
def _logaddexp2_b(g, a, b):
    return maths.div(g, 1.0 + maths.exp2(a - b))


# y = sin(pi x) / (pi x), 1 at 0
@triton.jit
def _sinc(x):
    whole = maths.rint(x)
    s = maths.sin((x - whole) * 3.141592653589793) * (1.0 - 2.0 * (whole - 2.0 * maths.floor(0.5 * whole)))
    y = maths.div(s, 3.141592653589793 * maths.where(x == 0, 1.0, x))
    return maths.where(x == 0, 1.0, y)


# the series of dy/dx over -x in x^2: (-1)^j pi^(2 j + 2) (2 j + 2) / (2 j + 3)!, for |x| < 1/2, where cos(pi x) - y cancels
_SLOPE = maths.Coefficients((
    -3.433076949964284e-09, 1.3148481279991983e-07, -4.049947846619241e-06, 9.766223126318928e-05, -0.001781145516372851,
    0.023460810354558225, -0.20918278254123832, 1.144510944732505, -3.246969701133414, 3.289868133696453,
))  # fmt: skip


@triton.jit
def _sinc_grad(g, y, x):
    near = maths.abs(x) < 0.5
    far = maths.div(maths.cos(x * 3.141592653589793) - y, maths.where(near, 1.0, x))
    return g * maths.where(near, -x * maths.horner(x * x, _SLOPE), far)


_erf, _erfc = (np.vectorize(f, otypes=[np.float64]) for f in (math.erf, math.erfc))


def _erfcx_reference(x: np.ndarray) -> np.ndarray:
    """exp(x^2) erfc(x); from 2 on by its continued fraction, DLMF 7.9.1."""
    y = x
    for k in range(100, 0, -1):
        y = x + k / 2 / y
    return np.where(x < 2, np.exp(x * x) * _erfc(x), 1 / (math.sqrt(math.pi) * y))


def _erfinv_reference(x: np.ndarray) -> np.ndarray:
    """The y of which erf(y) is x, by Newton's method."""
    y = 0 * x
    for _ in range(60):
        y = y + (x - _erf(y)) * math.sqrt(math.pi) / 2 * np.exp(y * y)
    return np.where(np.abs(x) < 1, y, np.where(np.abs(x) == 1, x * np.inf, np.nan))


def _ndtri_reference(p: np.ndarray) -> np.ndarray:
    """The y of which the normal distribution function is p, by Newton's method."""
    y = 0 * p
    for _ in range(150):
        y = y + (p - _erfc(-y / math.sqrt(2)) / 2) * math.sqrt(2 * math.pi) * np.exp(y * y / 2)
    return np.where((p > 0) & (p < 1), y, np.where(p == 0, -np.inf, np.where(p == 1, np.inf, np.nan)))


def _log_ndtr_reference(x: np.ndarray) -> np.ndarray:
    z = x / math.sqrt(2)
    return np.where(x < 1, np.log(_erfcx_reference(-z) / 2) - z * z, np.log1p(-_erfc(z) / 2))


def _entr_reference(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, -np.inf, np.where(x == 0, 0, -x * np.log(x)))


def _sinc_reference(x: np.ndarray) -> np.ndarray:
    """sin(pi x) / (pi x), 1 at 0."""
    whole = np.rint(np.real(x))
    s = np.sin(np.pi * (x - whole)) * np.where(whole % 2 == 0, 1, -1)
    return np.where(x == 0, 1, s / (np.pi * np.where(x == 0, 1, x)))


_erfinv = backends.in_numpy(special.erfinv)


def _erfinv_block(x: np.ndarray, out: np.ndarray) -> None:
    if x.dtype == np.float32:
        erfinv32(x, out, _erfinv)
    else:
        np.copyto(out, _erfinv(x))


_corners = every_pair(0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, -2.0)


def _number_first(rng: np.random.Generator) -> list[Sample]:
    return [*_corners(rng), Sample(1.5, rng.uniform(-0.8, 4.0, (4,))), Sample(rng.uniform(-2.0, 2.0, (4,)), 0.7)]


for _name, _formula, _gradient, _domain, _reference in (
    ("erfcx", special.erfcx, _erfcx_grad, Domain(-2.0, 5.0), _erfcx_reference),
    ("erfinv", special.erfinv, _erfinv_grad, Domain(-0.95, 0.95), _erfinv_reference),
    ("ndtri", special.ndtri, _ndtri_grad, Domain(0.02, 0.98), _ndtri_reference),
    ("log_ndtr", special.log_ndtr, _log_ndtr_grad, Domain(-6.0, 3.0), _log_ndtr_reference),
    ("entr", special.entr, _entr_grad, Domain(0.1, 4.0), _entr_reference),
):
    elementwise(
        _name, _formula, _gradient, _reference, cpu=blocked(_erfinv_block) if _name == "erfinv" else backends.in_numpy(_formula), kinds=("float",),
        domain=_domain, samples=few(_domain), dtypes=FLOATS if _name == "entr" else ("float32", "float64"),
        borrows=("y",) if _name == "erfinv" else None,
    )  # fmt: skip
elementwise("ndtr", special.ndtr, _ndtr_grad, lambda x: _erfc(-x / math.sqrt(2)) / 2, cpu=normal_cdf, kinds=("float",), borrows=("x",))
_BOTH = (Domain(-2.0, 2.0), Domain(-0.8, 4.0))
elementwise(
    "xlog1py", _xlog1py, (_xlog1py_a, _xlog1py_b), lambda a, b: np.where((a == 0) & (b == b), 0, a * np.log1p(b)), domain=_BOTH, kinds=("float",),
    samples=few(*_BOTH, extra=_number_first),
)  # fmt: skip
_UP = Domain(-0.5, 2.0)
elementwise(
    "logaddexp2", _logaddexp2, (_logaddexp2_a, _logaddexp2_b), np.logaddexp2, kinds=("float",), domain=_UP, native=FLOATS,
    samples=few(_UP, _UP, extra=_corners), condition="measured",
)  # fmt: skip
_WAVES = Domain(-2.5, 2.5)
elementwise("sinc", _sinc, _sinc_grad, _sinc_reference, domain=_WAVES, samples=few(_WAVES), borrows=("y",))
