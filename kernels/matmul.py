"""Matrix product: any strides, transposed operands without copies, broadcast batches, float32 accumulation, split k."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

from tritensor import dtypes, replay
from tritensor.array import CudaArray, empty, expand
from tritensor.cuda.launch import launch
from tritensor.errors import DTypeError, ShapeError
from tritensor.kernels.copy import contiguous
from tritensor.kernels.launch_rules import cdiv, gemm_tiles
from tritensor.kernels.views import reshaped
from tritensor.table import FLOATS, Sample, Spec, Work, broadcast, op, ops, registry

_PRECISIONS = {"highest": "ieee", "high": "tf32x3", "medium": "tf32"}
_precision = "highest"


def set_float32_matmul_precision(precision: str) -> None:
    """How float32 products run on a GPU: "highest" (full float32, the default), "high" (three TF32 products, near float32), "medium" (TF32)."""
    global _precision
    if precision not in _PRECISIONS:
        raise ValueError(f"set_float32_matmul_precision: {precision!r}; give one of {', '.join(_PRECISIONS)}")
    _precision = precision
    replay.forget()  # recorded launches hold the precision they were recorded with


def get_float32_matmul_precision() -> str:
    """The setting of set_float32_matmul_precision."""
    return _precision


def dot_precision() -> str:
    """Triton's name for the precision in force."""
    return _PRECISIONS[_precision]


# ---------------------------------------------------------------- kernels


@triton.jit
def multiply_add(a, b, acc, INTEGER: tl.constexpr, PRECISION: tl.constexpr):
    """acc + a @ b for one tile; tensor cores have no exact product for wide integers, so those are multiplied and summed."""
    if INTEGER:
        acc += tl.sum(a.to(acc.dtype)[:, :, None] * b.to(acc.dtype)[None, :, :], 1)  # (m, k, n) -> (m, n)
    else:
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=acc.dtype)
    return acc


# c[i, j] = sum_k a[i, k] b[k, j] + bias[j], for each batch; tiles of one group of rows run together, so that b stays in the cache
@triton.jit(do_not_specialize=["batches", "sizes", "bias_n"])
def _matmul_kernel(
    a, b, c, bias, m, n, k, k_part, batches, sizes, a_batch, b_batch, a_m, a_k, b_k, b_n, bias_n,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, SPLIT: tl.constexpr, EVEN_K: tl.constexpr,
    A_M1: tl.constexpr, A_K1: tl.constexpr, B_K1: tl.constexpr, B_N1: tl.constexpr,
    BIAS: tl.constexpr, INTEGER: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr,
):  # fmt: skip
    a_row = 1 if A_M1 else a_m  # a stride of 1 must be known at compile time: only then are accesses wide
    a_step = 1 if A_K1 else a_k
    b_step = 1 if B_K1 else b_k
    b_col = 1 if B_N1 else b_n
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    tile = tl.program_id(0) % (tiles_m * tiles_n)
    outer = tl.program_id(0) // (tiles_m * tiles_n)
    batch = outer % batches
    part = outer // batches

    group = tile // (GROUP * tiles_n)
    rows_in_group = min(tiles_m - group * GROUP, GROUP)
    tile_m = group * GROUP + (tile % (GROUP * tiles_n)) % rows_in_group
    tile_n = (tile % (GROUP * tiles_n)) // rows_in_group

    left = batch
    for i in tl.static_range(len(sizes)):  # the innermost batch dimension comes first
        a += (left % sizes[i]).to(tl.int64) * a_batch[i]
        b += (left % sizes[i]).to(tl.int64) * b_batch[i]
        left = left // sizes[i]

    rows = tile_m * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tile_n * BLOCK_N + tl.arange(0, BLOCK_N)
    step = tl.arange(0, BLOCK_K)
    start = part * k_part
    # rows and columns past the edge wrap to valid ones: no mask in the loop, and the store drops them
    a_at = a + (rows % m).to(tl.int64)[:, None] * a_row + (start + step).to(tl.int64)[None, :] * a_step  # (BLOCK_M, BLOCK_K)
    b_at = b + (start + step).to(tl.int64)[:, None] * b_step + (cols % n).to(tl.int64)[None, :] * b_col  # (BLOCK_K, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    stop = min(start + k_part, k)
    for at in range(start, stop, BLOCK_K):
        if EVEN_K:
            a_tile = tl.load(a_at)
            b_tile = tl.load(b_at)
        else:
            a_tile = tl.load(a_at, mask=(step < stop - at)[None, :], other=0)
            b_tile = tl.load(b_at, mask=(step < stop - at)[:, None], other=0)
        acc = multiply_add(a_tile, b_tile, acc, INTEGER, PRECISION)
        a_at += tl.full((), BLOCK_K, tl.int64) * a_step
        b_at += tl.full((), BLOCK_K, tl.int64) * b_step
    if BIAS:
        acc += tl.load(bias + (cols % n) * bias_n).to(ACC)[None, :]
    c_at = c + outer.to(tl.int64) * m * n + rows.to(tl.int64)[:, None] * n + cols[None, :]
    tl.store(c_at, acc.to(c.dtype.element_ty), mask=(rows < m)[:, None] & (cols < n)[None, :])


