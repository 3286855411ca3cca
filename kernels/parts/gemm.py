"""Matrix product c = a @ b + bias: the kernel with its launch, any strides, float32 accumulation, split k; and numpy's, kept on BLAS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.cuda.runtime.active import runtime
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.configs.spaces import tiles_problem, tiles_space
from tritensor.kernels.parts.copying import copied
from tritensor.kernels.parts.launch_rules import Tiles, cdiv, config_of
from tritensor.kernels.parts.products.epilogue import NOTHING, PLAIN, Epilogue, Separate, apply_epilogue
from tritensor.kernels.parts.products.rules import beside_an_epilogue, product_tiles
from tritensor.kernels.parts.products.split_sums import sum_parts as sum_parts
from tritensor.kernels.parts.products.tma_operands import Batch, multiply_described, padded, takes_descriptors
from tritensor.kernels.parts.tapes.tape import Tape
from tritensor.kernels.parts.view_arithmetic import merge_axes
from tritensor.llvm import products
from tritensor.ops.array import CudaArray
from tritensor.ops.matmul_precision import dot_precision
from tritensor.ops.tuning.tunables import tunable

tunable("matmul", Tiles, tiles_space, tiles_problem)
COPIED = (
    256  # rows of a result from which a transposed float32 operand is copied first: 8 bytes of memory against 256 multiply-adds and more
)


@triton.jit
def multiply_add(a, b, acc, INTEGER: tl.constexpr, PRECISION: tl.constexpr):
    """acc + a @ b for one tile; tensor cores have no exact product for wide integers, so those are multiplied and summed."""
    if INTEGER:
        acc += tl.sum(a.to(acc.dtype)[:, :, None] * b.to(acc.dtype)[None, :, :], 1)  # (m, k, n) -> (m, n)
    else:
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=acc.dtype)
    return acc


# c[i, j] = sum_k a[i, k] b[k, j] + bias[j], with its epilogue, and sums[i] = sum_k a[i, k], for each batch; tiles of one group of rows run
# together, so that b stays in the cache
@triton.jit(do_not_specialize=["batches", "sizes", "bias_n"])
def _matmul_kernel(
    a, b, c, bias, sums, m, n, k, k_part, c_part, batches, sizes, a_batch, b_batch, a_m, a_k, b_k, b_n, bias_n, more,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, EVEN_K: tl.constexpr,
    A_M1: tl.constexpr, A_K1: tl.constexpr, B_K1: tl.constexpr, B_N1: tl.constexpr,
    BIAS: tl.constexpr, SUMS: tl.constexpr, INTEGER: tl.constexpr, PRECISION: tl.constexpr, ACC: tl.constexpr,
    STEPS: tl.constexpr, KINDS: tl.constexpr,
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
    HALF: tl.constexpr = a.dtype.element_ty.primitive_bitwidth == 16
    total = tl.zeros((BLOCK_M, (16 if HALF else BLOCK_K) if SUMS else 1), dtype=ACC)
    stop = min(start + k_part, k)
    for at in range(start, stop, BLOCK_K):
        if EVEN_K:
            a_tile = tl.load(a_at)
            b_tile = tl.load(b_at)
        else:
            a_tile = tl.load(a_at, mask=(step < stop - at)[None, :], other=0)
            b_tile = tl.load(b_at, mask=(step < stop - at)[:, None], other=0)
        acc = multiply_add(a_tile, b_tile, acc, INTEGER, PRECISION)
        if SUMS:
            total = tl.dot(a_tile, tl.full((BLOCK_K, 16), 1.0, a_tile.dtype), total) if HALF else total + a_tile.to(ACC)
        a_at += tl.full((), BLOCK_K, tl.int64) * a_step
        b_at += tl.full((), BLOCK_K, tl.int64) * b_step
    if BIAS:
        acc += tl.load(bias + (cols % n) * bias_n).to(ACC)[None, :]
    if SUMS:
        found = tl.sum(tl.where(tl.arange(0, 16)[None, :] == 0, total, 0) if HALF else total, 1)  # of 16 bits the columns are alike
        tl.store(sums + part.to(tl.int64) * c_part + rows, found.to(sums.dtype.element_ty), mask=(rows < m) & (tile_n == 0))
    first = part.to(tl.int64) * c_part if SUMS else outer.to(tl.int64) * m * n
    if STEPS is not None:
        at = (first, rows.to(tl.int64)[:, None] * n, cols[None, :], (outer.to(tl.int64) * m + rows)[:, None], cols[None, :])
        masks = ((rows < m)[:, None], (cols < n)[None, :], (rows < m)[:, None] & (cols < n)[None, :])
        acc = apply_epilogue(acc, at, masks, more, STEPS, KINDS, c.dtype.element_ty)
    c_at = c + first + rows.to(tl.int64)[:, None] * n + cols[None, :]
    tl.store(c_at, acc.to(c.dtype.element_ty), mask=(rows < m)[:, None] & (cols < n)[None, :])


def dot_accumulator(dtype: np.dtype) -> tuple[np.dtype, tl.dtype]:
    """The type products are summed in: float32 for 16-bit floats, at least 32 bits for integers (exact modulo their width)."""
    if dtype.kind in "iub" or not dtypes.is_float(dtype):
        return (np.dtype(np.int64), tl.int64) if dtype.itemsize == 8 else (np.dtype(np.int32), tl.int32)
    return (np.dtype(np.float64), tl.float64) if dtype.itemsize == 8 else (np.dtype(np.float32), tl.float32)


def _collapse(shape: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Batch sizes and strides of both operands with runs that are dense in both merged, innermost first."""
    sizes, (sa, sb) = merge_axes(shape, (a, b))
    return sizes[::-1] or (1,), sa[::-1] or (0,), sb[::-1] or (0,)


