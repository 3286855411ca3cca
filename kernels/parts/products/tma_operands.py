"""The launch of a product by tensor descriptors, and which operands can be described."""

from __future__ import annotations

from typing import NamedTuple

from tritensor.cuda.compiler.tensor_descriptor import TensorDescriptor
from tritensor.cuda.launch import launch
from tritensor.cuda.runtime.active import runtime
from tritensor.ground import dtypes
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import convert
from tritensor.kernels.parts.launch_rules import cdiv, config_of
from tritensor.kernels.parts.products.descriptor_kernel import _described_matmul_kernel
from tritensor.kernels.parts.products.epilogue import PLAIN, Epilogue, Separate
from tritensor.kernels.parts.products.rules import DescribedTiles, described_tiles
from tritensor.kernels.parts.products.spaces import described_problem, described_space
from tritensor.kernels.parts.products.split_sums import sum_parts
from tritensor.ops.array import CudaArray
from tritensor.ops.tuning.config_choice import doing
from tritensor.ops.tuning.tunables import tunable
from tritensor.ops.tuning.variants import note

tunable("matmul_described", DescribedTiles, described_space, described_problem)
_LONGEST = 1 << 22  # columns of a result that is stored by addresses: offsets within a tile fit 32 bits
FAR = "an operand's rows and columns lie at distances that 16 bytes do not divide; pad them to a multiple of 8"
ODD = "rows of the result whose length in bytes 16 does not divide; pad them to a multiple of 8"
WORTH_PADDING = 1 << 28  # multiply-adds from which an operand that cannot be described is copied first
_FLOAT32 = dtypes.float32.numpy


class Operand(NamedTuple):
    """An operand as it can be described: rows dense, `transposed` where those are columns; batch: as _operand() in descriptor_kernel.py takes it."""

    array: CudaArray
    transposed: bool
    batch: int


class Batch(NamedTuple):
    """Matrices of a batch, and the elements from one to the next of both operands (0: the same one)."""

    size: int
    a: int
    b: int


def takes_descriptors(x: CudaArray) -> bool:
    """Whether the kernel is for such operands: 16-bit floats on GPUs that copy tiles by themselves and multiply them where they lie."""
    if x.itemsize != 2 or not dtypes.is_float(x.dtype):
        return False
    return runtime().capability(x.device.index or 0)[0] in (9, 10)


def operand(x: CudaArray, batch: int, step: int) -> Operand | str:
    """The last two dimensions of x, `batch` times at a distance of `step` elements, as a descriptor takes them; or why none does."""
    unit = 16 // x.itemsize
    if x.pointer % 16:
        return "an operand begins at an address that 16 does not divide; copy it"
    if step % unit or step < 0:
        return "matrices of a batch lie at a distance that 16 bytes do not divide; pad them"
    (rows, cols), (down, right) = x.shape[-2:], x.strides[-2:]
    many = batch > 1 and step > 0
    kind = 0 if batch == 1 else 1 if many else 2
    lead: tuple[int, ...] = () if kind == 0 else (batch,) if many else (1,)
    far: tuple[int, ...] = () if kind == 0 else (step,) if many else (unit * cdiv(rows * cols, unit),)
    for transposed, n, between, along, of in ((False, rows, down, right, cols), (True, cols, right, down, rows)):
        if (along == 1 or of == 1) and (n == 1 or (between > 0 and between % unit == 0)):
            return Operand(x.as_strided((*lead, n, of), (*far, between, 1), 0), transposed, kind)
    return FAR


def padded(x: CudaArray, others: int) -> CudaArray:
    """A matrix as it is, or copied into rows at multiples of 16 bytes, where it has others and is multiplied with so many columns that this pays.

    So lies the gradient of a language model's last layer: rows of 50257 words. Read element by element it would take several times as long as the copy.
    """
    if x.ndim != 2 or x.size * others < WORTH_PADDING or not x.size or not takes_descriptors(x) or isinstance(operand(x, 1, 0), Operand):
        return x
    (rows, cols), unit = x.shape, 16 // x.itemsize
    if x.strides[0] == 1:
        wide = unit * cdiv(rows, unit)
        target = allocate((cols, wide), x.dtype, x).as_strided((rows, cols), (1, wide), 0)
    else:
        wide = unit * cdiv(cols, unit)
        target = allocate((rows, wide), x.dtype, x).as_strided((rows, cols), (wide, 1), 0)
    convert(x, target)
    note(doing()[0] or "matmul", "a copy into padded rows", FAR)
    return target