# c[i] = sum_p parts[p, i] + bias[(i / inner) mod n]: the parts of a split k, always added in the same order
@triton.jit(do_not_specialize=["n", "bias_n"])
def _sum_parts_kernel(parts, c, bias, size, inner, n, bias_n, SPLIT: tl.constexpr, BIAS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    total = tl.load(parts + at, mask=inside, other=0)
    for p in range(1, SPLIT):
        total += tl.load(parts + p * size.to(tl.int64) + at, mask=inside, other=0)
    if BIAS:
        total += tl.load(bias + (at // inner % n) * bias_n, mask=inside, other=0).to(total.dtype)
    tl.store(c + at, total.to(c.dtype.element_ty), mask=inside)


def accumulator(dtype: np.dtype) -> tuple[np.dtype, tl.dtype]:
    """The type products are summed in: float32 for 16-bit floats, at least 32 bits for integers (exact modulo their width)."""
    if dtype.kind in "iub" or not dtypes.is_float(dtype):
        return (np.dtype(np.int64), tl.int64) if dtype.itemsize == 8 else (np.dtype(np.int32), tl.int32)
    return (np.dtype(np.float64), tl.float64) if dtype.itemsize == 8 else (np.dtype(np.float32), tl.float32)


def sum_parts(parts: CudaArray, c: CudaArray, bias: CudaArray | None = None, inner: int = 1) -> None:
    """c = parts.sum(0) + bias, for c of parts.size / parts.shape[0] elements without gaps; bias changes every `inner` elements of its memory."""
    block = 256
    launch(
        _sum_parts_kernel, (cdiv(c.size, block),), parts, c, c if bias is None else bias, c.size, inner, 1 if bias is None else bias.shape[0],
        0 if bias is None else bias.strides[0], SPLIT=parts.shape[0], BIAS=bias is not None, BLOCK=block,
    )  # fmt: skip


def _collapse(shape: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Batch sizes and strides of both operands with runs that are dense in both merged, innermost first."""
    out: list[list[int]] = []
    for size, sa, sb in zip(reversed(shape), reversed(a), reversed(b), strict=True):
        if size == 1:
            continue
        if out and sa == out[-1][0] * out[-1][1] and sb == out[-1][0] * out[-1][2]:
            out[-1][0] *= size
        else:
            out.append([size, sa, sb])
    if not out:
        return (1,), (0,), (0,)
    return tuple(o[0] for o in out), tuple(o[1] for o in out), tuple(o[2] for o in out)


def gemm(a: CudaArray, b: CudaArray, c: CudaArray, bias: CudaArray | None = None) -> None:
    """c = a @ b + bias, for a (..., m, k), b (..., k, n) whose batch dims are c's already, c C-ordered, bias (n,)."""
    m, k = a.shape[-2:]
    n = b.shape[-1]
    batches = math.prod(c.shape[:-2])
    if c.size == 0:
        return
    sizes, a_batch, b_batch = _collapse(c.shape[:-2], a.strides[:-2], b.strides[:-2])
    wide = 16 // a.itemsize  # elements in the widest access
    aligned = all(s % wide == 0 or s == 1 for s in (*a.strides[-2:], *b.strides[-2:])) and k % wide == 0 and n % wide == 0
    tiles = gemm_tiles(m, n, k, batches, a.dtype, aligned)
    stored, acc = accumulator(a.dtype)
    k_part = cdiv(cdiv(k, tiles.block_k), tiles.split) * tiles.block_k
    split = max(cdiv(k, k_part), 1) if k else 1
    into = c if split == 1 else empty((split, c.size), stored, c.device)
    launch(
        _matmul_kernel, (cdiv(m, tiles.block_m) * cdiv(n, tiles.block_n) * batches * split,),
        a, b, into, c if bias is None else bias, m, n, k, k_part, batches, sizes, a_batch, b_batch, a.strides[-2], a.strides[-1],
        b.strides[-2], b.strides[-1], 0 if bias is None else bias.strides[0],
        BLOCK_M=tiles.block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, GROUP=8, SPLIT=split, EVEN_K=k % tiles.block_k == 0,
        A_M1=a.strides[-2] == 1, A_K1=a.strides[-1] == 1, B_K1=b.strides[-2] == 1, B_N1=b.strides[-1] == 1,
        BIAS=bias is not None and split == 1, INTEGER=acc.is_int(), PRECISION=dot_precision(), ACC=acc,
        num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    if split > 1:
        assert isinstance(into, CudaArray)
        sum_parts(into, c, bias)


# ---------------------------------------------------------------- the op


def shape(a: Any, b: Any) -> Spec:
    given = f"matmul: a {tuple(a.shape)} @ b {tuple(b.shape)}"
    if not a.shape or not b.shape:
        raise ShapeError(f"{given}: a 0-dimensional operand has no rows or columns; multiply with * instead")
    if a.dtype != b.dtype:
        raise DTypeError(
            f"matmul: a {dtypes.of(a.dtype).name} @ b {dtypes.of(b.dtype).name}: the element types differ; cast one with .to(...)"
        )
    if dtypes.of(a.dtype).kind in ("bool", "float8"):
        raise DTypeError(f"matmul: a {dtypes.of(a.dtype).name}: products of this type are not defined; cast with .to(...) first")
    if a.shape[-1] != b.shape[-2 if len(b.shape) > 1 else 0]:
        raise ShapeError(f"{given}: a's last size {a.shape[-1]} is not b's first {b.shape[-2 if len(b.shape) > 1 else 0]}")
    batch = broadcast("matmul", tuple(a.shape[:-2]), tuple(b.shape[:-2]), labels=("a's batch", "b's batch"))
    rows = tuple(a.shape[-2:-1]) if len(a.shape) > 1 else ()
    cols = tuple(b.shape[-1:]) if len(b.shape) > 1 else ()
    return Spec(batch + rows + cols, a.dtype)


def _blas_ready(x: np.ndarray) -> np.ndarray:
    """x itself if BLAS can take its last two dims as they lie (numpy otherwise multiplies element by element), else a copy."""
    if x.ndim < 2 or x.size == 0:
        return x
    row, col = x.strides[-2:]
    rows, cols = x.shape[-2:]
    size = x.itemsize
    if (col == size and (row >= size * cols or rows == 1)) or (row == size and (col >= size * rows or cols == 1)):
        return x
    return np.ascontiguousarray(x)


def _integer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integer product: through float64 BLAS where every partial sum is below 2^53 and so exact, else numpy's own loop."""
    if a.size and b.size and a.size * b.shape[-1] > 4096:
        bound = max(abs(int(a.max())), abs(int(a.min()))) * max(abs(int(b.max())), abs(int(b.min()))) * a.shape[-1]
        if bound < 1 << 53:
            return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(a.dtype)
    return np.matmul(a, b)


def blas(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """numpy's matmul, kept on its BLAS road; 16-bit floats through float32, rounded once."""
    if a.dtype.kind in "iu":
        return np.asarray(_integer(a, b))
    if a.dtype.itemsize == 2:
        return np.asarray(np.matmul(a.astype(np.float32), b.astype(np.float32))).astype(a.dtype)
    a, b = _blas_ready(a), _blas_ready(b)
    if b.ndim == 2 and a.ndim > 2:  # one large product instead of one for each batch
        return np.matmul(a.reshape(math.prod(a.shape[:-1]), a.shape[-1]), b).reshape(a.shape[:-1] + b.shape[1:])
    return np.asarray(np.matmul(a, b))


def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """y = a @ b with numpy's rules for one-dimensional operands and batches."""
    return blas(a, b)


def _fold(a: CudaArray) -> CudaArray:
    """a (..., m, k) as (rows, k); a view where the strides allow it."""
    return reshape(a, (math.prod(a.shape[:-1]), a.shape[-1]))


def reshape(x: CudaArray, to: tuple[int, ...]) -> CudaArray:
    """x in another shape, a view where its strides allow one, else a copy."""
    try:
        return x.reshape(to)
    except ShapeError:
        dense = contiguous(x)
        assert isinstance(dense, CudaArray)
        return dense.reshape(to)


def forward(a: CudaArray, b: CudaArray) -> CudaArray:
    spec = shape(a, b)
    c = empty(spec.shape, spec.dtype, a.device)
    assert isinstance(c, CudaArray)
    out = c
    if a.ndim == 1:
        a = a.reshape((1, a.shape[0]))
        out = out.reshape((*out.shape[:-1], 1, out.shape[-1]) if b.ndim > 1 else (1,))
    if b.ndim == 1:
        b = b.reshape((b.shape[0], 1))
        out = out.reshape((*out.shape, 1))
    if b.ndim == 2 and a.ndim > 2:
        a, out = _fold(a), out.reshape((math.prod(out.shape[:-1]), out.shape[-1]))
    batch = out.shape[:-2]
    gemm(_expand(a, batch), _expand(b, batch), out)
    return c


def _expand(x: CudaArray, batch: tuple[int, ...]) -> CudaArray:
    wide = expand(x, batch + x.shape[-2:])
    assert isinstance(wide, CudaArray)
    return wide


# ---------------------------------------------------------------- gradients, once for tensors, device arrays and numpy


class _World(NamedTuple):
    """The four functions the gradient is written in."""

    matmul: Callable[[Any, Any], Any]
    permute: Callable[[Any, tuple[int, ...]], Any]
    reshape: Callable[[Any, tuple[int, ...]], Any]
    sum: Callable[[Any, tuple[int, ...]], Any]


def _swap(w: _World, x: Any) -> Any:
    return w.permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _sum_to(w: _World, x: Any, to: tuple[int, ...]) -> Any:
    """x summed over the batch dims that were broadcast from `to`."""
    lead = x.ndim - len(to)
    dims = tuple(i for i in range(x.ndim) if i < lead or (to[i - lead] == 1 and x.shape[i] != 1))
    return w.reshape(w.sum(x, dims), to) if dims else x


def _grad_a(w: _World, g: Any, b: Any, to: tuple[int, ...]) -> Any:
    """dL/da = g @ b^T."""
    if len(to) == 1:
        if b.ndim == 1:
            return w.reshape(w.matmul(w.reshape(b, (to[0], 1)), w.reshape(g, (1, 1))), to)
        column = w.matmul(b, w.reshape(g, (*g.shape, 1)))  # (..., k, 1)
        return w.reshape(_sum_to(w, column, (to[0], 1)), to)
    if b.ndim == 1:
        return w.matmul(w.reshape(g, (*g.shape, 1)), w.reshape(b, (1, b.shape[0])))
    return _sum_to(w, w.matmul(g, _swap(w, b)), to)


def _grad_b(w: _World, g: Any, a: Any, to: tuple[int, ...]) -> Any:
    """dL/db = a^T @ g; where b has no batch, the batch of a and g joins the summed dimension: one product."""
    if a.ndim == 1:
        if len(to) == 1:
            return w.reshape(w.matmul(w.reshape(a, (to[0], 1)), w.reshape(g, (1, 1))), to)
        return _sum_to(w, w.matmul(w.reshape(a, (a.shape[0], 1)), w.reshape(g, (*g.shape[:-1], 1, g.shape[-1]))), to)
    if len(to) <= 2:
        rows = math.prod(a.shape[:-1])
        flat = w.reshape(a, (rows, a.shape[-1]))
        return w.matmul(_swap(w, flat), w.reshape(g, (rows, *to[1:])))
    return _sum_to(w, w.matmul(_swap(w, a), g), to)


_tensors = _World(
    lambda a, b: ops.matmul(a, b),
    lambda x, dims: ops.permute(x, dims=dims),
    reshaped,
    lambda x, dims: ops.sum(x, dim=dims, keepdim=False),
)
_device = _World(forward, lambda x, dims: x.transpose(dims), reshape, lambda x, dims: registry["sum"].forward(x, dim=dims, keepdim=False))  # type: ignore[misc]
_host = _World(
    reference,
    lambda x, dims: x.transpose(dims),
    lambda x, to: x.reshape(to),
    lambda x, dims: registry["sum"].reference(x, dim=dims, keepdim=False),
)


def rule_a(g: Any, b: Any, a_shape: tuple[int, ...]) -> Any:
    return _grad_a(_tensors, g, b, a_shape)


def rule_b(g: Any, a: Any, b_shape: tuple[int, ...]) -> Any:
    return _grad_b(_tensors, g, a, b_shape)


def backward_a(g: CudaArray, b: CudaArray, a_shape: tuple[int, ...]) -> CudaArray:
    return _grad_a(_device, g, b, a_shape)


def backward_b(g: CudaArray, a: CudaArray, b_shape: tuple[int, ...]) -> CudaArray:
    return _grad_b(_device, g, a, b_shape)


def reference_backward_a(g: np.ndarray, b: np.ndarray, a_shape: tuple[int, ...]) -> np.ndarray:
    return _grad_a(_host, g, b, a_shape)


def reference_backward_b(g: np.ndarray, a: np.ndarray, b_shape: tuple[int, ...]) -> np.ndarray:
    return _grad_b(_host, g, a, b_shape)


def samples(rng: np.random.Generator) -> list[Sample]:
    def x(*size: int) -> np.ndarray:
        return rng.standard_normal(size)

    return [
        Sample(x(3, 4), x(4, 5)),
        Sample(x(4, 3).T, x(5, 4).T),  # both transposed
        Sample(x(17, 35), x(35, 18)),  # several tiles, several steps along k, k not a multiple of the step
        Sample(rng.random((2, 261)), rng.random((261, 3))),  # k split over programs; no cancellation in the long sums
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
    ]


def sizes(rng: np.random.Generator) -> list[Sample]:
    def x(*size: int) -> np.ndarray:
        return rng.standard_normal(size)

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
    "matmul", reference, shape=shape, forward=forward, rule=(rule_a, rule_b), backward=(backward_a, backward_b),
    reference_backward=(reference_backward_a, reference_backward_b), promote="same", dtypes=(*FLOATS, "int8", "int32", "int64"),
    samples=samples, sizes=sizes, work=work, doc="Matrix product a @ b, numpy's rules for vectors and batches.",
)  # fmt: skip