def gemm(
    a: CudaArray, b: CudaArray, c: CudaArray, bias: CudaArray | None = None, whole: bool = False, sums: CudaArray | None = None,
    finish: Epilogue | Separate = NOTHING,
) -> None:  # fmt: skip
    """c = a @ b + bias with its epilogue, for a (..., m, k), b (..., k, n) whose batch dims are c's already, c C-ordered, bias (n,). `whole`: in one
    launch, k unsplit.

    With `sums` (m,), which goes with no batch, the sums of a's rows are made of what the product reads anyway.
    """
    m, k = a.shape[-2:]
    n = b.shape[-1]
    batches = math.prod(c.shape[:-2])
    if c.size == 0:
        return
    sizes, a_batch, b_batch = _collapse(c.shape[:-2], a.strides[:-2], b.strides[:-2])
    if k and (bias is None or bias.strides[0] == 1 or n == 1) and takes_descriptors(a):
        a, b = (a, b) if whole else (padded(a, n), padded(b, m))
        batch = Batch(sizes[0], a_batch[0], b_batch[0]) if len(sizes) == 1 else None
        if multiply_described(a, b, c, batch, bias, whole, sums, finish):
            return
    if not whole and _across(b, m):
        gemm(a, copied(b), c, bias, whole, sums, finish)
        return
    per_access = 16 // a.itemsize  # elements in the widest access
    aligned = all(s % per_access == 0 or s == 1 for s in (*a.strides[-2:], *b.strides[-2:])) and k % per_access == 0 and n % per_access == 0
    key = (m, n, k, batches, a.dtype, aligned)
    processors = runtime().properties(c.device.index or 0).multi_processor_count
    end = finish.given(c)
    rule = product_tiles(*key, processors, whole, sums is not None or bool(finish.form))
    tiles = config_of("matmul", (*key, "whole") if whole else key, rule)
    if end.product is not None:
        tiles = beside_an_epilogue(tiles, a.dtype)
    stored, acc = dot_accumulator(a.dtype)
    k_part = cdiv(cdiv(k, tiles.block_k), 1 if whole else tiles.split) * tiles.block_k
    split = max(cdiv(k, k_part), 1) if k else 1
    into, row_sums = c, sums
    c_part = c.size if sums is None else 16 * cdiv(c.size + m, 16)
    if split > 1:  # each part: the elements of c, then the row sums
        into = allocate((split, c_part), stored, c)
        row_sums = None if sums is None else into.as_strided((split, m), (c_part, 1), c.size)
    if split > 1:
        end = PLAIN
    launch(
        _matmul_kernel, (cdiv(m, tiles.block_m) * cdiv(n, tiles.block_n) * batches * split,),
        a, b, into, bias, row_sums, m, n, k, k_part, c_part, batches, sizes, a_batch, b_batch,
        a.strides[-2], a.strides[-1], b.strides[-2], b.strides[-1], 0 if bias is None else bias.strides[0], end.more,
        BLOCK_M=tiles.block_m, BLOCK_N=tiles.block_n, BLOCK_K=tiles.block_k, GROUP=tiles.group, EVEN_K=k % tiles.block_k == 0,
        A_M1=a.strides[-2] == 1, A_K1=a.strides[-1] == 1, B_K1=b.strides[-2] == 1, B_N1=b.strides[-1] == 1,
        BIAS=bias is not None and split == 1, SUMS=sums is not None, INTEGER=acc.is_int(), PRECISION=dot_precision(), ACC=acc,
        STEPS=end.steps, KINDS=end.kinds,
        num_warps=tiles.warps, num_stages=tiles.stages,
    )  # fmt: skip
    if split > 1:
        sum_parts(into, c, bias, sums=sums, finish=finish)


