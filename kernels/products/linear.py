"""Affine map of the last dimension, x @ weight^T + bias, in one kernel: the bias joins the product before it is rounded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import reshape_or_copy
from tritensor.kernels.parts.cpu.summation import few
from tritensor.kernels.parts.gemm import SMALL, blas, gemm, run_product
from tritensor.kernels.parts.pointwise_samples import normals
from tritensor.kernels.parts.products.tma_operands import padded
from tritensor.kernels.parts.tapes.tape import Tape
from tritensor.kernels.parts.view_arithmetic import reshaped
from tritensor.llvm import products, threads
from tritensor.llvm.loops import SHARED
from tritensor.llvm.passes.row_programs import Operand, RowProgram
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Sample, Spec, Work, op, ops, refuse_kind, refuse_mixed, registry


def shape(x: Any, weight: Any, bias: Any = None) -> Spec:
    given = f"linear: x {tuple(x.shape)}, weight {tuple(weight.shape)}"
    if len(weight.shape) != 2:
        raise ShapeError(f"{given}: weight must be (out, in)")
    if not x.shape or x.shape[-1] != weight.shape[1]:
        raise ShapeError(
            f"{given}: x's last size {x.shape[-1] if x.shape else '(none)'} is not weight's last {weight.shape[1]}; reshape one, or transpose it"
        )
    if bias is not None and tuple(bias.shape) != (weight.shape[0],):
        raise ShapeError(f"{given}, bias {tuple(bias.shape)}: bias must have weight's first size, ({weight.shape[0]},)")
    refuse_mixed("linear", ("x", x), ("weight", weight), ("bias", bias))
    refuse_kind("linear", x.dtype, ("float",))
    return Spec((*x.shape[:-1], weight.shape[0]), x.dtype)


def reference(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """y = x @ weight^T + bias, x (..., in), weight (out, in), bias (out,)."""
    return x @ weight.T if bias is None else x @ weight.T + bias


def cpu(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    """The same by BLAS; 16-bit floats in float32, rounded once."""
    if x.dtype.itemsize == 2:
        return cpu(x.astype(np.float32), weight.astype(np.float32), None if bias is None else bias.astype(np.float32)).astype(x.dtype)
    y = blas(x, weight.T)
    if bias is not None and not (y.size >= SHARED and _add_to_rows(y, bias)):
        y += bias
    return y


_ADDED = RowProgram(lambda p, y, b: p.each(lambda y, b: y + b, y, b, into=(y,)))


def _add_to_rows(y: np.ndarray, bias: np.ndarray) -> bool:
    """y += bias on several threads; False where there is one, or no machine code."""
    n = len(bias)
    return (
        threads.free() > 1
        and bias.flags.c_contiguous
        and y.flags.c_contiguous
        and _ADDED((y.size // n, 1, n), (Operand(y, n), Operand(bias, 0)))
    )


def _small(x: np.ndarray, weight: np.ndarray, bias: np.ndarray) -> np.ndarray:
    y: np.ndarray = x.dot(weight.T)
    y += bias
    return y


def _planned(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None = None) -> Callable[..., np.ndarray] | None:
    """The same of small matrices, which numpy's dot takes as they lie."""
    if x.dtype.char not in "fd" or x.ndim != 2 or x.size > SMALL or weight.size > SMALL:
        return None
    return _small if bias is not None else lambda x, weight: x.dot(weight.T)


cpu.planned = _planned  # type: ignore[attr-defined]


def rows_of(x: CudaArray) -> CudaArray:
    """x (..., n) as (rows, n); a view where the strides allow it."""
    return reshape_or_copy(x, (math.prod(x.shape[:-1]), x.shape[-1]))


def forward(x: CudaArray, weight: CudaArray, bias: CudaArray | None = None) -> CudaArray:
    y = allocate((*x.shape[:-1], weight.shape[0]), x.dtype, x)
    gemm(rows_of(x), weight.transpose((1, 0)), rows_of(y), bias)
    return y


def run_with_tape(
    x: CudaArray, weight: CudaArray, bias: CudaArray | None, tape: Tape, inputs: Sequence[CudaArray], numbers: Sequence[Any],
    outs: Sequence[CudaArray],
) -> None:  # fmt: skip
    """Run a tape over linear's result, value 0, in its launch: `run_product` of gemm.py, for inputs that broadcast to linear's shape, and outs of it."""
    run_product(rows_of(x), weight.transpose((1, 0)), bias, tape, inputs, numbers, outs)


def _rule_x(g: Any, weight: Any) -> Any:
    return ops.matmul(g, weight)


def _rule_weight(g: Any, x: Any) -> Any:
    rows = math.prod(x.shape[:-1])
    return ops.matmul(ops.permute(reshaped(g, (rows, g.shape[-1])), dims=(1, 0)), reshaped(x, (rows, x.shape[-1])))


