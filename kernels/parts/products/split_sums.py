"""The sum over the parts of a split product, with its bias and the row sums that came with it."""

from __future__ import annotations

import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.kernels.parts.configs.spaces import numbers_space
from tritensor.kernels.parts.launch_rules import cdiv, config_of
from tritensor.kernels.parts.products.epilogue import NOTHING, Epilogue, Separate, apply_epilogue
from tritensor.ops.array import CudaArray
from tritensor.ops.tuning.tunables import powers, tunable

tunable("sum_parts", int, numbers_space, powers)
WIDE = 1 << 18  # results from which a program takes four to a thread: 16 bytes of each part at a time


# c[i] = sum_p parts[p, i] + bias[(i / inner) mod n] with its epilogue, and what follows the `size` elements of c goes to sums: always added in the same order
@triton.jit(do_not_specialize=["n", "bias_n"])
def _sum_parts_kernel(
    parts, c, bias, sums, more, size, extra, stride, inner, n, bias_n,
    SPLIT: tl.constexpr, BIAS: tl.constexpr, SUMS: tl.constexpr, STEPS: tl.constexpr, KINDS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < (size + extra if SUMS else size)
    total = tl.load(parts + at, mask=inside, other=0)
    for p in range(1, SPLIT):
        total += tl.load(parts + p * stride.to(tl.int64) + at, mask=inside, other=0)
    if SUMS:
        tl.store(sums + (at - size), total.to(sums.dtype.element_ty), mask=inside & (at >= size))
        inside = at < size
    if BIAS:
        total += tl.load(bias + (at // inner % n) * bias_n, mask=inside, other=0).to(total.dtype)
    if STEPS is not None:
        total = apply_epilogue(total, (0, at, 0, at // n, at % n), (inside, inside, inside), more, STEPS, KINDS, c.dtype.element_ty)
    tl.store(c + at, total.to(c.dtype.element_ty), mask=inside)


def sum_parts(
    parts: CudaArray, c: CudaArray, bias: CudaArray | None = None, inner: int = 1, sums: CudaArray | None = None,
    finish: Epilogue | Separate = NOTHING,
) -> None:  # fmt: skip
    """c = parts.sum(0) + bias with its epilogue, for parts (split, c.size or more), c without gaps; bias changes every `inner` elements of its memory.

    With `sums` a part goes on behind the elements of c with as many as sums has, which are summed into it.
    """
    block = config_of("sum_parts", (c.size, c.dtype), 1024 if c.size >= WIDE else 256)
    extra = 0 if sums is None else sums.size
    end = finish.given(c)
    launch(
        _sum_parts_kernel, (cdiv(c.size + extra, block),), parts, c, bias, sums, end.more, c.size, extra, parts.strides[0], inner,
        c.shape[-1] if bias is None else bias.shape[0], 0 if bias is None else bias.strides[0],
        SPLIT=parts.shape[0], BIAS=bias is not None, SUMS=sums is not None, STEPS=end.steps, KINDS=end.kinds, BLOCK=block,
    )  # fmt: skip