def run_product(
    a: CudaArray, b: CudaArray, bias: CudaArray | None, tape: Tape, inputs: Sequence[CudaArray], numbers: Sequence[Any], outs: Sequence[CudaArray]
) -> None:  # fmt: skip
    """Run a tape over a product with its bias, rounded to the product's type, in the product's own launch: the bits of the product and the steps apart.

    Args:
        a, b, bias: as gemm takes them.
        tape: one without folds; its value 0 is the product, of the type that the product by itself has. Its stores are values of steps, or the product.
        inputs: arrays for its other inputs, of any strides, that broadcast to the outs' shape; numbers: as kernels get them (`scalar` in
            parts/elementwise.py).
        outs: C-ordered arrays of one shape that overlap nothing, one for each store and of its type. The shape is the product's (..., m, n), its
            dimensions before the last in any other cut; of a product of one column it may be without the last.
    Raises ShapeError for outs of another shape, ArgumentError for a tape with folds.
    """
    c = (*a.shape[:-1], b.shape[-1])
    if tape.folds:
        raise ArgumentError(
            f"product: the tape of {len(tape.steps)} steps folds rows; a product's epilogue takes formulas alone: cut it there"
        )
    if any([x.shape != outs[0].shape or not x.is_contiguous() or x.size != math.prod(c) for x in outs]):
        raise ShapeError(
            f"product: results {[(x.shape, x.strides) for x in outs]} of a product of shape {c}; give arrays of that shape in C order"
        )
    gemm(a, b, outs[0].reshape(c), bias, finish=Separate(tape, tuple(inputs), tuple(numbers), tuple(outs)))


def _across(b: CudaArray, rows: int) -> bool:
    """Whether b is to be copied into rows: float32 in full precision, of which the lanes of a warp read the same column of k from shared memory, each
    from a row of its own: all from the same four banks, where one of two products' time goes. A copy costs as much as `COPIED` rows of the result."""
    return (
        b.itemsize == 4
        and dtypes.is_float(b.dtype)
        and dot_precision() == "ieee"
        and b.strides[-2] == 1
        and b.strides[-1] > 1
        and rows >= COPIED
    )


# On the CPU.
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


_PIECE = (1 << 22) - 1
SMALL = 4096  # elements of a matrix that numpy may take as it lies


def _integer(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Integer product: through float64 BLAS where every partial sum is below 2^53 and so exact, else numpy's own loop."""
    if a.size and b.size and a.size * b.shape[-1] > 4096:
        bound = max(abs(int(a.max())), abs(int(a.min()))) * max(abs(int(b.max())), abs(int(b.min()))) * a.shape[-1]
        if bound < 1 << 53:
            return products.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(a.dtype)
        if a.dtype.itemsize >= 4 and a.shape[-1] < 512:
            return _by_pieces(a, b)
    return np.matmul(a, b)


def _by_pieces(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a @ b modulo the type's width: of pieces of 22 bits, whose sums of fewer than 512 products are below 2^53, those that reach into the width."""
    bits = 8 * a.dtype.itemsize
    pieces = [
        [((x.astype(np.int64).view(np.uint64) >> np.uint64(s)) & np.uint64(_PIECE)).astype(np.float64) for s in range(0, bits, 22)]
        for x in (a, b)
    ]
    total: np.ndarray | None = None
    for i, left in enumerate(pieces[0]):
        for j, right in enumerate(pieces[1][: -(-bits // 22) - i]):
            part = products.matmul(left, right).astype(np.uint64) << np.uint64(22 * (i + j))
            total = part if total is None else np.add(total, part, out=total)
    assert total is not None
    return total.view(np.int64).astype(a.dtype)


def blas(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """numpy's matmul, kept on BLAS; 16-bit floats through float32, rounded once."""
    # of small matrices and vectors numpy's older function is there in a third of the time; those that lie with gaps it copies itself
    if a.dtype.char in "fd" and a.ndim < 3 and b.ndim < 3 and a.size <= SMALL and b.size <= SMALL:
        return np.asarray(a.dot(b))
    if a.dtype.kind in "iu":
        return np.asarray(_integer(a, b))
    if a.dtype.itemsize == 2:
        return np.asarray(products.matmul(a.astype(np.float32), b.astype(np.float32))).astype(a.dtype)
    a, b = _blas_ready(a), _blas_ready(b)
    if b.ndim == 2 and a.ndim > 2:  # one large product instead of one for each batch
        return products.matmul(a.reshape(math.prod(a.shape[:-1]), a.shape[-1]), b).reshape(a.shape[:-1] + b.shape[1:])
    return np.asarray(products.matmul(a, b) if a.ndim > 1 and b.ndim > 1 else np.matmul(a, b))
