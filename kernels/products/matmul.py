"""Matrix product: any strides, transposed operands without copies, broadcast batches, float32 accumulation, split k."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import ShapeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import reshape_or_copy
from tritensor.kernels.parts.gemm import SMALL, blas, dot_accumulator, gemm, run_product
from tritensor.kernels.parts.pointwise_samples import normals
from tritensor.kernels.parts.tapes.tape import Tape
from tritensor.kernels.parts.view_arithmetic import reshaped, transposed_dims
from tritensor.ops.array import CudaArray
from tritensor.ops.table import FLOATS, Sample, Spec, Work, broadcast, op, ops, refuse_kind, refuse_mixed, registry

# ---------------------------------------------------------------- the op


def shape(a: Any, b: Any) -> Spec:
    given = f"matmul: a {tuple(a.shape)} @ b {tuple(b.shape)}"
    if not a.shape or not b.shape:
        raise ShapeError(f"{given}: a 0-dimensional operand has no rows or columns; multiply with * instead")
    refuse_mixed("matmul", ("a", a), ("b", b))
    refuse_kind("matmul", a.dtype, ("uint", "int", "float", "complex"), "a")
    if a.shape[-1] != b.shape[-2 if len(b.shape) > 1 else 0]:
        raise ShapeError(
            f"{given}: a's last size {a.shape[-1]} is not b's first {b.shape[-2 if len(b.shape) > 1 else 0]}; transpose one, or reshape it"
        )
    batch = broadcast("matmul", tuple(a.shape[:-2]), tuple(b.shape[:-2]), labels=("a's batch", "b's batch"))
    rows = tuple(a.shape[-2:-1]) if len(a.shape) > 1 else ()
    cols = tuple(b.shape[-1:]) if len(b.shape) > 1 else ()
    return Spec(batch + rows + cols, a.dtype)


def _cpu(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return blas(a, b)


# Of small matrices and vectors numpy's dot, which takes them as they lie.
_cpu.planned = lambda a, b: (  # type: ignore[attr-defined]
    np.dot if a.dtype.char in "fd" and a.ndim < 3 and b.ndim < 3 and a.size <= SMALL and b.size <= SMALL else None
)


def forward(a: CudaArray, b: CudaArray) -> CudaArray:
    return product(a, b, a.dtype)


def product(a: CudaArray, b: CudaArray, dtype: np.dtype) -> CudaArray:
    """a @ b in `dtype`, the operands' own or the one they are summed in."""
    c = allocate(shape(a, b).shape, dtype, a)
    a, b, matrices = _matrices(a, b, c.shape)
    gemm(a, b, c.reshape(matrices))
    return c


def run_with_tape(
    a: CudaArray, b: CudaArray, tape: Tape, inputs: Sequence[CudaArray], numbers: Sequence[Any], outs: Sequence[CudaArray]
) -> None:  # fmt: skip
    """Run a tape over a @ b, value 0, in its launch: `run_product` of gemm.py, for inputs that broadcast to matmul's shape, and outs of it."""
    a, b, _ = _matrices(a, b, shape(a, b).shape)
    run_product(a, b, None, tape, inputs, numbers, outs)


def _matrices(a: CudaArray, b: CudaArray, out: tuple[int, ...]) -> tuple[CudaArray, CudaArray, tuple[int, ...]]:
    """Operands and the shape of their product, `out`, as the kernel takes them: matrices, or batches of as many."""
    # a vector is a matrix of one row, or one column: the kernel knows matrices alone
    if a.ndim == 1:
        a = a.reshape((1, a.shape[0]))
        out = (*out[:-1], 1, out[-1]) if b.ndim > 1 else (1,)
    if b.ndim == 1:
        b = b.reshape((b.shape[0], 1))
        out = (*out, 1)
    if b.ndim == 2 and a.ndim > 2:
        # one matrix for the whole batch: one large product fills a GPU, a small one for each batch does not
        a, out = reshape_or_copy(a, (math.prod(a.shape[:-1]), a.shape[-1])), (math.prod(out[:-1]), out[-1])
    return a.expand(out[:-2] + a.shape[-2:]), b.expand(out[:-2] + b.shape[-2:]), out


# ---------------------------------------------------------------- gradients, once for tensors, device arrays and numpy


class _Functions(NamedTuple):
    """The functions the gradient is written in. `product` is a matmul whose result is still to be summed, `total` sums it and rounds."""

    matmul: Callable[[Any, Any], Any]
    permute: Callable[[Any, tuple[int, ...]], Any]
    reshape: Callable[[Any, tuple[int, ...]], Any]
    product: Callable[[Any, Any], Any]
    total: Callable[[Any, tuple[int, ...], Any], Any]  # of a product, over dims, in the type of the third


def _swap(w: _Functions, x: Any) -> Any:
    return w.permute(x, transposed_dims(x.ndim))


def _summed(w: _Functions, a: Any, b: Any, to: tuple[int, ...]) -> Any:
    """a @ b summed over the batch dims that were broadcast from `to`."""
    batch = broadcast("matmul", tuple(a.shape[:-2]), tuple(b.shape[:-2]))
    lead = len(batch) + 2 - len(to)
    dims = tuple(i for i, n in enumerate(batch) if i < lead or (to[i - lead] == 1 and n != 1))
    return w.reshape(w.total(w.product(a, b), dims, a), to) if dims else w.matmul(a, b)


