"""linear_scan: y_i = a_i y_(i-1) + b_i along a dim, of which the gradients of cumprod, cummax and logcumsumexp are made; its own gradient is another."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton

from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.cpu.scanning import recurrence
from tritensor.kernels.parts.rows.recurrence import new_like, recur, scan_kept, there_weighs
from tritensor.kernels.parts.rows.row_tiles import row_tunable
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, normal_dim, op, ops, refuse_kind, refuse_mixed

row_tunable("linear_scan")


def scanned(a: np.ndarray, b: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    """The recurrence on the CPU, in a and b's own type, along any axis."""
    if b.ndim == 0:
        return b.copy()
    moved = [v.swapaxes(axis, 0) for v in (a, b)]
    if reverse:
        moved = [v[::-1] for v in moved]
    shape = moved[0].shape
    width = b.size // shape[0] if b.size else 0
    found = recurrence(*[np.array(v, order="C").reshape(shape[0], width) for v in moved]).reshape(shape)
    return np.ascontiguousarray((found[::-1] if reverse else found).swapaxes(0, axis))


def neighbour(x: np.ndarray, axis: int, step: int, edge: float) -> np.ndarray:
    """x one place further along an axis (step 1: that of the next), `edge` where there is none."""
    out = np.empty_like(x)
    # no neighbour at all
    if x.ndim == 0 or x.size == 0:
        out[...] = edge
        return out
    inner, outer = (slice(1, None), slice(None, -1)) if step < 0 else (slice(None, -1), slice(1, None))
    lead = (slice(None),) * axis
    out[(*lead, inner)] = x[(*lead, outer)]
    out[(*lead, slice(0, 1) if step < 0 else slice(-1, None))] = edge
    return out


def shifted(x: Any, dim: int, step: int, edge: float) -> Any:
    """The same of a Tensor."""
    shape = x.shape
    if len(shape) == 0:
        return ops.full(shape=(), value=edge, dtype=x._array.dtype, device=x.device)
    if shape[dim] == 0:
        return x
    lead = tuple(slice(0, n, 1) for n in shape[:dim])
    rest = tuple(slice(0, n, 1) for n in shape[dim + 1 :])
    n = shape[dim]
    part = ops.index_view(x, index=(*lead, slice(0, n - 1, 1) if step < 0 else slice(1, n, 1), *rest))
    one = ops.full(shape=(*shape[:dim], 1, *shape[dim + 1 :]), value=edge, dtype=x._array.dtype, device=x.device)
    return ops.cat(*((one, part) if step < 0 else (part, one)), dim=dim)


def _linear_scan(a: np.ndarray, b: np.ndarray, *, dim: int, reverse: bool = False) -> np.ndarray:
    """y_i = a_i y_(i-1) + b_i along dim, y before the first being 0; from the end with `reverse`. float32 is kept in float64."""
    steps = [np.moveaxis(np.atleast_1d(v), dim, 0)[:: -1 if reverse else 1] for v in (a, b)]
    y = np.zeros_like(steps[1])
    before: Any = 0
    for i, (factor, term) in enumerate(zip(*steps, strict=True)):
        y[i] = before = factor * before + term
    return np.moveaxis(y[:: -1 if reverse else 1], 0, dim).reshape(b.shape)


def _linear_scan_cpu(a: np.ndarray, b: np.ndarray, *, dim: int, reverse: bool = False) -> np.ndarray:
    axis, kept = normal_dim("linear_scan", dim, b.ndim), scan_kept(b.dtype)
    return scanned(a.astype(kept, copy=False), b.astype(kept, copy=False), axis, reverse).astype(b.dtype, copy=False)


def _shape(a: Any, b: Any, *, dim: int, reverse: bool = False) -> Spec:
    refuse_kind("linear_scan", b.dtype, ("float", "complex"), "b")
    refuse_mixed("linear_scan", ("a", a), ("b", b))
    if a.shape != b.shape:
        raise ShapeError(f"linear_scan: a {a.shape}, b {b.shape}: give them one shape")
    normal_dim("linear_scan", dim, len(b.shape))
    return Spec(b.shape, b.dtype)


@triton.jit
def _here_weighs(here, there):
    return here


@triton.jit
def _itself(s, place):
    return (s,)


def _forward(a: CudaArray, b: CudaArray, *, dim: int, reverse: bool = False) -> CudaArray:
    axis, y = normal_dim("linear_scan", dim, len(b.shape)), new_like(b)
    recur("linear_scan", a, b, (), (y,), axis, weight=_here_weighs, finish=_itself, reverse=reverse, kind=scan_kept(b.dtype))
    return y


# The adjoint s_i = g_i + a_(i+1) s_(i+1) is db, and da_i = s_i y_(i-1).
def _rule(g: Any, a: Any, y: Any, dim: int, reverse: bool) -> Any:
    axis, step = normal_dim("linear_scan", dim, len(y.shape)), -1 if reverse else 1
    s = ops.linear_scan(shifted(a, axis, step, 0.0), g, dim=axis, reverse=not reverse)
    return ops.mul(s, shifted(y, axis, -step, 0.0)), s


@triton.jit
def _with_factor(s, place, y):
    return s, s * y


def _backward(g: CudaArray, a: CudaArray, y: CudaArray, dim: int, reverse: bool) -> Any:
    axis, da, db = normal_dim("linear_scan", dim, len(y.shape)), new_like(a), new_like(g)
    recur(
        "linear_scan", a, g, (y,), (db, da), axis, weight=there_weighs, finish=_with_factor, reverse=not reverse,
        shifts=(1 if reverse else -1,), kind=scan_kept(g.dtype),
    )  # fmt: skip
    return da, db


def _cpu_backward(g: np.ndarray, a: np.ndarray, y: np.ndarray, dim: int, reverse: bool) -> Any:
    axis, step, kept = normal_dim("linear_scan", dim, y.ndim), -1 if reverse else 1, scan_kept(g.dtype)
    s = scanned(neighbour(a.astype(kept), axis, step, 0.0), g.astype(kept, copy=False), axis, not reverse)
    return np.asarray(s * neighbour(y.astype(kept), axis, -step, 0.0)).astype(g.dtype), s.astype(g.dtype)


def _samples(rng: np.random.Generator) -> list[Sample]:
    """Last dim, first, a middle one, backwards, rows longer than a tile in either direction, chunks on the CPU, nothing."""

    def pair(*shape: int) -> tuple[np.ndarray, np.ndarray]:
        return rng.uniform(-0.9, 0.9, size=shape), rng.normal(size=shape)

    return [
        Sample(*pair(5, 7), dim=1, reverse=False),
        Sample(*pair(6, 5), dim=0, reverse=True),
        Sample(*pair(3, 40, 2), dim=1, reverse=False),
        Sample(*pair(1, 1100), dim=1, reverse=True, smooth=False),
        Sample(*pair(1050, 2), dim=0, reverse=False, smooth=False),
        Sample(*pair(3, 0), dim=1, reverse=False),
    ]


op(
    "linear_scan", _linear_scan, cpu=_linear_scan_cpu, shape=_shape, forward=_forward, rule=_rule, backward=_backward, cpu_backward=_cpu_backward,
    samples=_samples, condition="absolute",
)  # fmt: skip
