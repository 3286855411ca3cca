"""Mean squared error: the shared reduction with the map (x - t)^2."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from tritensor import dtypes
from tritensor.array import CudaArray
from tritensor.errors import ArgumentError, ShapeError
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import laid
from tritensor.kernels.parts.cpu.summation import total
from tritensor.kernels.parts.reduction import ReductionFunctions, add, fold, spread, zero
from tritensor.table import Sample, Spec, Work, op, ops, refuse_kind

REDUCTIONS = ("none", "mean", "sum")


# (x - t)^2
@triton.jit
def _square(x, t, index):
    return (x - t) * (x - t)


# dx = 2 g (x - t) / n
@triton.jit
def _slope(x, t, g, index, n):
    return maths.div(2 * g * (x - t), n)


def _shape(x: Any, target: Any, *, reduction: str = "mean") -> Spec:
    if reduction not in REDUCTIONS:
        raise ArgumentError(f"mse_loss: reduction {reduction!r} is none of {', '.join(REDUCTIONS)}; give one of these")
    refuse_kind("mse_loss", x.dtype, ("float",))
    if x.shape != target.shape:
        raise ShapeError(
            f"mse_loss: x {tuple(x.shape)} and target {tuple(target.shape)} differ; a loss does not broadcast (it would average over an outer product): "
            "reshape one of them"
        )
    return Spec(x.shape if reduction == "none" else (), x.dtype)


def _every(x: Any, reduction: str) -> tuple[int, ...]:
    """The dims that are reduced."""
    return () if reduction == "none" else tuple(range(len(x.shape)))


def _divisor(x: Any, reduction: str) -> int:
    return int(np.prod(x.shape, dtype=np.int64)) if reduction == "mean" else 1


def reference(x: np.ndarray, target: np.ndarray, *, reduction: str = "mean") -> np.ndarray:
    """(x - t)^2, its mean or its sum."""
    acc_type = dtypes.accumulator(x.dtype)
    away = np.subtract(x, target, dtype=acc_type) if acc_type == x.dtype else x.astype(acc_type) - target.astype(acc_type)
    squares = np.asarray(np.multiply(away, away, out=away if away.ndim else None))
    if reduction == "none":
        return squares.astype(x.dtype, copy=False)
    found = total(squares, _every(x, reduction))
    if reduction == "mean":
        with np.errstate(invalid="ignore"):
            found = np.true_divide(found, x.size, dtype=acc_type)
    return np.asarray(found, x.dtype)


def _forward(x: CudaArray, target: CudaArray, *, reduction: str = "mean") -> CudaArray:
    y = allocate(x.shape if reduction == "none" else (), x.dtype, x)
    functions = ReductionFunctions(_square, add, maths.div, zero)
    fold(functions, (x, target), _every(x, reduction), (y,), (dtypes.accumulator(x.dtype),), (np.float64(_divisor(x, reduction)),))
    return laid(y, (x, target))


def _rule(g: Any, x: Any, target: Any, reduction: str, needs: tuple[bool, ...]) -> tuple[Any, Any]:
    dx = ops.mul(ops.mul(g, 2.0 / max(_divisor(x, reduction), 1)), ops.sub(x, target))
    return dx, ops.neg(dx) if needs[1] else None


def _backward(g: CudaArray, x: CudaArray, target: CudaArray, reduction: str, needs: tuple[bool, ...]) -> tuple[Any, Any]:
    found = []
    for need, a, b in ((needs[0], x, target), (needs[1], target, x)):
        dx = allocate(a.shape, a.dtype, a) if need else None
        if dx is not None:
            spread(
                _slope,
                (a, b, g if reduction == "none" else g.expand(x.shape)),
                tuple(range(len(x.shape))),
                (dx,),
                (np.float64(_divisor(x, reduction)),),
            )
        found.append(dx)
    return found[0], found[1]


def _reference_backward(g: np.ndarray, x: np.ndarray, target: np.ndarray, reduction: str, needs: tuple[bool, ...]) -> tuple[Any, Any]:
    acc_type = dtypes.accumulator(x.dtype)
    scale = np.multiply(g, 2 / max(_divisor(x, reduction), 1), dtype=acc_type)
    away = np.subtract(x, target, dtype=acc_type)
    dx = np.asarray(np.multiply(away, scale, out=away if away.ndim else None)).astype(x.dtype, copy=False)
    return dx, np.negative(dx) if needs[1] else None


def samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.normal(size=(5, 7)), rng.normal(size=(5, 7)), reduction="mean"),
        Sample(rng.normal(size=(3, 4, 2)), rng.normal(size=(3, 4, 2)), reduction="sum"),
        Sample(rng.normal(size=(300,)), rng.normal(size=(300,)), reduction="none"),
        Sample(rng.normal(size=(4500,)), rng.normal(size=(4500,)), reduction="mean"),
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    return [Sample(rng.standard_normal((4096, 4096)), rng.standard_normal((4096, 4096)), reduction="mean")]


def _work(x: Any, target: Any, *, reduction: str = "mean") -> Work:
    return Work(3 * x.size, 2 * x.size * x.dtype.itemsize)


op(
    "mse_loss", reference, layout="elementwise",
    shape=_shape, forward=_forward, rule=_rule, backward=_backward, reference_backward=_reference_backward, promote="same",
    samples=samples, sizes=_sizes, work=_work,
)  # fmt: skip
