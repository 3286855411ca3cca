"""Steps of Rprop: each element has a step size of its own, which signs of gradients change (Riedmiller and Braun 1993)."""

from __future__ import annotations

import triton

from tritensor.kernels.optimizers.steps import step_formula
from tritensor.kernels.parts import maths


# s = s etaplus where g has the sign it had, s etaminus where the other (and then g = 0), within [least, most]; p -= sign(g) s
@triton.jit
def _rprop(p, g, before, s, etaminus, etaplus, least, most):
    turned = g * before
    s = s * maths.where(turned > 0.0, etaplus, maths.where(turned < 0.0, etaminus, s * 0.0 + 1.0))
    s = maths.minimum(maths.maximum(s, least), most)
    g = maths.where(turned < 0.0, 0.0, g)
    return maths.where(g > 0.0, p - s, maths.where(g < 0.0, p + s, p)), g, s


@triton.jit
def _numbers(t, lr, etaminus, etaplus, least, most):
    return etaminus, etaplus, least, most


RPROP = step_formula(
    "rprop", _rprop, _numbers, states=("prev", "step_size"), settings=("lr", "etaminus", "etaplus", "least", "most"), example=(0.01, 0.5, 1.2, 1e-6, 50.0),
    doc="One step of Rprop on p, the gradient before and the step sizes, in place.",
)  # fmt: skip
