"""Orthogonal polynomials of degree n by their recurrences (DLMF 18.9): Chebyshev's four, also shifted to [0, 1], Hermite's two, Laguerre's, Legendre's.

In float64 whatever the type: the terms of a recurrence cancel.
"""

from __future__ import annotations

import numpy as np
import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.elementwise import elementwise
from tritensor.kernels.parts.formula_llvm import recurrence
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.kernels.parts.special import numpy_formulas
from tritensor.ops.table import Sample


# y_k = 2 x y_(k - 1) - y_(k - 2) from y_0 = 1 and y_1 = first; n is cut to a whole number, below 0 the polynomial is 0
@triton.jit
def _chebyshev(x, n, first):
    degree = maths.trunc(n)
    before, y = x * 0.0 + 1.0, first
    found = maths.where(degree < 0, x * 0.0, maths.where(degree == 0, before, y))
    for k in range(2, maths.whole_most(degree) + 1):
        after = 2.0 * x * y - before
        before, y = y, after
        found = maths.where(degree == k, y, found)
    return found


@triton.jit
def _t(x, n):
    x = maths.wide(x)
    return _chebyshev(x, n, x)


@triton.jit
def _u(x, n):
    x = maths.wide(x)
    return _chebyshev(x, n, 2.0 * x)


@triton.jit
def _v(x, n):
    x = maths.wide(x)
    return _chebyshev(x, n, 2.0 * x - 1.0)


@triton.jit
def _w(x, n):
    x = maths.wide(x)
    return _chebyshev(x, n, 2.0 * x + 1.0)


@triton.jit
def _shifted_t(x, n):
    z = 2.0 * maths.wide(x) - 1.0
    return _chebyshev(z, n, z)


@triton.jit
def _shifted_u(x, n):
    z = 2.0 * maths.wide(x) - 1.0
    return _chebyshev(z, n, 2.0 * z)


@triton.jit
def _shifted_v(x, n):
    z = 2.0 * maths.wide(x) - 1.0
    return _chebyshev(z, n, 2.0 * z - 1.0)


@triton.jit
def _shifted_w(x, n):
    z = 2.0 * maths.wide(x) - 1.0
    return _chebyshev(z, n, 2.0 * z + 1.0)


# H_k = 2 x H_(k - 1) - 2 (k - 1) H_(k - 2)
@triton.jit
def _h(x, n):
    x = maths.wide(x)
    degree = maths.trunc(n)
    before, y = x * 0.0 + 1.0, 2.0 * x
    found = maths.where(degree < 0, x * 0.0, maths.where(degree == 0, before, y))
    for k in range(2, maths.whole_most(degree) + 1):
        after = 2.0 * (x * y - (k - 1) * before)
        before, y = y, after
        found = maths.where(degree == k, y, found)
    return found


# He_k = x He_(k - 1) - (k - 1) He_(k - 2)
@triton.jit
def _he(x, n):
    x = maths.wide(x)
    degree = maths.trunc(n)
    before, y = x * 0.0 + 1.0, x
    found = maths.where(degree < 0, x * 0.0, maths.where(degree == 0, before, y))
    for k in range(2, maths.whole_most(degree) + 1):
        after = x * y - (k - 1) * before
        before, y = y, after
        found = maths.where(degree == k, y, found)
    return found


# k L_k = (2 k - 1 - x) L_(k - 1) - (k - 1) L_(k - 2)
@triton.jit
def _laguerre(x, n):
    x = maths.wide(x)
    degree = maths.trunc(n)
    before, y = x * 0.0 + 1.0, 1.0 - x
    found = maths.where(degree < 0, x * 0.0, maths.where(degree == 0, before, y))
    for k in range(2, maths.whole_most(degree) + 1):
        after = maths.div((2 * k - 1 - x) * y - (k - 1) * before, k + x * 0.0)
        before, y = y, after
        found = maths.where(degree == k, y, found)
    return found


# k P_k = (2 k - 1) x P_(k - 1) - (k - 1) P_(k - 2)
@triton.jit
def _legendre(x, n):
    x = maths.wide(x)
    degree = maths.trunc(n)
    before, y = x * 0.0 + 1.0, x
    found = maths.where(degree < 0, x * 0.0, maths.where(degree == 0, before, y))
    for k in range(2, maths.whole_most(degree) + 1):
        after = maths.div((2 * k - 1) * x * y - (k - 1) * before, k + x * 0.0)
        before, y = y, after
        found = maths.where(degree == k, y, found)
    return found


def _degrees(rng: np.random.Generator) -> list[Sample]:
    n = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 4.7, 7.0])
    across = Sample(rng.uniform(-1.2, 1.2, (3, 1)), n, smooth=False)
    return [across, Sample(np.array([np.nan, np.inf, 0.5, 0.0]), 3.0, smooth=False), Sample(0.4, n, smooth=False)]


for _name, _formula in {
    "chebyshev_polynomial_t": _t, "chebyshev_polynomial_u": _u, "chebyshev_polynomial_v": _v, "chebyshev_polynomial_w": _w,
    "shifted_chebyshev_polynomial_t": _shifted_t, "shifted_chebyshev_polynomial_u": _shifted_u, "shifted_chebyshev_polynomial_v": _shifted_v,
    "shifted_chebyshev_polynomial_w": _shifted_w, "hermite_polynomial_h": _h, "hermite_polynomial_he": _he, "laguerre_polynomial_l": _laguerre,
    "legendre_polynomial_p": _legendre,
}.items():  # fmt: skip
    elementwise(
        _name, _formula, None, numpy_formulas.binary(_formula), kinds=("float",), domain=(Domain(-1.2, 1.2), Domain(0.0, 5.0, step=1.0)),
        dtypes=("float32", "float64"), samples=_degrees, loop=recurrence(_formula),
    )  # fmt: skip
