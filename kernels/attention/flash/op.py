"""flash_attention: attention that never holds its weights (Dao et al. 2022, "FlashAttention"), with dropout and heads that share keys and values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.kernels.attention.flash.backward import backward
from tritensor.kernels.attention.flash.forward import forward
from tritensor.kernels.attention.layout import describe, refuse_mask, refuse_sizes, refuse_types, result_strides, work
from tritensor.kernels.attention.reference import gradient_scales, output_scales, repeat_heads, scores_of, softmax_of
from tritensor.kernels.attention.weights import rule
from tritensor.kernels.parts.copying import to_strides
from tritensor.kernels.parts.random_words.dropout_mask import kept_scale, threshold
from tritensor.kernels.parts.random_words.plain_words import philox_words
from tritensor.ops.table import Sample, Spec, op
from tritensor.ops.table.plain_cpu import plain_cpu

LARGEST = 256  # of a head's features


def _shape(
    q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool = False, p: float = 0.0, seed: int = 0, offset: int = 0
) -> tuple[Spec, Spec, Spec]:
    given = describe("flash_attention", q, k, v)
    lead, shared = tuple(q.shape[:-2]), tuple(k.shape[:-2])
    if shared != tuple(v.shape[:-2]):
        raise ShapeError(f"{given}: the dimensions of k and v before the last two must agree; expand them")
    if lead != shared and (len(lead) != len(shared) or lead[:-1] != shared[:-1] or not shared[-1] or lead[-1] % shared[-1]):
        raise ShapeError(f"{given}: the dimensions before the last two must agree, or k's heads divide q's; expand them")
    refuse_sizes(given, q, k, v)
    if max(q.shape[-1], v.shape[-1]) > LARGEST:
        raise ShapeError(f"{given}: a last size is above {LARGEST}, what a tile holds; ops.attention takes any")
    refuse_types("flash_attention", q, k, v)
    if not 0 <= p <= 1 or not scale >= 0:
        raise ArgumentError(
            f"flash_attention: p is {p}, scale {scale}; p must be between 0 and 1, scale not below 0: give ops.attention -q for one that is"
        )
    refuse_mask("flash_attention", given, q, k, mask)
    stats = Spec(tuple(q.shape[:-1]), dtypes.accumulator(q.dtype))
    return Spec((*q.shape[:-1], v.shape[-1]), q.dtype), stats, stats


def _reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None, *, scale: float, causal: bool = False, p: float = 0.0, seed: int = 0,
    offset: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """dropout(softmax(scale q @ k^T + mask)) @ v; residuals: the largest score m of each query, and log sum e^(s - m), both 0 where no key is seen.

    q (..., heads, L, E), k (..., heads / n, S, E), v (..., heads / n, S, Ev): n heads of q in a row share keys and values. mask: bool or floating,
    broadcast to (..., heads, L, S). causal: query i sees the keys up to i alone. A row that sees no key gives 0. A weight is dropped with
    probability p; row r of the weights, in C order, draws its S words from block offset + r ceil(S / 4) of `seed` on.
    """
    w, peak, total = softmax_of(scores_of(q, k, mask, scale, causal))
    if p:
        keys = k.shape[-2]
        drawn = -(-keys // 4) * 4
        words = philox_words(seed, offset, math.prod(q.shape[:-1]) * drawn).reshape(*q.shape[:-1], drawn)[..., :keys]
        w = np.where(words < threshold(p), 0, w * kept_scale(p))
    return w @ repeat_heads(v, q), peak, np.log(total)


_plain = plain_cpu(_reference, _shape, False)


def _cpu(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, mask: np.ndarray | None = None, *, p: float = 0.0, **attrs: Any
) -> tuple[Any, np.ndarray, np.ndarray]:
    y, peak, log_sum = _plain(q, k, v, mask, p=p, **attrs)
    return to_strides(y, result_strides(q, k, v, mask, p)), peak, log_sum  # as the kernel lays it


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


op(
    "flash_attention", _reference, cpu=_cpu, shape=_shape, forward=forward, rule=rule, backward=backward, outputs=("y", "peak", "log_sum"),
    residuals=("peak", "log_sum"), samples=_samples, sizes=_sizes, work=work, condition=(output_scales, gradient_scales, "stored"),
    borrows=("q", "k", "v", "mask", "y"), autocast="lower", layout="own",
)  # fmt: skip
