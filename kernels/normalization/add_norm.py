"""A sum and its normalisation over the last dims in one pass: what the residual stream of a transformer does at each of its layers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.normalization import layer_norm, rms_norm, rows_cpu
from tritensor.kernels.normalization.row_gradients import gradients
from tritensor.kernels.normalization.row_kernels import forward_rows, tile
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.pointwise_samples import normals
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_mixed, registry

Arrays = tuple[Any, ...]


def _checked(name: str, x: Any, residual: Any) -> None:
    """Raise for a residual of another type or shape."""
    refuse_mixed(name, ("x", x), ("residual", residual))
    if tuple(residual.shape) != tuple(x.shape):
        raise ShapeError(f"{name}: x {tuple(x.shape)}, residual {tuple(residual.shape)}: give both in one shape; expand the smaller")


# What layer and root mean square normalisation share.
def _forward_of(
    x: CudaArray, residual: CudaArray, weight: CudaArray | None, bias: CudaArray | None, eps: float, axes: int, centred: bool
) -> Arrays:
    # the kernel writes the sum as it goes: x and residual are read once for both results
    total = allocate(x.shape, x.dtype, x)
    y, mean, rstd = forward_rows(x, weight, bias, eps, axes, tile(x, axes), centred, residual, total)
    return (y, total, mean, rstd) if centred else (y, total, rstd)


def _to_both(dx: Any, needs: tuple[bool, ...], *vectors: Any) -> Arrays:
    """The gradient of the sum as that of both terms, then those of weight and bias, as many as there are inputs."""
    return (dx if needs[0] else None, dx if needs[1] else None, *vectors)[: len(needs)]


def _wanted(needs: tuple[bool, ...]) -> tuple[bool, bool, bool]:
    """Whether the normalisation's gradients to its input, the sum, and to weight and bias are asked for."""
    return needs[0] or needs[1], len(needs) > 2 and needs[2], len(needs) > 3 and needs[3]


def _backward_of(
    g: Arrays, total: CudaArray, weight: CudaArray | None, bias: CudaArray | None, mean: CudaArray | None, rstd: CudaArray, axes: int,
    needs: tuple[bool, ...],
) -> Arrays:  # fmt: skip
    """One gradient for both terms: what comes through the normalisation and what arrives at the sum itself, added in its kernel."""
    (up, more), wanted = g, _wanted(needs)
    # y was not used: what arrives at the sum goes through to both terms
    if up is None:
        return _to_both(more, needs, None, None)
    like = tuple([total.dtype if v is None else v.dtype for v in (weight, bias)])
    dx, dw, db = gradients(up, total, weight, mean, rstd, axes, wanted, like, more if wanted[0] else None)  # type: ignore[arg-type]
    return _to_both(dx, needs, dw, db)


def _host_backward_of(
    g: Arrays, total: np.ndarray, weight: Any, bias: Any, mean: Any, rstd: Any, axes: int, needs: tuple[bool, ...]
) -> Arrays:
    (up, more), wanted = g, _wanted(needs)
    if up is None:
        return _to_both(more, needs, None, None)
    # the two gradients are added in the accumulator's type and rounded once, as in the kernel
    kept = dtypes.accumulator(total.dtype)
    dx, dw, db = rows_cpu.backward(up.astype(kept, copy=False), total.astype(kept, copy=False), weight, bias, mean, rstd, axes, wanted)
    if dx is not None:
        dx = (dx if more is None else dx + more.astype(kept, copy=False)).astype(total.dtype, copy=False)
    return _to_both(dx, needs, dw, db)


def _rule_of(normalised: Any, g: Arrays, total: Any, vectors: Arrays, eps: float, axes: int, needs: tuple[bool, ...]) -> Arrays:
    """The same in our own ops, of the rule `normalised`."""
    up, more = g
    if up is None:
        return _to_both(more, needs, None, None)
    dx, *others = normalised(up, total, *vectors, eps, axes, _wanted(needs))
    return _to_both(dx if more is None or dx is None else ops.add(dx, more), needs, *others)


def _scales_of(scales: Any, g: Arrays, inputs: Arrays, attrs: dict[str, Any]) -> Arrays:
    """The normalisation's own, and beside it what arrives at the sum."""
    x, residual, *vectors = inputs
    up, more = g
    dx, *others = scales(up, (x + residual, *vectors), attrs)
    dx = dx + np.abs(more)
    return dx, dx, *others


# ---------------------------------------------------------------- layer normalisation


def _shape(x: Any, residual: Any, weight: Any = None, bias: Any = None, *, eps: float = 1e-5, axes: int = 1) -> tuple[Spec, ...]:
    _checked("add_layer_norm", x, residual)
    y, mean, rstd = registry["layer_norm"].shape(x, weight, bias, eps=eps, axes=axes)
    return y, Spec(x.shape, x.dtype), mean, rstd


def _reference(
    x: np.ndarray, residual: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, *, eps: float = 1e-5, axes: int = 1
) -> Arrays:  # fmt: skip
    """(y, total): total = x + residual, y = (total - mean) / sqrt(var + eps) * weight + bias over the last `axes` dims; also mean and rstd."""
    y, mean, rstd = layer_norm.reference(x + residual, weight, bias, eps=eps, axes=axes)
    return y, x + residual, mean, rstd


