"""Greatest common divisor and least common multiple."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from tritensor.kernels.parts import maths
from tritensor.kernels.parts.elementwise import elementwise
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.ops.table import Sample


# Euclid: (a, b) -> (b, a mod b) until b is 0 everywhere in the tile
@triton.jit
def _divisor(a, b):
    zero = a * 0 + b * 0
    a, b = (a + zero).to(zero.dtype), (b + zero).to(zero.dtype)
    while tl.max(tl.max((b != 0).to(tl.int32), 1), 0) > 0:
        none = b == 0
        rest = a % tl.where(none, zero + 1, b).to(zero.dtype)
        a, b = tl.where(none, a, b).to(zero.dtype), tl.where(none, b, rest).to(zero.dtype)
    return maths.abs(a).to(zero.dtype)


@triton.jit
def _gcd(a, b):
    return _divisor(a, b)


# |a / gcd b|, 0 where both are 0
@triton.jit
def _lcm(a, b):
    d = _divisor(a, b)
    q = a // tl.where(d == 0, d + 1, d).to(d.dtype)
    return (maths.abs(q) * maths.abs(b)).to(d.dtype)


def _whole(rng: np.random.Generator) -> list[Sample]:
    a, b = rng.integers(-60, 60, (3, 7)), rng.integers(-60, 60, (3, 7))
    return [Sample(a.astype(t), b.astype(t)) for t in (np.int8, np.int32, np.int64)] + [
        Sample(np.array([0, 0, 5, -4]), np.array([0, 3, 0, 6])),
        Sample(rng.uniform(1, 9, (3, 1)), rng.uniform(1, 9, (4,))),
    ]


_NEAR = Domain(-9.0, 9.0)
for _name, _formula, _ufunc in (("gcd", _gcd, np.gcd), ("lcm", _lcm, np.lcm)):
    elementwise(
        _name, _formula, None, _ufunc, promote="same", kinds=("uint", "int"), scalars=False, domain=_NEAR, dtypes=("int64", "uint8"), samples=_whole
    )  # fmt: skip
