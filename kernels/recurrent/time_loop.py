"""Loop over time on both backends: a matrix product and one pass of a formula over windows of rows for each step.

On the GPU each is one launch. On the CPU the formula is machine code where there are many elements (tritensor/llvm/strided_rows.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import triton
import triton.language as tl

from tritensor.cuda.launch import launch
from tritensor.ground import dtypes
from tritensor.kernels.parts import backends
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import convert
from tritensor.kernels.parts.cpu.blocks import SILENT, upcast
from tritensor.kernels.parts.cpu.simd_maths import on_vectors
from tritensor.kernels.parts.filling import filled
from tritensor.kernels.parts.gemm import gemm
from tritensor.kernels.parts.launch_rules import cdiv, next_power_of_2
from tritensor.kernels.recurrent import machine_steps
from tritensor.kernels.recurrent.time_steps import Rows as Rows
from tritensor.llvm import products
from tritensor.llvm.strided_rows import WindowLoop
from tritensor.ops.array import CudaArray
from tritensor.ops.table import registry

_MANY = 256  # elements of all steps from which the way through ctypes pays: numpy takes a dozen calls for each step


Pass = Callable[[int, int], None]  # (first row, number of rows)


class Cell:
    """What happens to each element in one time step: a `@triton.jit` formula of as many values as inputs that returns a tuple."""

    def __init__(self, formula: Any) -> None:
        self.formula = formula
        self.numpy = backends.translate(formula, backends.on_numpy)
        self.machine = WindowLoop(lambda *lanes: backends.translate(formula, on_vectors)(*lanes))


def columns(x: Any, parts: int, moving: bool) -> list[Rows]:
    """The columns of x in so many equal parts."""
    n = x.shape[1] // parts
    return [Rows(x[:, k * n : (k + 1) * n], moving) for k in range(parts)]


def gradient_rows(on: Any, g: Any, state: tuple[int, ...], like: Any) -> Rows:
    """The gradient that arrives at each row of results; where none does, zeros for one step, which serve every step."""
    return Rows(on.zeros(state, like.dtype, like), False) if g is None else Rows(on.with_dense_rows(g), True)


def _step_by_step(
    on: Any, steps: Sequence[tuple[int, int]], a: Rows, b: Any, out: Rows, step: Pass, product_first: bool, bias: Any
) -> None:
    for start, n in steps:
        left, made = (r.x[start : start + n] if r.moving else r.x[:n] for r in (a, out))
        if not product_first:
            step(start, n)
        on.product(left, b, made, bias)
        if product_first:
            step(start, n)


# outs[o][row, col] = FORMULA(ins[i][row, col] for all i)[o]
@triton.jit(do_not_specialize=["rows"])
def _window_kernel(
    ins, outs, in_steps, out_steps, rows, cols, FORMULA: tl.constexpr, COMPUTE: tl.constexpr, ALIGN: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr
):  # fmt: skip
    across = tl.cdiv(cols, BN)
    row = (tl.program_id(0) // across * BM + tl.arange(0, BM)).to(tl.int64)[:, None]  # (BM, 1)
    col = (tl.program_id(0) % across * BN + tl.arange(0, BN))[None, :]  # (1, BN)
    mask = (row < rows) & (col < cols // ALIGN * ALIGN)
    values = ()
    for i in tl.static_range(len(ins)):
        x = tl.load(ins[i] + row * (in_steps[i] // ALIGN * ALIGN) + col, mask=mask, other=0)
        values = values + (x.to(COMPUTE),)  # type: ignore[assignment]
    made = FORMULA(*values)
    for o in tl.static_range(len(outs)):
        tl.store(outs[o] + row * (out_steps[o] // ALIGN * ALIGN) + col, made[o].to(outs[o].dtype.element_ty), mask=mask)


class Gpu:
    """CudaArrays; one launch a product, one a pass."""

    @staticmethod
    def new(shape: tuple[int, ...], dtype: np.dtype, like: CudaArray) -> CudaArray:
        return allocate(shape, dtype, like)

    @staticmethod
    def zeros(shape: tuple[int, ...], dtype: np.dtype, like: CudaArray) -> CudaArray:
        return filled(shape, dtype, like.device, 0)

    @staticmethod
    def copy(x: CudaArray, dtype: np.dtype | None = None) -> CudaArray:
        """A C-ordered copy in memory of its own."""
        y = allocate(x.shape, x.dtype if dtype is None else dtype, x)
        convert(x, y)
        return y

    @staticmethod
    def with_dense_rows(x: CudaArray) -> CudaArray:
        """x, or a copy, with the elements of a row side by side."""
        return x if x.strides[1] == 1 or x.shape[1] == 1 else Gpu.copy(x)

    @staticmethod
    def as_operand(x: CudaArray) -> CudaArray:
        return x  # the kernel takes any strides

    @staticmethod
    def run(name: str, *xs: CudaArray, **attrs: Any) -> CudaArray:
        """Another op's own side."""
        return registry[name].forward(*xs, **attrs)  # type: ignore[misc]

    @staticmethod
    def product(a: CudaArray, b: CudaArray, out: CudaArray, bias: CudaArray | None = None) -> None:
        """out = a @ b + bias."""
        # unsplit: the parts of a split would be another launch in every step, and steps wait for one another
        gemm(a, b, out, bias, whole=True)

    @staticmethod
    def over_time(
        steps: Sequence[tuple[int, int]], a: Rows, b: CudaArray, out: Rows, step: Pass, product_first: bool, bias: CudaArray | None = None
    ) -> None:  # fmt: skip
        """out = a @ b + bias and the pass of each step (first row, number of rows), the product before or behind it."""
        _step_by_step(Gpu, steps, a, b, out, step, product_first, bias)

    @staticmethod
    def weight_gradient(g: CudaArray, states: CudaArray, w: CudaArray) -> CudaArray:
        """g^T @ states over all steps at once, like w: a long sum, which may be split."""
        dw = allocate(w.shape, w.dtype, w)
        gemm(g.transpose((1, 0)), states, dw)
        return dw

    @staticmethod
    def round_to(x: CudaArray, dtype: np.dtype) -> CudaArray:
        return x if x.dtype == dtype else Gpu.copy(x, dtype)

    @staticmethod
    def make_pass(cell: Cell, outs: Sequence[Rows], ins: Sequence[Rows]) -> Pass:
        """The pass of a cell over these matrices."""
        cols = outs[0].x.shape[1]
        in_steps, out_steps = (tuple([r.x.strides[0] for r in rs]) for rs in (ins, outs))
        align = math.gcd(8, cols, *in_steps, *out_steps)  # what all divide by decides how wide accesses may be
        wide = tl.float64 if outs[0].x.itemsize == 8 else tl.float32
        # a warp reads neighbouring elements of a row; short rows are put into one program
        across = min(next_power_of_2(cols), 128)

        def run(start: int, rows: int) -> None:
            given, made = (tuple(r.x[start : start + rows] if r.moving else r.x[:rows] for r in rs) for rs in (ins, outs))
            # some 512 elements to a program: a step has few, and one launch waits for the other
            high = min(max(512 // across, 1), next_power_of_2(rows))
            launch(
                _window_kernel, (cdiv(rows, high) * cdiv(cols, across),), given, made, in_steps, out_steps, rows, cols,
                FORMULA=cell.formula, COMPUTE=wide, ALIGN=align, BM=high, BN=across,
            )  # fmt: skip

        return run


class Cpu:
    """numpy arrays. 16-bit floats are multiplied in float32."""

    @staticmethod
    def new(shape: tuple[int, ...], dtype: np.dtype, like: np.ndarray) -> np.ndarray:
        return np.empty(shape, dtype)

    @staticmethod
    def zeros(shape: tuple[int, ...], dtype: np.dtype, like: np.ndarray) -> np.ndarray:
        return np.zeros(shape, dtype)

    @staticmethod
    def copy(x: np.ndarray, dtype: np.dtype | None = None) -> np.ndarray:
        """A C-ordered copy in memory of its own."""
        return np.array(x, dtype, order="C")

    @staticmethod
    def with_dense_rows(x: np.ndarray) -> np.ndarray:
        """x, or a copy, with the elements of a row side by side."""
        return x if x.strides[1] == x.itemsize and x.strides[0] >= 0 else np.array(x, order="C")

    @staticmethod
    def as_operand(x: np.ndarray) -> np.ndarray:
        """x as the loop multiplies with it: laid out so that every step need not."""
        return np.ascontiguousarray(x, dtypes.accumulator(x.dtype))

    @staticmethod
    def run(name: str, *xs: np.ndarray, **attrs: Any) -> np.ndarray:
        """Another op's own side."""
        return registry[name].cpu(*xs, **attrs)  # type: ignore[no-any-return]

    @staticmethod
    def product(a: np.ndarray, b: np.ndarray, out: np.ndarray, bias: np.ndarray | None = None) -> None:
        """out = a @ b + bias."""
        # numpy has no product of 16-bit floats but one element by element: they are multiplied in float32 and rounded once
        wide = a.dtype.itemsize > 2
        y = products.matmul(
            a if wide else a.astype(np.float32), b if b.dtype.itemsize > 2 else b.astype(np.float32), out=out if wide else None
        )
        if bias is not None:
            y += bias
        if not wide:
            out[...] = y

    @staticmethod
    def over_time(
        steps: Sequence[tuple[int, int]], a: Rows, b: np.ndarray, out: Rows, step: Pass, product_first: bool, bias: np.ndarray | None = None
    ) -> None:  # fmt: skip
        """The same; where machine code does all of it, in one call."""
        if bias is not None or not machine_steps.run(steps, a, b, out, step, product_first):
            _step_by_step(Cpu, steps, a, b, out, step, product_first, bias)

    @staticmethod
    def weight_gradient(g: np.ndarray, states: np.ndarray, w: np.ndarray) -> np.ndarray:
        """g^T @ states over all steps at once, like w."""
        dw = np.empty(w.shape, w.dtype)
        Cpu.product(g.T, states, dw)
        return dw

    @staticmethod
    def round_to(x: np.ndarray, dtype: np.dtype) -> np.ndarray:
        return x.astype(dtype, copy=False)

    @staticmethod
    def make_pass(cell: Cell, outs: Sequence[Rows], ins: Sequence[Rows]) -> Pass:
        """The pass of a cell over these matrices."""
        if outs[0].x.size >= _MANY:  # below it, numpy is done before the addresses are put together
            run = cell.machine.bind([r.x for r in outs], [r.x for r in ins], [r.moving for r in (*outs, *ins)])
            if run is not None:
                return run
        return _in_numpy(cell, outs, ins)


def _in_numpy(cell: Cell, outs: Sequence[Rows], ins: Sequence[Rows]) -> Pass:
    def run(start: int, rows: int) -> None:
        given = [r.x[start : start + rows] if r.moving else r.x[:rows] for r in ins]
        with SILENT():
            made = cell.numpy(*map(upcast, given))
        for r, y in zip(outs, made, strict=True):
            (r.x[start : start + rows] if r.moving else r.x[:rows])[...] = y

    return run