def multiply_described(
    a: CudaArray, b: CudaArray, c: CudaArray, batch: Batch | None, bias: CudaArray | None, whole: bool, sums: CudaArray | None,
    finish: Epilogue | Separate,
) -> bool:  # fmt: skip
    """Do what gemm() says by descriptors; False, and noted, where the operands cannot be described. `batch` is None where it has several dimensions."""
    op = doing()[0] or "matmul"
    described = c.shape[-1] * c.itemsize % 16 == 0 and c.pointer % 16 == 0 and (c.itemsize == 2 or c.dtype == _FLOAT32)
    why = ""
    if batch is None:
        why = "a batch of several dimensions that do not lie one behind the other; make it contiguous"
    elif not described and c.shape[-1] >= _LONGEST:
        why = ODD
    else:
        left, right = operand(a, batch.size, batch.a), operand(b, batch.size, batch.b)
        if isinstance(left, Operand) and isinstance(right, Operand):
            if not described:
                note(op, "stores by addresses", ODD)
            _launch(left, right, (a.shape[-2], a.shape[-1], b.shape[-1]), c, batch, bias, whole, sums, finish, described)
            return True
        why = left if isinstance(left, str) else str(right)
    note(op, "pointers", why)
    return False


def _launch(
    a: Operand, b: Operand, sizes: tuple[int, int, int], c: CudaArray, batch: Batch,
    bias: CudaArray | None, whole: bool, sums: CudaArray | None, finish: Epilogue | Separate, described: bool,
) -> None:  # fmt: skip
    m, k, n = sizes
    processors = runtime().properties(c.device.index or 0).multi_processor_count
    form = (
        ("t" if a.transposed else "n")
        + ("t" if b.transposed else "n")
        + ("" if described else " odd")
        + (" sums" if sums is not None else "")
        + finish.form
    )
    end = finish.given(c)
    key = (m, n, k, batch.size, c.dtype if end.product is None else end.product, form, *(("whole",) if whole else ()))
    rule = described_tiles(m, n, k, batch.size, processors, whole, described)
    # beside the next tile's loads there is no room for one of float32 results (on sm_100 Triton 3.6 wants 320 KiB), nor for what an epilogue reads
    if c.itemsize > 2 or end.steps is not None:
        rule = rule._replace(flatten=False)
    t = config_of("matmul_described", key, rule)
    if end.product is not None:  # the config is that of the product by itself
        t = t._replace(flatten=False)
    k_part = cdiv(cdiv(k, t.block_k), 1 if whole else t.split) * t.block_k
    split = cdiv(k, k_part)
    into, row_sums, stride = c, sums, 0
    if split > 1:  # each part: the elements of c, then the row sums
        stride = 4 * cdiv(c.size + (0 if sums is None else m), 4)
        into = allocate((split, stride), _FLOAT32, c)
        row_sums = None if sums is None else into.as_strided((split, m), (stride, 1), c.size)
    outer = batch.size * split
    target: CudaArray | TensorDescriptor = into
    if described:  # where rows of c divide by 16 bytes, those of float32 parts do
        shape, strides = ((outer, m, n), (stride if batch.size == 1 and split > 1 else m * n, n, 1)) if outer > 1 else ((m, n), (n, 1))
        block = (t.block_m, t.block_n // t.parts)
        target = TensorDescriptor(into.as_strided(shape, strides, 0), (1, *block) if outer > 1 else block)
    tiles = cdiv(m, t.block_m) * cdiv(n, t.block_n) * outer
    programs = min(tiles, processors * t.resident) if t.resident else tiles
    if split > 1:
        end = PLAIN
    a_block, b_block = (t.block_m, t.block_k), (t.block_k, t.block_n)
    launch(
        _described_matmul_kernel, (programs,), _described(a, a_block), _described(b, b_block), target, bias, row_sums,
        end.more, m, n, k, k_part, batch.size, tiles, programs, stride,
        BLOCK_M=t.block_m, BLOCK_N=t.block_n, BLOCK_K=t.block_k, GROUP=t.group, A_T=a.transposed, B_T=b.transposed, A_BATCH=a.batch, B_BATCH=b.batch,
        BATCHED=outer > 1, SPLIT=split > 1, BIAS=bias is not None and split == 1, SUMS=sums is not None, DESCRIBED=described, PARTS=t.parts,
        FLATTEN=t.flatten, STEPS=end.steps, KINDS=end.kinds, num_warps=t.warps, num_stages=t.stages,
    )  # fmt: skip
    if split > 1:
        sum_parts(into, c, bias, sums=sums, finish=finish)


def _described(x: Operand, block: tuple[int, int]) -> TensorDescriptor:
    shape = block[::-1] if x.transposed else block
    return TensorDescriptor(x.array, (1, *shape) if x.batch else shape)
