"""beta * c + alpha * (a @ b), rounded once: what addmm and its kin are of 16-bit floats, whose products would lose the digits that a sum leaves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import triton

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts import elementwise
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.gemm import dot_accumulator
from tritensor.kernels.parts.view_arithmetic import transposed_dims
from tritensor.kernels.products import matmul
from tritensor.ops.array import CudaArray
from tritensor.ops.table import FLOATS, Sample, Spec, Work, op, ops, refuse_mixed


def _shape(a: Any, b: Any, c: Any = None, *, beta: float = 1.0, alpha: float = 1.0) -> Spec:
    spec = matmul.shape(a, b)
    if len(a.shape) != len(b.shape) or len(a.shape) < 2 or a.shape[:-2] != b.shape[:-2]:
        raise ShapeError(
            f"add_product: a {tuple(a.shape)} @ b {tuple(b.shape)} are not matrices, or batches of as many; reshape or expand them"
        )
    if c is not None:
        refuse_mixed("add_product", ("a", a), ("c", c))
        if tuple(c.shape) != tuple(spec.shape):
            raise ShapeError(f"add_product: c {tuple(c.shape)} is not of the product's shape {tuple(spec.shape)}; expand it")
    return spec


# y = beta c + alpha p
@triton.jit
def _sum(p, c, alpha, beta):
    return p * alpha + c * beta


@triton.jit
def _scaled(p, alpha):
    return p * alpha


def _forward(a: CudaArray, b: CudaArray, c: CudaArray | None = None, *, beta: float = 1.0, alpha: float = 1.0) -> CudaArray:
    kept = dot_accumulator(a.dtype)[0]
    p = matmul.product(a, b, kept)
    y = allocate(p.shape, a.dtype, a)
    if c is None:
        elementwise.run((_scaled,), ((0, 1),), (p, alpha), (y,), kept)
    else:
        elementwise.run((_sum,), ((0, 1, 2, 3),), (p, c, alpha, beta), (y,), kept)
    return y


def _reference(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None, *, beta: float = 1.0, alpha: float = 1.0) -> np.ndarray:
    """beta * c + alpha * (a @ b) of matrices, or batches of as many, c of the product's shape or none; summed in float32 or wider, rounded once."""
    return alpha * (a @ b) if c is None else beta * c + alpha * (a @ b)


def _cpu(a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None, *, beta: float = 1.0, alpha: float = 1.0) -> np.ndarray:
    p = np.asarray(matmul.cpu_product(a, b))
    p = p * p.dtype.type(alpha) if alpha != 1 else p
    if c is not None:
        p = p + c.astype(p.dtype, copy=False) * p.dtype.type(beta)
    return p.astype(a.dtype, copy=False)


# da = alpha g @ b^T, db = alpha a^T @ g, dc = beta g
def _rule_a(g: Any, b: Any, alpha: float) -> Any:
    return ops.add_product(g, ops.permute(b, dims=transposed_dims(b.ndim)), None, alpha=alpha)


def _rule_b(g: Any, a: Any, alpha: float) -> Any:
    return ops.add_product(ops.permute(a, dims=transposed_dims(a.ndim)), g, None, alpha=alpha)


def _rule_c(g: Any, beta: float) -> Any:
    return ops.mul(g, beta)


def _scaled_product(a: CudaArray, b: CudaArray, alpha: float) -> CudaArray:
    # without a scale the product is rounded where it is made: one launch instead of two
    return matmul.forward(a, b) if alpha == 1 else _forward(a, b, alpha=alpha)


def _backward_a(g: CudaArray, b: CudaArray, alpha: float) -> CudaArray:
    return _scaled_product(g, b.transpose(transposed_dims(b.ndim)), alpha)


def _backward_b(g: CudaArray, a: CudaArray, alpha: float) -> CudaArray:
    return _scaled_product(a.transpose(transposed_dims(a.ndim)), g, alpha)


def _backward_c(g: CudaArray, beta: float) -> CudaArray:
    if beta == 1:
        return g
    dc = allocate(g.shape, g.dtype, g)
    elementwise.run((_scaled,), ((0, 1),), (g, beta), (dc,), dot_accumulator(g.dtype)[0])
    return dc


def _cpu_backward_a(g: np.ndarray, b: np.ndarray, alpha: float) -> np.ndarray:
    return _cpu(g, b.swapaxes(-1, -2), alpha=alpha)


def _cpu_backward_b(g: np.ndarray, a: np.ndarray, alpha: float) -> np.ndarray:
    return _cpu(a.swapaxes(-1, -2), g, alpha=alpha)


def _cpu_backward_c(g: np.ndarray, beta: float) -> np.ndarray:
    return g if beta == 1 else (g * dtypes.accumulator(g.dtype).type(beta)).astype(g.dtype, copy=False)


def _samples(rng: np.random.Generator) -> list[Sample]:
    draw = rng.standard_normal
    return [
        Sample(draw((3, 4)), draw((4, 5)), draw((3, 5)), beta=1.0, alpha=1.0),
        Sample(draw((4, 3)).T, draw((5, 4)).T, draw((5, 3)).T, beta=0.5, alpha=-2.0),
        Sample(draw((2, 17, 35)), draw((2, 35, 18)), draw((2, 17, 18)), beta=-1.0, alpha=1.0),
        Sample(draw((3, 4)), draw((4, 5)), None, beta=1.0, alpha=3.0),
        Sample(draw((3, 0)), draw((0, 2)), draw((3, 2)), beta=2.0, alpha=1.0),  # an empty sum is zero
    ]


def _sizes(rng: np.random.Generator) -> list[Sample]:
    a, b, c = (rng.standard_normal((2048, 2048)) for _ in range(3))
    return [Sample(a, b, c, beta=1.0, alpha=1.0)]


def _work(a: Any, b: Any, c: Any = None, **attrs: Any) -> Work:
    """The product's, and two operations an element more; c is read once."""
    n = math.prod(matmul.shape(a, b).shape)
    own = matmul.work(a, b)
    return Work(own.flops + 3 * n, own.bytes + (0 if c is None else n * a.dtype.itemsize))


op(
    "add_product", _reference,
    cpu=_cpu, shape=_shape, forward=_forward, rule=(_rule_a, _rule_b, _rule_c),
    backward=(_backward_a, _backward_b, _backward_c),
    cpu_backward=(_cpu_backward_a, _cpu_backward_b, _cpu_backward_c), promote="same", dtypes=FLOATS, samples=_samples, sizes=_sizes, work=_work,
    condition="absolute", autocast="lower",
)  # fmt: skip
