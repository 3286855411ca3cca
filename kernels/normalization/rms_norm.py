"""Root mean square normalisation over the last dims: layer normalisation that takes no mean off (Zhang and Sennrich 2019)."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.kernels.normalization import layer_norm, rows_cpu
from tritensor.kernels.normalization.layer_norm import row_specs
from tritensor.kernels.normalization.row_gradients import gradients
from tritensor.kernels.normalization.row_kernels import forward_rows, tile
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op

Arrays = tuple[Any, ...]


def _shape(x: Any, weight: Any = None, *, eps: float = 1e-5, axes: int = 1) -> tuple[Spec, Spec]:
    return row_specs("rms_norm", x, axes, weight=weight)


def _forward(x: CudaArray, weight: CudaArray | None = None, *, eps: float = 1e-5, axes: int = 1) -> Arrays:
    y, _, rstd = forward_rows(x, weight, None, eps, axes, tile(x, axes), centred=False)
    return y, rstd


def _backward(g: CudaArray, x: CudaArray, weight: CudaArray | None, rstd: CudaArray, axes: int, needs: tuple[bool, ...]) -> Arrays:
    wanted = (needs[0], weight is not None and needs[1], False)
    like = (x.dtype if weight is None else weight.dtype, x.dtype)
    return gradients(g, x, weight, None, rstd, axes, wanted, like)[:2]


def reference(x: np.ndarray, weight: np.ndarray | None = None, *, eps: float = 1e-5, axes: int = 1) -> Arrays:
    """x / sqrt(mean(x^2) + eps) * weight over the last `axes` dims; also 1 / sqrt(mean(x^2) + eps)."""
    lead = x.shape[: x.ndim - axes]
    rstd = 1 / np.sqrt(np.mean(x * x, tuple(range(len(lead), x.ndim)), keepdims=True) + eps)
    return x * rstd * (1 if weight is None else weight), rstd.reshape(lead)


def _cpu(x: np.ndarray, weight: np.ndarray | None = None, *, eps: float = 1e-5, axes: int = 1) -> Arrays:
    y, _, rstd = rows_cpu.forward(x, weight, None, eps, axes, False)
    return y, rstd


def _cpu_backward(g: np.ndarray, x: np.ndarray, weight: np.ndarray | None, rstd: np.ndarray, axes: int, needs: tuple[bool, ...]) -> Arrays:
    dx, dw, _ = rows_cpu.backward(g, x, weight, None, None, rstd, axes, (*needs, False))
    return dx, dw


def rule(g: Any, x: Any, weight: Any, eps: float, axes: int, needs: tuple[bool, ...]) -> Arrays:
    return layer_norm.rule(g, x, weight, None, eps, axes, (*needs[:2], False), centred=False)[:2]


def scales(g: np.ndarray, inputs: Arrays, attrs: dict[str, Any]) -> Arrays:
    return layer_norm.scales(g, inputs, attrs, centred=False)


def _samples(rng: np.random.Generator) -> list[Sample]:
    """With and without weight, one and several dims."""
    return [
        Sample(rng.normal(size=(5, 7)) + 1, 1 + 0.3 * rng.normal(size=7), eps=1e-5, axes=1),
        Sample(rng.normal(size=(4, 6)), None, eps=1e-3, axes=1),
        Sample(rng.normal(size=(3, 2, 4, 5)), rng.normal(size=(4, 5)), eps=1e-5, axes=2),
        Sample(rng.normal(size=(2, 6)), rng.normal(size=(2, 6)), eps=1e-5, axes=2),
    ]


op(
    "rms_norm", reference, cpu=_cpu, shape=_shape, forward=_forward, rule=rule, backward=_backward, cpu_backward=_cpu_backward,
    outputs=("y", "rstd"), residuals=("rstd",), samples=_samples, condition=("measured", scales),
    borrows=("x", "weight"),
    sizes=lambda rng: [Sample(rng.standard_normal((r, n)), rng.standard_normal(n), eps=1e-5, axes=1) for r, n in ((8192, 768), (4096, 4096))],
    work=lambda x, weight=None, **attrs: Work(5 * x.size, 2 * x.size * x.dtype.itemsize),
)  # fmt: skip
