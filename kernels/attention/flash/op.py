"""flash_attention: attention that never holds its weights (Dao et al. 2022, "FlashAttention"), with dropout and heads that share keys and values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError, ShapeError
from tritensor.kernels.attention.flash.backward import backward
from tritensor.kernels.attention.flash.forward import forward
from tritensor.kernels.attention.flash.reference import gradient_scales, reference, rule
from tritensor.ops.table import Sample, Spec, Work, broadcast, op, refuse_kind, refuse_mixed

LARGEST = 256  # of a head's features


def _shape(
    q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool = False, p: float = 0.0, seed: int = 0, offset: int = 0
) -> tuple[Spec, Spec, Spec]:
    given = f"flash_attention: q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if min(len(x.shape) for x in (q, k, v)) < 2:
        raise ShapeError(f"{given}: each must have at least 2 dimensions, (..., length, size)")
    lead, shared = tuple(q.shape[:-2]), tuple(k.shape[:-2])
    if shared != tuple(v.shape[:-2]):
        raise ShapeError(f"{given}: the dimensions of k and v before the last two must agree; expand them")
    if lead != shared and (len(lead) != len(shared) or lead[:-1] != shared[:-1] or not shared[-1] or lead[-1] % shared[-1]):
        raise ShapeError(f"{given}: the dimensions before the last two must agree, or k's heads divide q's; expand them")
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"{given}: q's last size {q.shape[-1]} is not k's {k.shape[-1]}; project them to one size")
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"{given}: k has {k.shape[-2]} rows and v {v.shape[-2]}; each key needs a value")
    if max(q.shape[-1], v.shape[-1]) > LARGEST:
        raise ShapeError(f"{given}: a last size is above {LARGEST}, what a tile holds; ops.attention takes any")
    refuse_mixed("flash_attention", ("q", q), ("k", k), ("v", v))
    refuse_kind("flash_attention", q.dtype, ("float",))
    if not 0 <= p <= 1 or not scale >= 0:
        raise ArgumentError(
            f"flash_attention: p is {p}, scale {scale}; p must be between 0 and 1, scale not below 0: give ops.attention -q for one that is"
        )
    scores = (*q.shape[:-1], k.shape[-2])
    if mask is not None:
        if mask.dtype != np.bool_ and mask.dtype != q.dtype:
            raise DTypeError(f"{given}: the mask is {mask.dtype}; give one of bool, or of q's type {q.dtype}")
        if broadcast("flash_attention", scores, tuple(mask.shape), labels=("the scores", "the mask")) != scores:
            raise ShapeError(f"{given}: the mask {tuple(mask.shape)} is larger than the scores {scores}; give one that broadcasts to them")
    stats = Spec(tuple(q.shape[:-1]), dtypes.accumulator(q.dtype))
    return Spec((*q.shape[:-1], v.shape[-1]), q.dtype), stats, stats


def _sample(*inputs: Any, in_c_order: bool = False, **attrs: Any) -> Sample:
    given = {"causal": False, "p": 0.0, "seed": 0, "offset": 0, **attrs}
    return Sample(*inputs, *[None] * (4 - len(inputs)), in_c_order=in_c_order, **given)


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Off every block's boundary: plain, causal with more queries and with more keys, each kind of mask, rows that see nothing, shared heads, dropout."""
    x = rng.standard_normal
    some = rng.random((2, 1, 5, 4)) > 0.4
    some[0, 0, 1] = False
    return [
        _sample(x((2, 3, 4, 5)), x((2, 3, 4, 5)), x((2, 3, 4, 2)), scale=0.5),
        _sample(x((2, 20, 3)), x((2, 18, 3)), x((2, 18, 3)), scale=0.6, causal=True, in_c_order=True),
        _sample(x((17, 4)), x((35, 4)), x((35, 3)), scale=0.5, causal=True),
        _sample(x((2, 2, 5, 3)), x((2, 2, 4, 3)), x((2, 2, 4, 3)), some, scale=0.4, in_c_order=True),
        _sample(x((2, 2, 3, 2)), x((2, 2, 3, 2)), x((2, 2, 3, 3)), x((2, 1, 1, 3)), scale=1.0, causal=True, in_c_order=True),
        _sample(x((2, 2, 3, 2)), x((2, 1, 3, 2)), x((2, 1, 3, 2)), x((2, 3, 3)), scale=0.7),
        _sample(x((2, 4, 5, 3)), x((2, 2, 6, 3)), x((2, 2, 6, 3)), scale=0.7, causal=True),
        _sample(x((2, 6, 4)), x((2, 5, 4)), x((2, 5, 4)), scale=0.5, p=0.3, seed=7, offset=3, in_c_order=True),
        _sample(x((2, 2, 5, 3)), x((2, 1, 8, 3)), x((2, 1, 8, 3)), x((5, 8)), scale=0.5, causal=True, p=0.5, seed=2**63 + 1, offset=2**33),
        _sample(x((2, 2, 3)), x((2, 0, 3)), x((2, 0, 3)), scale=0.5),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    found = [_sample(x(s), x(s), x(s), scale=s[-1] ** -0.5, causal=True) for s in ((4, 16, 1024, 64), (2, 16, 2048, 128))]
    return [*found, _sample(x((2, 16, 2048, 128)), x((2, 4, 2048, 128)), x((2, 4, 2048, 128)), scale=128**-0.5)]


def _work(
    q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool = False, p: float = 0.0, seed: int = 0, offset: int = 0
) -> Work:
    """Two products; half of them where later keys are not seen. Every array moves once."""
    rows = math.prod(q.shape[:-1])
    flops = 2 * rows * k.shape[-2] * (q.shape[-1] + v.shape[-1]) // (2 if causal else 1)
    return Work(flops, (q.size + k.size + v.size + rows * v.shape[-1]) * q.dtype.itemsize)


op(
    "flash_attention", reference, cpu=reference, shape=_shape, forward=forward, rule=rule, backward=backward, outputs=("y", "peak", "log_sum"),
    residuals=("peak", "log_sum"), samples=_samples, sizes=_sizes, work=_work, condition=("measured", gradient_scales, "stored"),
    borrows=("q", "k", "v", "mask", "y"), autocast="lower", layout="own",
)  # fmt: skip
