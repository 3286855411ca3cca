"""Bessel functions, modified Bessel functions and the Airy function."""

from __future__ import annotations

import triton

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.elementwise import HEAVY, elementwise
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.kernels.parts.special import airy, bessel, numpy_formulas
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


for _name, _formula, _gradient in (
    ("i0", special.i0, _i0_grad), ("i0e", special.i0e, _i0e_grad), ("i1", special.i1, _i1_grad), ("i1e", special.i1e, _i1e_grad),
):  # fmt: skip
    elementwise(
        _name,
        _formula,
        _gradient,
        numpy_formulas.unary(_formula),
        kinds=("float",),
        domain=_BOTH,
        samples=numpy_formulas.few(_BOTH),
        dtypes=("float32", "float64"),
    )
# As in PyTorch these have no gradient. Types and samples are few, because the formulas are long. Near a root what is left of x's rounding counts.
for _name, _formula, _domain in (
    ("modified_bessel_k0", special.k0, Domain(0.1, 4.0)), ("modified_bessel_k1", special.k1, Domain(0.1, 4.0)),
    ("scaled_modified_bessel_k0", special.k0e, Domain(0.1, 4.0)), ("scaled_modified_bessel_k1", special.k1e, Domain(0.1, 4.0)),
    ("bessel_j0", bessel.j0, Domain(-9.0, 9.0)), ("bessel_j1", bessel.j1, Domain(-9.0, 9.0)), ("bessel_y0", bessel.y0, Domain(0.1, 9.0)),
    ("bessel_y1", bessel.y1, Domain(2.4, 5.2)), ("spherical_bessel_j0", bessel.spherical_j0, Domain(-9.0, 9.0)), ("airy_ai", airy.airy, Domain(-6.0, 4.0)),
):  # fmt: skip
    elementwise(
        _name,
        _formula,
        None,
        numpy_formulas.unary(_formula),
        kinds=("float",),
        domain=_domain,
        samples=numpy_formulas.few(_domain),
        heavy=HEAVY,
        dtypes=("float32", "float64"),
        condition="measured",
    )