def _rule_bias(g: Any) -> Any:
    return ops.sum(g, dim=tuple(range(g.ndim - 1)), keepdim=False) if g.ndim > 1 else g


def rules(g: Any, x: Any, weight: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """The three rules at once, those that `needs` asks for."""
    return _needed(needs, lambda: _rule_x(g, weight), lambda: _rule_weight(g, x), lambda: _rule_bias(g))


def _needed(needs: tuple[bool, ...], *gradients: Callable[[], Any]) -> tuple[Any, ...]:
    # Weights that are frozen, and a first layer's input, ask for no gradient: each is a product that is spared
    return tuple([gradient() if need else None for gradient, need in zip(gradients, needs, strict=False)])


def backward(g: CudaArray, x: Any, weight: Any, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """Two launches: the bias's gradient, the sums of g's columns, comes with the weight's, which reads g anyway. x and weight are None where no
    gradient needs them."""
    rows, wanted = rows_of(g), len(needs) > 2 and needs[2]
    dx = dw = db = None
    # 16-bit rows that tensor descriptors cannot take are copied once, not once for each product
    if needs[0] or needs[1]:
        rows = padded(rows, (weight if needs[0] else x).shape[-1])  # once for both products
    if needs[0]:
        dx = allocate((*g.shape[:-1], weight.shape[1]), g.dtype, g)
        gemm(rows, weight, rows_of(dx))
    if needs[1]:
        dw = allocate((g.shape[-1], x.shape[-1]), g.dtype, g)
        if wanted and dw.size:
            db = allocate(g.shape[-1:], g.dtype, g)
        gemm(rows.transpose((1, 0)), rows_of(x), dw, sums=db)
    if wanted and db is None:
        db = registry["sum"].forward(rows, dim=(0,), keepdim=False)  # type: ignore[misc]
    return (dx, dw, db)[: len(needs)]


def _cpu_backward_x(g: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return blas(g, weight)


def _cpu_backward_weight(g: np.ndarray, x: np.ndarray) -> np.ndarray:
    rows = math.prod(x.shape[:-1])
    return blas(g.reshape(rows, g.shape[-1]).T, x.reshape(rows, x.shape[-1]))


def _cpu_backward_bias(g: np.ndarray) -> np.ndarray:
    rows = g.reshape(math.prod(g.shape[:-1]), g.shape[-1])
    if (small := few(rows, (0,), False)) is not None:
        return small
    upcast = rows.astype(np.float32) if g.dtype.itemsize == 2 else rows
    # BLAS sums in blocks: faster and closer than numpy's column sum
    return products.matmul(np.ones((1, len(rows)), upcast.dtype), upcast)[0].astype(g.dtype, copy=False)


def cpu_backward(g: np.ndarray, x: np.ndarray, weight: np.ndarray, needs: tuple[bool, ...]) -> tuple[Any, ...]:
    """The three at once, those that `needs` asks for."""
    return _needed(needs, lambda: _cpu_backward_x(g, weight), lambda: _cpu_backward_weight(g, x), lambda: _cpu_backward_bias(g))


def samples(rng: np.random.Generator) -> list[Sample]:
    x = normals(rng)
    return [
        Sample(x(3, 4), x(5, 4), x(5)),
        Sample(x(3, 4), x(5, 4)),
        Sample(x(4), x(5, 4), x(5)),
        Sample(x(2, 3, 4), x(5, 4), x(5)),
        Sample(x(18, 35), x(17, 35), x(17)),  # several tiles and steps
        Sample(rng.random((2, 900)), rng.random((3, 900)), x(3)),  # a split sum: the bias is added once
        Sample(x(3, 0), x(2, 0), x(2)),
        Sample(x(72, 40), x(136, 40), x(136)),  # 16-bit tiles by descriptors, ragged
        Sample(x(700, 2), x(3, 2), x(3), smooth=False),  # long sums in the gradients of weight and bias
    ]


def sizes(rng: np.random.Generator) -> list[Sample]:
    x = normals(rng)
    return [Sample(x(64, 400), x(120, 400), x(120)), Sample(x(8, 1024, 1024), x(4096, 1024), x(4096))]


def work(x: Any, weight: Any, bias: Any = None) -> Work:
    """2 rows in out operations, and an addition for each bias; every array moves once."""
    rows, (out, size) = math.prod(x.shape[:-1]), weight.shape
    return Work(2 * rows * size * out + (rows * out if bias is not None else 0), (rows * (size + out) + out * size) * x.dtype.itemsize)


op(
    "linear", reference, cpu=cpu, shape=shape, forward=forward, rule=(_rule_x, _rule_weight, _rule_bias), backward=backward,
    cpu_backward=(_cpu_backward_x, _cpu_backward_weight, _cpu_backward_bias), samples=samples, sizes=sizes, work=work,
    condition="absolute", autocast="lower",
)  # fmt: skip
