"""adam_count: the step counts of Adam on the device, advanced by one, and the numbers of the step that follow from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.array import CudaArray
from tritensor.cuda.launch import launch
from tritensor.errors import ShapeError
from tritensor.kernels.optimizers.steps import check_rate, step_numbers
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.copying import dense, write
from tritensor.table import Sample, Spec, Work, op, refuse_kind

BLOCK = 128


# t = count + 1; scalars = (lr / (1 - b1^t), sqrt(1 - b2^t), 1 - lr decay), in float64
@triton.jit(do_not_specialize=["n"])
def _kernel(counts, scalars, rate, n, lr, beta1, beta2, decay, BLOCK: tl.constexpr):
    i = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)  # (BLOCK,)
    mask = i < n
    t = tl.load(counts + i, mask=mask, other=0).to(tl.float64) + 1
    tl.store(counts + i, t.to(counts.dtype.element_ty), mask=mask)
    zero = tl.zeros((BLOCK,), tl.float64)
    if rate is not None:
        lr = tl.load(rate).to(tl.float64)
    step = maths.div(zero + lr, 1 - maths.pow(zero + beta1, t))
    root = maths.sqrt(1 - maths.pow(zero + beta2, t))
    kind = scalars.dtype.element_ty
    tl.store(scalars + 3 * i, step.to(kind), mask=mask)
    tl.store(scalars + 3 * i + 1, root.to(kind), mask=mask)
    tl.store(scalars + 3 * i + 2, (1 - (zero + lr) * decay).to(kind), mask=mask)


def reference(
    counts: np.ndarray,
    scalars: np.ndarray,
    rate: np.ndarray | None = None,
    *,
    beta1: float,
    beta2: float,
    lr: float = 0.0,
    decay: float = 0.0,
) -> None:
    lr = lr if rate is None else rate.item()
    for i, step in enumerate(counts.tolist()):
        scalars[i] = step_numbers(lr, beta1, beta2, step + 1, decay, True)
    counts += 1


def forward(
    counts: CudaArray, scalars: CudaArray, rate: CudaArray | None = None, *, beta1: float, beta2: float, lr: float = 0.0, decay: float = 0.0
) -> None:
    written = (counts, scalars)
    updated = [dense(x) for x in written]
    number = np.float64
    grid = (triton.cdiv(counts.size, BLOCK),)
    launch(_kernel, grid, *updated, rate, counts.size, number(lr), number(beta1), number(beta2), number(decay), BLOCK=BLOCK)
    for x, y in zip(written, updated, strict=True):
        if y is not x:
            write(x, y)


def shape(counts: Any, scalars: Any, rate: Any = None, *, beta1: float, beta2: float, lr: float = 0.0, decay: float = 0.0) -> Spec:
    if len(counts.shape) != 1 or tuple(scalars.shape) != (counts.shape[0], 3):
        raise ShapeError(f"adam_count: counts {tuple(counts.shape)} and scalars {tuple(scalars.shape)}; they are (n,) and (n, 3)")
    for name, x in (("counts", counts), ("scalars", scalars)):
        refuse_kind("adam_count", x.dtype, ("float",), name)
    check_rate("adam_count", rate)
    return Spec(tuple(counts.shape), counts.dtype)


def samples(rng: np.random.Generator) -> list[Sample]:
    counts = np.array([0.0, 1.0, 6.0, 99.0])
    return [
        Sample(counts, np.zeros((4, 3)), lr=0.01, beta1=0.9, beta2=0.99),
        Sample(counts, np.zeros((4, 3)), lr=0.01, beta1=0.9, beta2=0.99, decay=0.1),
        Sample(counts, np.zeros((4, 3)), np.array(0.25), beta1=0.5, beta2=0.75, decay=0.5),
        Sample(np.arange(150.0), np.zeros((150, 3)), lr=0.01, beta1=0.9, beta2=0.99),
        Sample(np.zeros(0), np.zeros((0, 3)), lr=0.01, beta1=0.9, beta2=0.99),
    ]


def work(counts: Any, scalars: Any, rate: Any = None, **_: Any) -> Work:
    n = counts.shape[0]
    return Work(100 * n, 5 * n * counts.dtype.itemsize)


op(
    "adam_count", reference, shape=shape, forward=forward, samples=samples, work=work, mutates=("counts", "scalars"), differentiable=False,
    dtypes=("float32", "float64"),
    doc="Advance step counts (n,) by one, and write what adam_step takes as `scalars` for each, (n, 3). `rate`, on the device, stands for lr.",
)  # fmt: skip
