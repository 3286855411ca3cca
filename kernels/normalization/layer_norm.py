"""Layer normalisation over the last dims."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.normalization import affine, rows_cpu
from tritensor.kernels.normalization.row_gradients import gradients
from tritensor.kernels.normalization.row_kernels import forward_rows, tile
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_kind


def row_specs(name: str, x: Any, axes: int, **vectors: Any) -> tuple[Spec, Spec]:
    """Those of the result, and of one number a row; raises for what does not fit."""
    refuse_kind(name, x.dtype, ("float",))
    lead = len(x.shape) - axes
    if not 1 <= axes <= len(x.shape):
        raise ShapeError(f"{name}: x {tuple(x.shape)} has {len(x.shape)} dims, normalising the last {axes} of them is not possible")
    tail = tuple(x.shape[lead:])
    for label, w in vectors.items():
        if w is None:
            continue
        if tuple(w.shape) != tail:
            raise ShapeError(f"{name}: x {tuple(x.shape)} with {label} {tuple(w.shape)}: {label} must have the normalised shape {tail}")
        refuse_kind(name, w.dtype, ("float",), label)
    return Spec(x.shape, x.dtype), Spec(tuple(x.shape[:lead]), dtypes.accumulator(x.dtype))


def _shape(x: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, axes: int = 1) -> tuple[Spec, Spec, Spec]:
    y, number = row_specs("layer_norm", x, axes, weight=weight, bias=bias)
    return y, number, number


def _backward(
    g: CudaArray, x: CudaArray, weight: CudaArray | None, bias: CudaArray | None, mean: CudaArray, rstd: CudaArray, axes: int,
    needs: tuple[bool, ...],
) -> tuple[Any, Any, Any]:  # fmt: skip
    like = tuple(x.dtype if v is None else v.dtype for v in (weight, bias))
    return gradients(g, x, weight, mean, rstd, axes, needs, like)  # type: ignore[arg-type]


def reference(
    x: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, *, eps: float = 1e-5, axes: int = 1
) -> tuple[Any, Any, Any]:
    """(x - mean) / sqrt(var + eps) * weight + bias over the last `axes` dims; also mean and 1 / sqrt(var + eps)."""
    lead = x.shape[: x.ndim - axes]
    mean, var = affine.moments_of(x, tuple(range(len(lead), x.ndim)))
    return affine.normalise(x, mean, var, weight, bias, eps), mean.reshape(lead), 1 / np.sqrt(var + eps).reshape(lead)


def rule(
    g: Any, x: Any, weight: Any, bias: Any, eps: float, axes: int, needs: tuple[bool, ...], centred: bool = True
) -> tuple[Any, Any, Any]:
    """The gradient in our own ops, from x alone, so that it can be differentiated again; not `centred`: of the root mean square's normalisation."""
    ndim, given = len(x.shape), x._array.dtype
    acc_type = dtypes.accumulator(given)
    last, lead = tuple(range(ndim - axes, ndim)), tuple(range(ndim - axes))
    # statistics are computed again: of kept ones the dependence on x would be lost at second order
    g = ops.cast(g, dtype=acc_type)
    h, rstd = affine.standardise(ops.cast(x, dtype=acc_type), last, eps, centred)
    dx = dw = db = None
    if needs[0]:
        u = g if weight is None else ops.mul(g, ops.cast(weight, dtype=acc_type))
        dx = ops.cast(affine.gradient_of_input(u, h, rstd, last, centred), dtype=given)
    if needs[1]:
        dw = ops.cast(ops.sum(ops.mul(g, h), dim=lead, keepdim=False), dtype=weight._array.dtype)
    if needs[2]:
        db = ops.cast(ops.sum(g, dim=lead, keepdim=False), dtype=bias._array.dtype)
    return dx, dw, db


def scales(g: np.ndarray, inputs: tuple[Any, ...], attrs: dict[str, Any], centred: bool = True) -> tuple[np.ndarray, ...]:
    """What the roundings of the gradients are measured against."""
    x, weight = inputs[:2]
    last, lead = tuple(range(x.ndim - attrs["axes"], x.ndim)), tuple(range(x.ndim - attrs["axes"]))
    dx, h = affine.gradient_scales(np.abs(g if weight is None else g * weight), x, last, attrs["eps"], centred)
    return (dx, (np.abs(g) * h).sum(lead), np.abs(g).sum(lead))[: len(inputs)]


def samples(rng: np.random.Generator) -> list[Sample]:
    """With and without weight and bias, one and several dims, many rows, long rows."""
    return [
        Sample(rng.normal(size=(5, 7)) + 1, 1 + 0.3 * rng.normal(size=7), rng.normal(size=7), eps=1e-5, axes=1),
        Sample(rng.normal(size=(4, 6)), None, None, eps=1e-3, axes=1),
        Sample(rng.normal(size=(3, 2, 4, 5)), rng.normal(size=(4, 5)), None, eps=1e-5, axes=2),
        Sample(rng.normal(size=(3, 5)), None, rng.normal(size=5), eps=1e-5, axes=1),
        Sample(rng.normal(size=(70, 9)) * 3, rng.normal(size=9), rng.normal(size=9), eps=1e-5, axes=1),
        Sample(rng.normal(size=(2, 6)), rng.normal(size=(2, 6)), rng.normal(size=(2, 6)), eps=1e-5, axes=2),
        Sample(rng.normal(size=(2, 140)), rng.normal(size=140), rng.normal(size=140), eps=1e-5, axes=1),
        Sample(rng.normal(size=(2, 8200)), rng.normal(size=8200), None, eps=1e-5, axes=1, smooth=False),
        Sample(rng.normal(size=(11, 67)), rng.normal(size=67), rng.normal(size=67), eps=1e-5, axes=1, smooth=False),
        Sample(rng.normal(size=(700, 3)), rng.normal(size=3), rng.normal(size=3), eps=1e-5, axes=1, smooth=False),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.standard_normal((r, n)), rng.standard_normal(n), rng.standard_normal(n), eps=1e-5, axes=1)
        for r, n in ((8192, 768), (4096, 4096), (512, 65536), (4096, 4095))
    ]


op(
    "layer_norm", reference, shape=_shape, backward=_backward, cpu_backward=rows_cpu.backward,
    outputs=("y", "mean", "rstd"), residuals=("mean", "rstd"), samples=samples, sizes=_sizes,
    condition=("measured", scales), rule=lambda g, x, weight, bias, eps, axes, needs: rule(g, x, weight, bias, eps, axes, needs),
    forward=lambda x, weight=None, bias=None, *, eps=1e-5, axes=1: forward_rows(x, weight, bias, eps, axes, tile(x, axes)),
    cpu=lambda x, weight=None, bias=None, *, eps=1e-5, axes=1: rows_cpu.forward(x, weight, bias, eps, axes, True),
    work=lambda x, weight=None, bias=None, **attrs: Work(8 * x.size, 2 * x.size * x.dtype.itemsize),
)  # fmt: skip
