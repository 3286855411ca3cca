"""Functions for results that are rounded to 16 bits: base-2 exponentials and approximate division, whose errors that rounding covers.

The policy stands in docs/kernels.md, "Results of 16 bits". Errors here stay below 2^-16 of the value where that is a normal number of float32; bfloat16
rounds at 2^-9, float16 at 2^-12. What lies below 1.2e-38 becomes 0. float32 and float64 results use `maths`.
"""

from __future__ import annotations

import triton
import triton.language as tl

# e^x = 2^(x log2 e): the product's rounding costs some 1e-7 of x, which a result of 16 bits does not show
LOG2_E = tl.constexpr(1.4426950408889634)


@triton.jit
def exp2(x):
    """2^x within 2 ULP of float32, in one instruction (Triton's own guards results below 1.2e-38 with three more)."""
    return tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def exp(x):
    """e^x within 2^-16, in two instructions."""
    return exp2(x * LOG2_E)


# one instruction in place of the nine of a division that is rounded right
@triton.jit
def reciprocal(x):
    """1 / x within 1 ULP of float32, in one instruction; 0 for |x| above 8.5e37."""
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def div(a, b):
    """a / b within 2 ULP of float32, in two instructions."""
    return a * reciprocal(b)
