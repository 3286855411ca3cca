"""Bessel functions, modified Bessel functions and the Airy function."""

from __future__ import annotations

import numpy as np
import triton

from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.elementwise import HEAVY, elementwise
from tritensor.kernels.parts.pointwise_samples import Domain, few
from tritensor.kernels.parts.special import airy, bessel
from tritensor.kernels.parts.special import modified_bessel as special

_BOTH = Domain(-6.0, 16.0, (0.0,))


# d I0(x) / dx = I1(x), d I1(x) / dx = I0(x) - I1(x) / x (DLMF 10.29.2), and those of exp(-|x|) times them
@triton.jit
def _i0_grad(g, x):
    return g * special.i1(x)


@triton.jit
def _i0e_grad(g, y, x):
    return g * (special.i1e(x) - maths.sign(x) * y)


@triton.jit
def _i1_grad(g, y, x):
    none = x == 0
    return g * maths.where(none, 0.5, special.i0(x) - maths.div(y, maths.where(none, 1.0, x)))


@triton.jit
def _i1e_grad(g, y, x):
    none = x == 0
    return g * maths.where(none, 0.5, special.i0e(x) - (maths.sign(x) * y + maths.div(y, maths.where(none, 1.0, x))))


# The references are the functions' integrals (DLMF 9.5.4, 10.9.1, 10.9.10, 10.32.3, 10.32.9) by the trapezoidal rule, which of a periodic function, and
# of one that vanishes at both ends, is right to the last digits.
_ANGLES = (np.arange(6000) + 0.5) * np.pi / 6000
_U, _STEP = np.linspace(-9.7, 9.7, 7001, retstep=True)
_S, _DS = 0.01 * np.sinh(_U), 0.01 * np.cosh(_U) * _STEP  # close together near 0, where all happens of a large argument
_T = _S + 0.5j * np.pi * np.tanh(_S)  # a path on which exp(i x cosh t) falls
_DT = _DS * (1 + 0.5j * np.pi / np.cosh(_S) ** 2)


def _j(n: int, x: np.ndarray) -> np.ndarray:
    s = np.sin(_ANGLES)
    return np.mean(np.cos(x[..., None] * s) if n == 0 else np.sin(x[..., None] * s) * s, axis=-1)


def _y(n: int, x: np.ndarray) -> np.ndarray:
    y = np.imag((-1j) ** n / (1j * np.pi) * np.sum(np.exp(1j * x[..., None] * np.cosh(_T) - n * _T) * _DT, axis=-1))
    return np.where(x == 0, -np.inf, np.where(x > 0, y, np.nan))


def _scaled_i(n: int, x: np.ndarray) -> np.ndarray:
    c, size = np.cos(_ANGLES), np.abs(x)[..., None]
    if n == 0:
        return np.where(np.isinf(x), 0, np.mean(np.exp(size * (c - 1)), axis=-1))
    y = np.mean(np.where(size > 1, np.exp(size * (c - 1)), np.exp(-size) * np.sinh(size * c)) * c, axis=-1)
    return np.where(np.isinf(x), 0, y) * np.sign(x)


def _scaled_k(n: int, x: np.ndarray) -> np.ndarray:
    y = np.sum(np.exp(-2 * x[..., None] * np.sinh(_S / 2) ** 2) * np.cosh(n * _S) * _DS, axis=-1) / 2
    return np.where(x > 0, np.where(np.isinf(x), 0, y), np.where(x == 0, np.inf, np.nan))


def _airy(x: np.ndarray) -> np.ndarray:
    height = np.sqrt(np.maximum(x, 0.16))[..., None]  # above the real line, through the saddle where there is one
    t = np.linspace(-12, 12, 4001) + 1j * height
    y = np.sum(np.exp(1j * (t**3 / 3 + x[..., None] * t)).real, axis=-1) * 0.006 / (2 * np.pi)
    return np.where(x == np.inf, 0, y)


for _name, _formula, _gradient, _reference in (
    ("i0", special.i0, _i0_grad, lambda x: np.where(np.isinf(x), np.inf, _scaled_i(0, x) * np.exp(np.abs(x)))),
    ("i0e", special.i0e, _i0e_grad, lambda x: _scaled_i(0, x)),
    ("i1", special.i1, _i1_grad, lambda x: np.where(np.isinf(x), x, _scaled_i(1, x) * np.exp(np.abs(x)))),
    ("i1e", special.i1e, _i1e_grad, lambda x: _scaled_i(1, x)),
):  # fmt: skip
    elementwise(
        _name, _formula, _gradient, _reference, cpu=backends.in_numpy(_formula), kinds=("float",), domain=_BOTH, samples=few(_BOTH),
        dtypes=("float32", "float64"),
    )  # fmt: skip
# As in PyTorch these have no gradient. Types and samples are few, because the formulas are long. Near a root what is left of x's rounding counts.
for _name, _formula, _domain, _reference in (
    ("modified_bessel_k0", special.k0, Domain(0.1, 4.0), lambda x: _scaled_k(0, x) * np.exp(-x)),
    ("modified_bessel_k1", special.k1, Domain(0.1, 4.0), lambda x: _scaled_k(1, x) * np.exp(-x)),
    ("scaled_modified_bessel_k0", special.k0e, Domain(0.1, 4.0), lambda x: _scaled_k(0, x)),
    ("scaled_modified_bessel_k1", special.k1e, Domain(0.1, 4.0), lambda x: _scaled_k(1, x)),
    ("bessel_j0", bessel.j0, Domain(-9.0, 9.0), lambda x: _j(0, x)), ("bessel_j1", bessel.j1, Domain(-9.0, 9.0), lambda x: _j(1, x)),
    ("bessel_y0", bessel.y0, Domain(0.1, 9.0), lambda x: _y(0, x)), ("bessel_y1", bessel.y1, Domain(2.4, 5.2), lambda x: _y(1, x)),
    ("spherical_bessel_j0", bessel.spherical_j0, Domain(-9.0, 9.0), lambda x: np.where(np.isinf(x), 0, np.where(x == 0, 1, np.sin(x) / x))),
    ("airy_ai", airy.airy, Domain(-6.0, 4.0), _airy),
):  # fmt: skip
    elementwise(
        _name, _formula, None, _reference, cpu=backends.in_numpy(_formula), kinds=("float",), domain=_domain, samples=few(_domain), heavy=HEAVY,
        dtypes=("float32", "float64"), condition="measured",
    )  # fmt: skip
