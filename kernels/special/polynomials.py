"""Orthogonal polynomials of degree n by their recurrences (DLMF 18.9): Chebyshev's four, also shifted to [0, 1], Hermite's two, Laguerre's, Legendre's.

In float64 whatever the type: the terms of a recurrence cancel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl
from numpy.polynomial import chebyshev, hermite, hermite_e, laguerre, legendre

from tritensor.kernels.parts import backends, maths
from tritensor.kernels.parts.elementwise import elementwise
from tritensor.kernels.parts.formula_llvm import recurrence_loop
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.ops.table import Sample


# y_k = step(x, y_(k - 1), y_(k - 2), k) from y_0 = 1 and y_1 = first; n is cut to a whole number, below 0 the polynomial is 0
@triton.jit
def _recurrence(x, n, first, step: tl.constexpr):
    degree = maths.trunc(n)
    before, y = x * 0.0 + 1.0, first
    found = maths.where(degree < 0, x * 0.0, maths.where(degree == 0, before, y))
    for k in range(2, maths.whole_most(degree) + 1):
        after = step(x, y, before, k)
        before, y = y, after
        found = maths.where(degree == k, y, found)
    return found


# T_k = 2 x T_(k - 1) - T_(k - 2), and so the other kinds
@triton.jit
def _chebyshev(x, y, before, k):
    return 2.0 * x * y - before


@triton.jit
def _t(x, n):
    x = maths.wide(x)
    return _recurrence(x, n, x, _chebyshev)


@triton.jit
def _u(x, n):
    x = maths.wide(x)
    return _recurrence(x, n, 2.0 * x, _chebyshev)


@triton.jit
def _v(x, n):
    x = maths.wide(x)
    return _recurrence(x, n, 2.0 * x - 1.0, _chebyshev)


@triton.jit
def _w(x, n):
    x = maths.wide(x)
    return _recurrence(x, n, 2.0 * x + 1.0, _chebyshev)


@triton.jit
def _shifted_t(x, n):
    z = 2.0 * maths.wide(x) - 1.0
    return _recurrence(z, n, z, _chebyshev)


@triton.jit
def _shifted_u(x, n):
    z = 2.0 * maths.wide(x) - 1.0
    return _recurrence(z, n, 2.0 * z, _chebyshev)


@triton.jit
def _shifted_v(x, n):
    z = 2.0 * maths.wide(x) - 1.0
    return _recurrence(z, n, 2.0 * z - 1.0, _chebyshev)


@triton.jit
def _shifted_w(x, n):
    z = 2.0 * maths.wide(x) - 1.0
    return _recurrence(z, n, 2.0 * z + 1.0, _chebyshev)


# H_k = 2 x H_(k - 1) - 2 (k - 1) H_(k - 2)
@triton.jit
def _hermite_h(x, y, before, k):
    return 2.0 * (x * y - (k - 1) * before)


# He_k = x He_(k - 1) - (k - 1) He_(k - 2)
@triton.jit
def _hermite_he(x, y, before, k):
    return x * y - (k - 1) * before


# k L_k = (2 k - 1 - x) L_(k - 1) - (k - 1) L_(k - 2)
@triton.jit
def _laguerre_l(x, y, before, k):
    return maths.div((2 * k - 1 - x) * y - (k - 1) * before, k + x * 0.0)


# k P_k = (2 k - 1) x P_(k - 1) - (k - 1) P_(k - 2)
@triton.jit
def _legendre_p(x, y, before, k):
    return maths.div((2 * k - 1) * x * y - (k - 1) * before, k + x * 0.0)


@triton.jit
def _h(x, n):
    x = maths.wide(x)
    return _recurrence(x, n, 2.0 * x, _hermite_h)


@triton.jit
def _he(x, n):
    x = maths.wide(x)
    return _recurrence(x, n, x, _hermite_he)


@triton.jit
def _laguerre(x, n):
    x = maths.wide(x)
    return _recurrence(x, n, 1.0 - x, _laguerre_l)


@triton.jit
def _legendre(x, n):
    x = maths.wide(x)
    return _recurrence(x, n, x, _legendre_p)


def _degrees(rng: np.random.Generator) -> list[Sample]:
    n = np.array([-1.0, 0.0, 1.0, 2.0, 3.0, 4.7, 7.0])
    across = Sample(rng.uniform(-1.2, 1.2, (3, 1)), n, smooth=False)
    return [across, Sample(np.array([np.nan, np.inf, 0.5, 0.0]), 3.0, smooth=False), Sample(0.4, n, smooth=False)]


def _of_degree(polynomial: Callable[[Any, int], Any]) -> np.vectorize:
    """The reference of polynomial(x, n): n is cut to a whole number, below 0 the polynomial is 0."""
    return np.vectorize(lambda x, n: polynomial(x, int(n)) if n > -1 else 0.0 * x, otypes=[np.float64])


def _series(evaluate: Callable[..., Any]) -> Callable[[Any, int], Any]:
    """The polynomial of degree n as the series that has it alone."""
    return lambda x, n: evaluate(x, [0.0] * n + [1.0])


def _second_kind(x: float, n: int) -> Any:
    """U_n = 2 (T_n + T_(n - 2) + ...), less 1 for an even n, DLMF 18.7.4 by 18.18.32."""
    return chebyshev.chebval(x, [2.0 - (k == 0) if k % 2 == n % 2 else 0.0 for k in range(n + 1)]) if n >= 0 else 0.0  # type: ignore[return-value]


_chebyshev_t = _series(chebyshev.chebval)
_KINDS = {  # V_n = U_n - U_(n - 1), W_n = U_n + U_(n - 1): DLMF 18.7.5 and 18.7.6 with 18.9.9
    "t": (_t, _shifted_t, _chebyshev_t), "u": (_u, _shifted_u, _second_kind),
    "v": (_v, _shifted_v, lambda x, n: _second_kind(x, n) - _second_kind(x, n - 1)),
    "w": (_w, _shifted_w, lambda x, n: _second_kind(x, n) + _second_kind(x, n - 1)),
}  # fmt: skip
for _name, _formula, _polynomial in (
    *[(f"chebyshev_polynomial_{kind}", f, y) for kind, (f, _, y) in _KINDS.items()],
    *[(f"shifted_chebyshev_polynomial_{kind}", f, lambda x, n, y=y: y(2 * x - 1, n)) for kind, (_, f, y) in _KINDS.items()],
    ("hermite_polynomial_h", _h, _series(hermite.hermval)), ("hermite_polynomial_he", _he, _series(hermite_e.hermeval)),
    ("laguerre_polynomial_l", _laguerre, _series(laguerre.lagval)), ("legendre_polynomial_p", _legendre, _series(legendre.legval)),
):  # fmt: skip
    elementwise(
        _name, _formula, None, _of_degree(_polynomial), cpu=backends.in_numpy(_formula), kinds=("float",),
        domain=(Domain(-1.2, 1.2), Domain(0.0, 5.0, step=1.0)), dtypes=("float32", "float64"), samples=_degrees, loop=recurrence_loop(_formula),
    )  # fmt: skip
