"""One step of connectionist temporal classification's recursions."""

from __future__ import annotations

import triton

from tritensor.kernels.parts import maths


# log(e^a + e^b + e^c) + p, where all three may be minus infinity
@triton.jit
def step(a, b, c, p):
    m = maths.maximum(maths.maximum(a, b), c)
    m = maths.where(m < -3e38, maths.zeros(m), m)
    return (m + maths.log(maths.exp(a - m) + maths.exp(b - m) + maths.exp(c - m))) + p