def _grad_a(w: _Functions, g: Any, b: Any, to: tuple[int, ...]) -> Any:
    """dL/da = g @ b^T."""
    if len(to) == b.ndim == g.ndim == 2:
        return w.matmul(g, w.permute(b, (1, 0)))
    if len(to) == 1:
        if b.ndim == 1:
            return w.reshape(w.matmul(w.reshape(b, (to[0], 1)), w.reshape(g, (1, 1))), to)
        return w.reshape(_summed(w, b, w.reshape(g, (*g.shape, 1)), (to[0], 1)), to)  # of columns (..., k, 1)
    if b.ndim == 1:
        return w.matmul(w.reshape(g, (*g.shape, 1)), w.reshape(b, (1, b.shape[0])))
    return _summed(w, g, _swap(w, b), to)


def _grad_b(w: _Functions, g: Any, a: Any, to: tuple[int, ...]) -> Any:
    """dL/db = a^T @ g; where b has no batch, the batch of a and g joins the summed dimension: one product."""
    if len(to) == a.ndim == 2:
        return w.matmul(w.permute(a, (1, 0)), g)
    if a.ndim == 1:
        if len(to) == 1:
            return w.reshape(w.matmul(w.reshape(a, (to[0], 1)), w.reshape(g, (1, 1))), to)
        return _summed(w, w.reshape(a, (a.shape[0], 1)), w.reshape(g, (*g.shape[:-1], 1, g.shape[-1])), to)
    # b is one matrix for all batches: their sums are one long product, not many small ones added up
    if len(to) <= 2:
        rows = math.prod(a.shape[:-1])
        flat = w.reshape(a, (rows, a.shape[-1]))
        return w.matmul(_swap(w, flat), w.reshape(g, (rows, *to[1:])))
    return _summed(w, _swap(w, a), g, to)


def _gpu_total(x: CudaArray, dims: tuple[int, ...], like: CudaArray) -> CudaArray:
    y = registry["sum"].forward(x, dim=dims, keepdim=False)  # type: ignore[misc]
    return y if y.dtype == like.dtype else registry["cast"].forward(y, dtype=like.dtype)  # type: ignore[misc]


def cpu_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b in the type it is summed in: of 16-bit floats not rounded yet."""
    return blas(*(x.astype(dot_accumulator(x.dtype)[0], copy=False) if dtypes.is_float(x.dtype) else x for x in (a, b)))


def _cpu_total(x: np.ndarray, dims: tuple[int, ...], like: np.ndarray) -> np.ndarray:
    return np.asarray(registry["sum"].cpu(x, dim=dims, keepdim=False)).astype(like.dtype, copy=False)


_TENSORS = _Functions(
    lambda a, b: ops.matmul(a, b), lambda x, dims: ops.permute(x, dims=dims), reshaped,
    lambda a, b: ops.matmul(a, b), lambda x, dims, like: ops.sum(x, dim=dims, keepdim=False),
)  # fmt: skip
_GPU = _Functions(
    forward, lambda x, dims: x.transpose(dims), reshape_or_copy, lambda a, b: product(a, b, dot_accumulator(a.dtype)[0]), _gpu_total
)  # fmt: skip
_CPU = _Functions(_cpu, lambda x, dims: x.transpose(dims), lambda x, to: x.reshape(to), cpu_product, _cpu_total)


def _gradients(w: _Functions) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The gradients to a and to b."""
    return lambda g, b, a_shape: _grad_a(w, g, b, a_shape), lambda g, a, b_shape: _grad_b(w, g, a, b_shape)


def samples(rng: np.random.Generator) -> list[Sample]:
    x = normals(rng)
    return [
        Sample(x(3, 4), x(4, 5)),
        Sample(x(4, 3).T, x(5, 4).T),  # both transposed
        Sample(x(17, 35), x(35, 18)),  # several tiles, several steps along k, k not a multiple of the step
        Sample(rng.random((2, 900)), rng.random((900, 3))),  # k split over programs; no cancellation in the long sums
        Sample(x(72, 40), x(40, 136)),  # 16-bit tiles by descriptors, ragged
        Sample(x(2, 72, 24), x(2, 24, 40)),
        Sample(x(4), x(4)),
        Sample(x(4), x(4, 3)),
        Sample(x(3, 4), x(4)),
        Sample(x(2, 3, 4), x(4, 2)),  # one matrix for the whole batch
        Sample(x(2, 3, 4), x(4)),
        Sample(x(3, 4), x(2, 4, 2)),
        Sample(x(4), x(2, 4, 3)),
        Sample(x(2, 1, 3, 4), x(3, 4, 2)),  # batches broadcast both ways
        Sample(x(3, 2, 2, 2).transpose(1, 0, 2, 3), x(2, 3, 2, 2)),  # a batch that does not collapse
        Sample(x(3, 0), x(0, 2)),  # an empty sum is zero
        Sample(x(0, 3), x(3, 2)),
        Sample(x(2, 4200), x(4200, 3), smooth=False),  # a long sum
    ]


def sizes(rng: np.random.Generator) -> list[Sample]:
    x = normals(rng)
    return [
        Sample(x(4096, 4096), x(4096, 4096)),
        Sample(x(16, 4096), x(4096, 4096)),
        Sample(x(64, 65536), x(65536, 64)),
        Sample(x(64, 512, 64), x(64, 64, 512)),
    ]


def work(a: Any, b: Any) -> Work:
    """2 m n k operations; each operand read once, the result written once."""
    y = shape(a, b).shape
    count = math.prod(y)
    return Work(2 * count * a.shape[-1], (math.prod(a.shape) + math.prod(b.shape) + count) * a.dtype.itemsize)


op(
    "matmul", lambda a, b: a @ b, cpu=_cpu, shape=shape, forward=forward, rule=_gradients(_TENSORS), backward=_gradients(_GPU),
    cpu_backward=_gradients(_CPU), promote="same", dtypes=(*FLOATS, "int8", "int32", "int64"),
    samples=samples, sizes=sizes, work=work, condition="absolute", autocast="lower", doc="Matrix product a @ b, numpy's rules for vectors and batches.",
)  # fmt: skip
