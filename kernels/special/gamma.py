"""The logarithm of the gamma function, its derivatives, the Hurwitz zeta function."""

from __future__ import annotations

import numpy as np
import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.elementwise import HEAVY, elementwise
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.kernels.parts.special import gamma as special
from tritensor.kernels.parts.special import numpy_formulas
from tritensor.ops.table import Sample

_POSITIVE = Domain(0.3, 9.0)


# d log|gamma(x)| / dx = digamma(x)
@triton.jit
def _lgamma_grad(g, x):
    return maths.chain(g, special.digamma(x))


@triton.jit
def _digamma_grad(g, x):
    return maths.chain(g, special.trigamma(x))


# the polygamma functions are zeta's: psi_n(x) = (-1)^(n + 1) n! zeta(n + 1, x), DLMF 25.11.12
@triton.jit
def _trigamma_grad(g, x):
    return maths.chain(g, -2.0 * special.zeta(3.0 * maths.ones(x), x))


# d zeta(s, q) / dq = -s zeta(s + 1, q); by s there is no gradient, as in PyTorch
@triton.jit
def _zeta_q(g, s, q):
    return -s * g * special.zeta(s + 1.0, q)


def _left(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.integers(-5, 0, (6,)) + rng.uniform(0.2, 0.8, (6,))), Sample(rng.uniform(3.6, 30.0, (5,)))]


def _negative(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(np.array([2.0, 3.0, 2.0, 2.5, 0.5, 1.0, 40.0, 3.0]), np.array([-0.5, -7.3, -2.0, -0.5, 2.0, 2.0, 0.5, 1e4]), smooth=False)
    ]


_TYPES = ("float32", "float64")
for _name, _formula, _gradient in (
    ("lgamma", special.lgamma, _lgamma_grad), ("digamma", special.digamma, _digamma_grad), ("trigamma", special.trigamma, _trigamma_grad),
):  # fmt: skip
    elementwise(
        _name, _formula, _gradient, numpy_formulas.unary(_formula), kinds=("float",), domain=_POSITIVE, samples=numpy_formulas.few(_POSITIVE, extra=_left),
        dtypes=("float16", *_TYPES) if _name == "lgamma" else _TYPES, heavy=HEAVY | {4: 512},
    )  # fmt: skip
_ZETA = (Domain(1.5, 6.0), Domain(0.4, 9.0))
elementwise(
    "zeta", special.zeta, (None, _zeta_q), numpy_formulas.binary(special.zeta), kinds=("float",), domain=_ZETA,
    samples=numpy_formulas.few(*_ZETA, extra=_negative),
    dtypes=_TYPES, heavy=HEAVY | {4: 512},
)  # fmt: skip
