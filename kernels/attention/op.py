"""attention: softmax(scale q @ k^T + mask) @ v (Vaswani et al. 2017), its gradient, its samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.attention.cpu import cpu_backward, cpu_forward
from tritensor.kernels.attention.gpu import backward, forward
from tritensor.kernels.attention.layout import describe, refuse_mask, refuse_sizes, refuse_types, work
from tritensor.kernels.attention.reference import gradient_scales, reference
from tritensor.kernels.attention.weights import rule
from tritensor.ops.table import Sample, Spec, op


def _shape(q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool = False) -> tuple[Spec, Spec]:
    given = describe("attention", q, k, v)
    if not tuple(q.shape[:-2]) == tuple(k.shape[:-2]) == tuple(v.shape[:-2]):
        raise ShapeError(f"{given}: the dimensions before the last two must agree; expand them")
    refuse_sizes(given, q, k, v)
    refuse_types("attention", q, k, v)
    refuse_mask("attention", given, q, k, mask)
    return Spec((*q.shape[:-1], v.shape[-1]), q.dtype), Spec((*q.shape[:-1], k.shape[-2]), q.dtype)


def _rule(g: Any, q: Any, k: Any, v: Any, mask: Any, scale: float, causal: bool, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    return rule(g, q, k, v, mask, scale, causal, 0.0, 0, 0, needs)


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Without a mask, causal (one query more than keys), booleans with a row that sees nothing, numbers for all heads."""
    x = rng.standard_normal
    some = rng.random((2, 1, 3, 4)) > 0.4
    some[0, 0, 1] = False
    return [
        Sample(x((2, 3, 4, 5)), x((2, 3, 4, 5)), x((2, 3, 4, 2)), None, scale=0.5, causal=False),
        Sample(x((2, 4, 3)), x((2, 3, 3)), x((2, 3, 3)), None, scale=0.6, causal=True, in_c_order=True),
        Sample(x((2, 2, 3, 3)), x((2, 2, 4, 3)), x((2, 2, 4, 3)), some, scale=0.4, causal=False, in_c_order=True),
        Sample(x((2, 2, 3, 2)), x((2, 2, 3, 2)), x((2, 2, 3, 3)), x((2, 1, 1, 3)), scale=1.0, causal=True, in_c_order=True),
        Sample(x((3, 4)), x((5, 4)), x((5, 2)), x((3, 5)), scale=-0.5, causal=False, in_c_order=True),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    return [
        Sample(x(s), x(s), x(s), None, scale=s[-1] ** -0.5, causal=True) for s in ((16, 4, 128, 32), (4, 16, 1024, 64), (1, 4, 4096, 64))
    ]


op(
    "attention", reference, cpu=cpu_forward, shape=_shape, forward=forward, rule=_rule, backward=backward, cpu_backward=cpu_backward,
    outputs=("y", "weights"), residuals=("weights",), samples=_samples, sizes=_sizes, work=work,
    borrows=("q", "k", "v", "mask", "y"), condition=("measured", gradient_scales, "stored"), autocast="lower", layout="own",
)  # fmt: skip
