"""An op with kernels of its own, whole, as any package may have it: y = x / sqrt(mean(x^2) + eps) * weight, over the last dimension.

`python -m tritensor.testing examples/row_rms_norm.py` asks it all questions; CONTRIBUTING.md walks through it, docs/kernels.md says more of each part.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import triton
import triton.language as tl

import tritensor as tt
from tritensor.kernels.parts import maths
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order
from tritensor.kernels.parts.reduction import ReductionFunctions, add, fold, value, zero

NAME = "row_rms_norm"
LARGEST = 8192  # elements of a row that a program holds in registers; a longer one is walked in tiles of so many
PROGRAMS = 264  # partial sums of the weight's gradient: two programs for each multiprocessor of the largest GPU
ROWS, COLUMNS = 16, 128  # the tile that such a program adds up at a time


# --- Triton: a program for each row; sums in float32 (in float64 for float64), one rounding at each store


@triton.jit
def _tile(p, row, col, n, KIND: tl.constexpr):
    """Elements `col` of one row of a C-ordered (rows, n), 0 beyond its end."""
    return tl.load(p + row * n + col, mask=col < n, other=0.0).to(KIND)


# y = x rstd w, rstd = 1 / sqrt(mean(x^2) + eps)
@triton.jit
def _forward_kernel(x, weight, y, rstds, n, eps, KIND: tl.constexpr, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # row * n may pass 2^31
    col = tl.arange(0, BLOCK)
    if WHOLE:
        v = _tile(x, row, col, n, KIND)  # (BLOCK,)
        rstd = maths.rsqrt(maths.div(tl.sum(v * v, axis=0), n) + eps.to(KIND))
        w = tl.load(weight + col, mask=col < n, other=0.0).to(KIND)
        tl.store(y + row * n + col, (v * rstd * w).to(y.dtype.element_ty), mask=col < n)
    else:
        squares = tl.zeros((BLOCK,), KIND)
        for start in range(0, n, BLOCK):
            v = _tile(x, row, start + col, n, KIND)
            squares += v * v
        rstd = maths.rsqrt(maths.div(tl.sum(squares, axis=0), n) + eps.to(KIND))
        for start in range(0, n, BLOCK):
            at = start + col
            w = tl.load(weight + at, mask=at < n, other=0.0).to(KIND)
            tl.store(y + row * n + at, (_tile(x, row, at, n, KIND) * rstd * w).to(y.dtype.element_ty), mask=at < n)
    tl.store(rstds + row, rstd)


# dx = rstd (u - h mean(u h)), with u = g w and h = x rstd
@triton.jit
def _backward_kernel(g, x, weight, rstds, dx, n, KIND: tl.constexpr, WHOLE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    col = tl.arange(0, BLOCK)
    rstd = tl.load(rstds + row)
    if WHOLE:
        h = _tile(x, row, col, n, KIND) * rstd  # (BLOCK,)
        u = _tile(g, row, col, n, KIND) * tl.load(weight + col, mask=col < n, other=0.0).to(KIND)
        along = maths.div(tl.sum(u * h, axis=0), n)
        tl.store(dx + row * n + col, ((u - h * along) * rstd).to(dx.dtype.element_ty), mask=col < n)
    else:
        products = tl.zeros((BLOCK,), KIND)
        for start in range(0, n, BLOCK):
            at = start + col
            u = _tile(g, row, at, n, KIND) * tl.load(weight + at, mask=at < n, other=0.0).to(KIND)
            products += u * _tile(x, row, at, n, KIND) * rstd
        along = maths.div(tl.sum(products, axis=0), n)
        for start in range(0, n, BLOCK):
            at = start + col
            h = _tile(x, row, at, n, KIND) * rstd
            u = _tile(g, row, at, n, KIND) * tl.load(weight + at, mask=at < n, other=0.0).to(KIND)
            tl.store(dx + row * n + at, ((u - h * along) * rstd).to(dx.dtype.element_ty), mask=at < n)


# dw = sum over rows of g x rstd: here the sums of every parts-th block of rows, without atomics, so that each run adds in the same order
@triton.jit(do_not_specialize=["rows", "parts"])
def _weight_kernel(g, x, rstds, sums, rows, n, parts, KIND: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    part = tl.program_id(0)
    col = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((ROWS, COLUMNS), KIND)
    for start in range(part * ROWS, rows, parts * ROWS):
        row = (start + tl.arange(0, ROWS)).to(tl.int64)
        inside = (row < rows)[:, None] & (col < n)[None, :]
        at = row[:, None] * n + col[None, :]  # (ROWS, COLUMNS)
        h = tl.load(x + at, mask=inside, other=0.0).to(KIND) * tl.load(rstds + row, mask=row < rows, other=0.0)[:, None]
        total += tl.load(g + at, mask=inside, other=0.0).to(KIND) * h
    tl.store(sums + part.to(tl.int64) * n + col, tl.sum(total, axis=0), mask=col < n)


# --- what launches them: Python that looks at shapes and types alone, never at values


def _kept(dtype: np.dtype) -> np.dtype:
    """The type that sums are kept in."""
    return np.dtype(np.float64 if dtype == np.float64 else np.float32)


class RowTile(NamedTuple):
    """Elements of a row that a program holds at a time, and its warps."""

    block: int
    warps: int


def _default(n: int) -> RowTile:
    """The tile where nothing has been tuned: a row whole where it fits, 16 elements to a thread."""
    block = min(triton.next_power_of_2(max(n, 1)), LARGEST)
    return RowTile(block, min(max(block // 512, 1), 16))


def _configs(key: tuple[Any, ...]) -> list[RowTile]:
    """What `tritensor tune` tries for rows of n."""
    default = _default(key[0])
    sizes = {default.block, max(default.block // 2, 16), max(default.block // 4, 16)}
    return [RowTile(b, w) for b in sorted(sizes) for w in (1, 2, 4, 8, 16) if b <= 1024 * w and (w == 1 or b >= 64 * w)]


def _how(n: int, dtype: np.dtype) -> dict[str, Any]:
    """Constexprs and warps for rows of n: the tile that is forced, tuned for this GPU, or the rule's."""
    tile = tt.tuning.config_of("row_rms_norm", (n, dtype), _default(n))
    kind = tl.float64 if dtype == np.float64 else tl.float32
    return {"KIND": kind, "WHOLE": n <= tile.block, "BLOCK": tile.block, "num_warps": tile.warps}


