"""attention: softmax(scale q @ k^T + mask) @ v (Vaswani et al. 2017), its gradient, its samples."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.ground.errors import DTypeError, ShapeError
from tritensor.kernels.attention.cpu import cpu_backward, reference
from tritensor.kernels.attention.gpu import backward, forward
from tritensor.kernels.attention.weights import weights
from tritensor.ops.table import Sample, Spec, Work, broadcast, op, ops, refuse_kind, refuse_mixed


def _shape(q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool = False) -> tuple[Spec, Spec]:
    given = f"attention: q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if min(len(x.shape) for x in (q, k, v)) < 2:
        raise ShapeError(f"{given}: each must have at least 2 dimensions, (..., length, size)")
    if not tuple(q.shape[:-2]) == tuple(k.shape[:-2]) == tuple(v.shape[:-2]):
        raise ShapeError(f"{given}: the dimensions before the last two must agree; expand them")
    if q.shape[-1] != k.shape[-1]:
        raise ShapeError(f"{given}: q's last size {q.shape[-1]} is not k's {k.shape[-1]}; project them to one size")
    if k.shape[-2] != v.shape[-2]:
        raise ShapeError(f"{given}: k has {k.shape[-2]} rows and v {v.shape[-2]}; each key needs a value")
    refuse_mixed("attention", ("q", q), ("k", k), ("v", v))
    refuse_kind("attention", q.dtype, ("float",))
    scores = (*q.shape[:-1], k.shape[-2])
    if mask is not None:
        if mask.dtype != np.bool_ and mask.dtype != q.dtype:
            raise DTypeError(f"{given}: the mask is {mask.dtype}; give one of bool, or of q's type {q.dtype}")
        if broadcast("attention", scores, tuple(mask.shape), labels=("the scores", "the mask")) != scores:
            raise ShapeError(f"{given}: the mask {tuple(mask.shape)} is larger than the scores {scores}; give one that broadcasts to them")
    return Spec((*q.shape[:-1], v.shape[-1]), q.dtype), Spec(scores, q.dtype)


def _swap(x: Any) -> Any:
    return ops.permute(x, dims=(*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _rule(g: Any, q: Any, k: Any, v: Any, mask: Any, scale: float, causal: bool, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """dv = w^T g, ds = w (dw - sum w dw) with dw = g v^T, dq = scale ds k, dk = scale ds^T q; ds is the mask's gradient."""
    w = weights(q, k, mask, scale, causal)
    dw = ops.matmul(g, _swap(v))
    ds = ops.mul(w, ops.sub(dw, ops.sum(ops.mul(w, dw), dim=(w.ndim - 1,), keepdim=True)))
    scaled = ops.mul(ds, scale)
    found = ops.matmul(scaled, k), ops.matmul(_swap(scaled), q), ops.matmul(_swap(w), g)
    if len(needs) < 4 or not needs[3]:
        return (*found, None)[: max(len(needs), 3)]
    lead = ds.ndim - mask.ndim
    axes = (*range(lead), *(i + lead for i, n in enumerate(mask.shape) if n == 1))
    return *found, ops.reshape(ops.sum(ds, dim=axes, keepdim=True) if axes else ds, shape=tuple(mask.shape))


def _gradient_scales(g: np.ndarray, inputs: tuple[Any, ...], attrs: dict[str, Any]) -> tuple[Any, ...]:
    """The sums of the sizes of what is added, with 1 more for each factor's own roundings of its exponent."""
    q, k, v, mask = inputs
    w = reference(q, k, v, mask, **attrs)[1]
    reach = 1 + abs(attrs["scale"]) * np.matmul(np.abs(q), np.abs(k).swapaxes(-1, -2))
    w = w * reach
    dw = np.matmul(np.abs(g), np.abs(v).swapaxes(-1, -2))
    ds = w * (dw + (w * dw).sum(-1, keepdims=True))
    scale = abs(attrs["scale"])
    found = scale * np.matmul(ds, np.abs(k)), scale * np.matmul(ds.swapaxes(-1, -2), np.abs(q)), np.matmul(w.swapaxes(-1, -2), np.abs(g))
    if mask is None or mask.dtype == np.bool_:
        return *found, None
    lead = ds.ndim - mask.ndim
    axes = (*range(lead), *(i + lead for i, n in enumerate(mask.shape) if n == 1))
    return *found, ds.sum(axes, keepdims=True).reshape(mask.shape)


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


def _work(q: Any, k: Any, v: Any, mask: Any = None, *, scale: float, causal: bool = False) -> Work:
    """Two products; half of them where later keys are not seen. Every array moves once."""
    rows = math.prod(q.shape[:-1])
    flops = 2 * rows * k.shape[-2] * (q.shape[-1] + v.shape[-1]) // (2 if causal else 1)
    return Work(flops, (q.size + k.size + v.size + rows * v.shape[-1]) * q.dtype.itemsize)


op(
    "attention", reference, cpu=reference, shape=_shape, forward=forward, rule=_rule, backward=backward, cpu_backward=cpu_backward,
    outputs=("y", "weights"), residuals=("weights",), samples=_samples, sizes=_sizes, work=_work,
    borrows=("q", "k", "v", "mask", "y"), condition=("measured", _gradient_scales, "stored"), autocast="lower", layout="own",
)  # fmt: skip