def _cpu(
    x: np.ndarray, residual: np.ndarray, weight: np.ndarray | None = None, bias: np.ndarray | None = None, *, eps: float = 1e-5, axes: int = 1
) -> Arrays:  # fmt: skip
    total = x + residual
    y, mean, rstd = rows_cpu.forward(total, weight, bias, eps, axes, True)
    return y, total, mean, rstd


def _samples(rng: np.random.Generator) -> list[Sample]:
    """With and without weight and bias, one and several dims, many rows, long rows and odd ones."""
    x = normals(rng)
    return [
        Sample(x(5, 7), x(5, 7) + 1, 1 + 0.3 * x(7), x(7), eps=1e-5, axes=1),
        Sample(x(4, 6), x(4, 6), None, None, eps=1e-3, axes=1),
        Sample(x(3, 2, 4, 5), x(3, 2, 4, 5), x(4, 5), None, eps=1e-5, axes=2),
        Sample(x(3, 5), x(3, 5), None, x(5), eps=1e-5, axes=1),
        Sample(x(2, 8200), x(2, 8200), x(8200), None, eps=1e-5, axes=1, smooth=False),
        Sample(x(11, 67), x(11, 67), x(67), x(67), eps=1e-5, axes=1, smooth=False),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    return [Sample(x((8192, n)), x((8192, n)), x(n), x(n), eps=1e-5, axes=1) for n in (768, 4096)]


op(
    "add_layer_norm", _reference, cpu=_cpu, shape=_shape,
    outputs=("y", "total", "mean", "rstd"), residuals=("mean", "rstd"), samples=_samples, sizes=_sizes,
    condition=("measured", partial(_scales_of, layer_norm.scales), "stored"), autocast="float32",
    forward=lambda x, residual, weight=None, bias=None, *, eps=1e-5, axes=1: _forward_of(x, residual, weight, bias, eps, axes, True),
    backward=lambda g, total, weight, bias, mean, rstd, axes, needs: _backward_of(g, total, weight, bias, mean, rstd, axes, needs),
    cpu_backward=lambda g, total, weight, bias, mean, rstd, axes, needs: _host_backward_of(g, total, weight, bias, mean, rstd, axes, needs),
    rule=lambda g, total, weight, bias, eps, axes, needs: _rule_of(layer_norm.rule, g, total, (weight, bias), eps, axes, needs),
    # the normalisation's and a sum; two arrays are read, two written.
    work=lambda x, residual, weight=None, bias=None, **attrs: Work(9 * x.size, 4 * x.size * x.dtype.itemsize),
)  # fmt: skip


# ---------------------------------------------------------------- root mean square normalisation


def _rms_shape(x: Any, residual: Any, weight: Any = None, *, eps: float = 1e-5, axes: int = 1) -> tuple[Spec, ...]:
    _checked("add_rms_norm", x, residual)
    y, rstd = registry["rms_norm"].shape(x, weight, eps=eps, axes=axes)
    return y, Spec(x.shape, x.dtype), rstd


def _rms_reference(x: np.ndarray, residual: np.ndarray, weight: np.ndarray | None = None, *, eps: float = 1e-5, axes: int = 1) -> Arrays:
    """(y, total): total = x + residual, y = total / sqrt(mean(total^2) + eps) * weight over the last `axes` dims; also rstd."""
    y, rstd = rms_norm.reference(x + residual, weight, eps=eps, axes=axes)
    return y, x + residual, rstd


def _rms_cpu(x: np.ndarray, residual: np.ndarray, weight: np.ndarray | None = None, *, eps: float = 1e-5, axes: int = 1) -> Arrays:
    total = x + residual
    y, _, rstd = rows_cpu.forward(total, weight, None, eps, axes, False)
    return y, total, rstd


def _rms_samples(rng: np.random.Generator) -> list[Sample]:
    """With and without weight, one and several dims."""
    x = normals(rng)
    return [
        Sample(x(5, 7), x(5, 7) + 1, 1 + 0.3 * x(7), eps=1e-5, axes=1),
        Sample(x(4, 6), x(4, 6), None, eps=1e-3, axes=1),
        Sample(x(3, 2, 4, 5), x(3, 2, 4, 5), x(4, 5), eps=1e-5, axes=2),
        Sample(x(11, 67), x(11, 67), x(67), eps=1e-5, axes=1, smooth=False),
    ]


def _rms_sizes(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    return [Sample(x((8192, n)), x((8192, n)), x(n), eps=1e-5, axes=1) for n in (4096,)]


op(
    "add_rms_norm", _rms_reference, cpu=_rms_cpu, shape=_rms_shape,
    outputs=("y", "total", "rstd"), residuals=("rstd",), samples=_rms_samples, sizes=_rms_sizes,
    condition=("measured", partial(_scales_of, rms_norm.scales), "stored"), autocast="float32", borrows=("weight", "total"),
    forward=lambda x, residual, weight=None, *, eps=1e-5, axes=1: _forward_of(x, residual, weight, None, eps, axes, False),
    backward=lambda g, total, weight, rstd, axes, needs: _backward_of(g, total, weight, None, None, rstd, axes, needs),
    cpu_backward=lambda g, total, weight, rstd, axes, needs: _host_backward_of(g, total, weight, None, None, rstd, axes, needs),
    rule=lambda g, total, weight, eps, axes, needs: _rule_of(rms_norm.rule, g, total, (weight,), eps, axes, needs),
    # the normalisation's and a sum; two arrays are read, two written.
    work=lambda x, residual, weight=None, **attrs: Work(6 * x.size, 4 * x.size * x.dtype.itemsize),
)  # fmt: skip
