"""outside_isru: x / sqrt(1 + x^2), with its public forms."""

from __future__ import annotations

import numpy as np
import triton

import tritensor as tt
from tritensor.kernels.parts import maths


@triton.jit
def _isru(x):
    return maths.div(x, maths.sqrt(1.0 + x * x))


# 1 / (1 + x^2)^(3/2)
@triton.jit
def _isru_grad(g, x):
    return maths.div(g, (1.0 + x * x) * maths.sqrt(1.0 + x * x))


tt.elementwise("outside_isru", _isru, _isru_grad, lambda x: x / np.sqrt(1 + x * x), kinds=("float",), public=True)
