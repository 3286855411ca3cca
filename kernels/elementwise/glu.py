"""Gated linear unit, glu: the first half of x times the sigmoid of the second (Dauphin et al., "Language modeling with gated convolutional networks", 2017)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import triton

from tritensor.ground.errors import ShapeError
from tritensor.ground.strides import elementwise_strides
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order, to_strides
from tritensor.kernels.parts.cpu.blocks import BLOCK
from tritensor.kernels.parts.elementwise import run
from tritensor.kernels.parts.formula_llvm import formula_loop, numpy_gradient
from tritensor.llvm.loops import MANY
from tritensor.ops.array import CudaArray, element_strides, is_contiguous
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_kind


# y = a sigmoid(b); dy/da = sigmoid(b), dy/db = a sigmoid(b) sigmoid(-b)
@triton.jit
def _gate_grad_b(g, a, b):
    s = maths.sigmoid(b)
    return g * (a * (s * (1.0 - s)))


def _parts(shape: tuple[int, ...], dim: int) -> tuple[int, int]:
    """x as (outer, 2, inner)."""
    return math.prod(shape[:dim]), math.prod(shape[dim:]) // 2


def _halved(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return (*shape[:dim], shape[dim] // 2, *shape[dim + 1 :])


def _shape(x: Any, *, dim: int) -> Spec:
    refuse_kind("glu", x.dtype, ("float",))
    if dim >= len(x.shape):
        raise ShapeError(f"glu: input {tuple(x.shape)} has no dim {dim}")
    if x.shape[dim] % 2:
        raise ShapeError(f"glu: input {tuple(x.shape)}: its size {x.shape[dim]} along dim {dim} is odd; give an even one")
    return Spec(_halved(tuple(x.shape), dim), x.dtype)


_LOOPS = {f: formula_loop(f) for f in (maths.gated, _gate_grad_b)}  # of many, which are written where they belong at once
_NUMPY: dict[Any, Callable[..., np.ndarray]] = {f: numpy_gradient(f, False) for f in _LOOPS}


def _in_blocks(formula: Any, outer: int, inner: int, inputs: tuple[np.ndarray, ...], out: np.ndarray) -> None:
    """out = formula(*inputs), all (outer, inner) with rows that lie apart, in pieces that fit the cache once they lie together."""
    rows = max(BLOCK // max(inner, 1), 1)
    for top in range(0, outer, rows):
        for left in range(0, inner, BLOCK):
            window = (slice(top, top + rows), slice(left, left + BLOCK))
            given, target = [x[window] for x in inputs], out[window]
            if target.size < MANY or not _LOOPS[formula]([np.ascontiguousarray(x) for x in given], target):
                target[...] = _NUMPY[formula](*given)


def _reference(x: np.ndarray, *, dim: int) -> np.ndarray:
    """The half of x along dim that comes first, times the sigmoid of the other."""
    a, b = np.split(x, 2, axis=dim)
    return a / (1 + np.exp(-b))


def _cpu(x: np.ndarray, *, dim: int) -> np.ndarray:
    outer, inner = _parts(x.shape, dim)
    halves = np.ascontiguousarray(x).reshape(outer, 2, inner)
    y = np.empty(_halved(x.shape, dim), x.dtype)
    _in_blocks(maths.gated, outer, inner, (halves[:, 0], halves[:, 1]), y.reshape(outer, inner))
    return _as_a_half(y, x)


def _as_a_half(y: Any, x: Any) -> Any:
    """y in the memory order of an elementwise result of the halves, whose strides are x's."""
    return y if is_contiguous(x) else to_strides(y, elementwise_strides(y.shape, ((y.shape, element_strides(x)),)))


def _forward(x: CudaArray, *, dim: int) -> CudaArray:
    outer, inner = _parts(x.shape, dim)
    halves = to_c_order(x).reshape((outer, 2, inner))
    y = allocate((outer, inner), x.dtype, x)
    run((maths.gated,), ((0, 1),), (halves[:, 0], halves[:, 1]), (y,), x.dtype)
    return _as_a_half(y.reshape(_halved(x.shape, dim)), x)


def _rule(g: Any, x: Any, dim: int) -> Any:
    a, b = x.chunk(2, dim)
    s = ops.sigmoid(b)
    da = ops.mul(g, s)
    return ops.cat(da, ops.mul(ops.mul(da, a), ops.sub(1.0, s)), dim=dim)


def _backward(g: CudaArray, x: CudaArray, dim: int) -> CudaArray:
    outer, inner = _parts(x.shape, dim)
    halves, up = to_c_order(x).reshape((outer, 2, inner)), to_c_order(g).reshape((outer, inner))
    dx = allocate((outer, 2, inner), x.dtype, x)
    run((maths.gated, _gate_grad_b), ((0, 2), (0, 1, 2)), (up, halves[:, 0], halves[:, 1]), (dx[:, 0], dx[:, 1]), x.dtype)
    return dx.reshape(x.shape)


def _cpu_backward(g: np.ndarray, x: np.ndarray, dim: int) -> np.ndarray:
    outer, inner = _parts(x.shape, dim)
    halves, up = np.ascontiguousarray(x).reshape(outer, 2, inner), np.ascontiguousarray(g).reshape(outer, inner)
    dx = np.empty(x.shape, x.dtype)
    down = dx.reshape(outer, 2, inner)
    _in_blocks(maths.gated, outer, inner, (up, halves[:, 1]), down[:, 0])
    _in_blocks(_gate_grad_b, outer, inner, (up, halves[:, 0], halves[:, 1]), down[:, 1])
    return dx


def _samples(rng: np.random.Generator) -> list[Sample]:
    return [
        Sample(rng.normal(size=(3, 8)), dim=1), Sample(rng.normal(size=(2, 6, 5)), dim=1), Sample(rng.normal(size=(4, 3)), dim=0),
        Sample(rng.normal(size=(270,)), dim=0), Sample(np.zeros((3, 0)), dim=1),
    ]  # fmt: skip


op(
    "glu", _reference, cpu=_cpu, shape=_shape, forward=_forward, rule=(_rule,), backward=(_backward,), cpu_backward=(_cpu_backward,),
    samples=_samples, layout="own", sizes=lambda rng: [Sample(rng.standard_normal((4096, 2048)), dim=1)],
    work=lambda x, *, dim: Work(5 * x.size, x.nbytes * 3 // 2),
)  # fmt: skip