def _forward(x: Any, weight: Any, *, eps: float = 1e-6) -> tuple[Any, Any]:
    n = x.shape[-1]
    y, rstds = allocate(x.shape, x.dtype, x), allocate(x.shape[:-1], _kept(x.dtype), x)
    tt.launch(_forward_kernel, (rstds.size,), to_c_order(x), to_c_order(weight), y, rstds, n, np.float64(eps), **_how(n, x.dtype))
    return y, rstds


def _backward(g: Any, x: Any, weight: Any, rstd: Any, needs: tuple[bool, ...]) -> tuple[Any, Any]:
    n, rows, how = x.shape[-1], rstd.size, _how(x.shape[-1], x.dtype)
    g, x = to_c_order(g), to_c_order(x)
    dx = dw = None
    if needs[0]:
        dx = allocate(x.shape, x.dtype, x)
        tt.launch(_backward_kernel, (rows if n else 0,), g, x, to_c_order(weight), rstd, dx, n, **how)
    if needs[1]:
        across = triton.cdiv(n, COLUMNS)
        parts = max(min(PROGRAMS // max(across, 1), triton.cdiv(rows, ROWS)), 1)
        sums, dw = allocate((parts, n), rstd.dtype, x), allocate((n,), weight.dtype, x)
        tt.launch(_weight_kernel, (parts, across), g, x, rstd, sums, rows, n, parts, KIND=how["KIND"], ROWS=ROWS, COLUMNS=COLUMNS)
        fold(ReductionFunctions(value, add, None, zero), (sums,), (0,), (dw,), (rstd.dtype,))
    return dx, dw


# --- plain mathematics: what numpy says, and the gradient in the library's own ops


def _reference(x: np.ndarray, weight: np.ndarray, *, eps: float = 1e-6) -> tuple[np.ndarray, np.ndarray]:
    """x / sqrt(mean(x^2) + eps) * weight, the mean over the last dimension (Zhang and Sennrich 2019)."""
    v, w = x.astype(_kept(x.dtype)), weight.astype(_kept(x.dtype))
    rstd = 1 / np.sqrt((v * v).sum(axis=-1) / v.dtype.type(max(x.shape[-1], 1)) + v.dtype.type(eps))
    return (v * rstd[..., None] * w).astype(x.dtype), rstd


def _rule(g: Any, x: Any, weight: Any, eps: float, needs: tuple[bool, ...]) -> tuple[Any, Any]:
    """From x and not from rstd, which is only there for the backward kernel: so the gradient has a gradient."""
    ops, given = tt.ops, x._array.dtype
    kept, lead = _kept(given), tuple(range(len(x.shape) - 1))
    x, g, w = (ops.cast(t, dtype=kept) for t in (x, g, weight))
    rstd = ops.rsqrt(ops.add(ops.mean(ops.mul(x, x), dim=-1, keepdim=True), eps))
    h, u = ops.mul(x, rstd), ops.mul(g, w)
    dx = dw = None
    if needs[0]:
        away = ops.sub(u, ops.mul(h, ops.mean(ops.mul(u, h), dim=-1, keepdim=True)))
        dx = ops.cast(ops.mul(away, rstd), dtype=given)
    if needs[1]:
        dw = ops.cast(ops.sum(ops.mul(g, h), dim=lead, keepdim=False), dtype=weight._array.dtype)
    return dx, dw


def _shape(x: Any, weight: Any, *, eps: float = 1e-6) -> tuple[tt.Spec, tt.Spec]:
    tt.table.refuse_kind(NAME, x.dtype, ("float",))
    if not x.shape:
        raise tt.ShapeError(f"{NAME}: x is a 0-d tensor and has no last dimension; give at least one")
    if tuple(weight.shape) != tuple(x.shape[-1:]):
        raise tt.ShapeError(
            f"{NAME}: x {tuple(x.shape)} with weight {tuple(weight.shape)}: weight must have x's last size, {tuple(x.shape[-1:])}"
        )
    return tt.Spec(x.shape, x.dtype), tt.Spec(x.shape[:-1], _kept(x.dtype))


# --- what tests, benchmarks and the tuner ask of it


def _scales(g: np.ndarray, inputs: tuple[np.ndarray, ...], attrs: dict[str, Any]) -> tuple[np.ndarray, ...]:
    """What the roundings of the gradients are measured against: dx is a difference, dw a sum, and terms of both may cancel."""
    x, weight = inputs
    rstd = 1 / np.sqrt((x * x).mean(axis=-1, keepdims=True) + attrs.get("eps", 1e-6))
    h, u = np.abs(x) * rstd, np.abs(g * weight)
    lead = tuple(range(x.ndim - 1))
    return (u + h * (u * h).mean(axis=-1, keepdims=True)) * rstd, (np.abs(g) * h).sum(axis=lead)


def _samples(rng: np.random.Generator) -> list[tt.Sample]:
    """A row alone, several, more rows than a tile holds, and a row that is walked in tiles."""
    return [
        tt.Sample(rng.normal(size=7) + 1, 1 + 0.3 * rng.normal(size=7)),
        tt.Sample(rng.normal(size=(3, 4, 16)), rng.normal(size=16), eps=1e-3),
        tt.Sample(rng.normal(size=(40, 5)), rng.normal(size=5)),
        tt.Sample(rng.normal(size=(2, LARGEST + 9)), rng.normal(size=LARGEST + 9)),
    ]


def _sizes(rng: np.random.Generator) -> list[tt.Sample]:
    """(rows, n) worth timing: what a language model normalises, and rows that do not divide by 16."""
    return [
        tt.Sample(rng.standard_normal((r, n)), rng.standard_normal(n)) for r, n in ((8192, 768), (4096, 4096), (4096, 4095), (1024, 32768))
    ]


def _work(x: Any, weight: Any, **attrs: Any) -> tt.Work:
    return tt.Work(5 * x.size, 2 * x.size * x.dtype.itemsize + weight.size * weight.dtype.itemsize)


tt.op(
    NAME, _reference, shape=_shape, forward=_forward, rule=_rule, backward=_backward, outputs=("y", "rstd"), residuals=("rstd",),
    samples=_samples, sizes=_sizes, work=_work, configs=_configs, condition=("measured", _scales), public=True,
)  # fmt: skip
