"""Three small ops as authors write them, and copies of each with one planted error: in a kernel, a rule, a shape rule, between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import triton

from tests.sabotage.planted import op_kernels as kernels
from tritensor.cuda.launch import launch
from tritensor.kernels.parts.allocation import allocate
from tritensor.kernels.parts.copying import to_c_order, write
from tritensor.kernels.parts.filling import filled
from tritensor.ops.array import CudaArray
from tritensor.ops.table import Op, Sample, Spec, normal_dim, op, ops, registry

BLOCK = 64


class Planted(NamedTuple):
    """A record with an error, and the kernel it is in, if it is in one."""

    record: Op
    kernel: Any


PLANTED: dict[str, Callable[[], Planted]] = {}
SOUND: dict[str, Callable[[], Op]] = {}


def registered(name: str, fields: dict[str, Any]) -> Op:
    """A record that has gone through registration, out of the table again."""
    record = op(name, **fields)
    del registry[name]
    return record


def planted(error: str, base: Callable[[], dict[str, Any]], kernel: Any = None, **faults: Any) -> None:
    PLANTED[error] = lambda: Planted(registered(base.__name__, base() | faults), kernel)


def sound(base: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    SOUND[base.__name__] = lambda: registered(base.__name__, base())
    return base


def single(x: np.ndarray) -> np.ndarray:
    """What is computed in: float32 for 16-bit floats."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 else x


# y = scale x^2
def _squares(x: np.ndarray, out: np.ndarray | None = None, *, scale: float = 2.0) -> np.ndarray:
    y = np.asarray(scale * single(x) * single(x)).astype(x.dtype)
    if out is None:
        return y
    out[...] = y
    return out


def squares_by(kernel: Any) -> Callable[..., CudaArray]:
    def forward(x: CudaArray, out: CudaArray | None = None, *, scale: float = 2.0) -> CudaArray:
        y = allocate(x.shape, x.dtype, x)
        launch(kernel, (triton.cdiv(x.size, BLOCK),), to_c_order(x), y, np.float64(scale), x.size, BLOCK=BLOCK)
        if out is None:
            return y
        write(out, y)
        return out

    return forward


def squares_back_by(kernel: Any) -> Callable[..., CudaArray]:
    def backward(g: CudaArray, x: CudaArray, scale: float) -> CudaArray:
        dx = allocate(x.shape, x.dtype, x)
        launch(kernel, (triton.cdiv(x.size, BLOCK),), to_c_order(g), to_c_order(x), dx, np.float64(scale), x.size, BLOCK=BLOCK)
        return dx

    return backward


@sound
def squares() -> dict[str, Any]:
    return {
        "reference": _squares,
        "shape": lambda x, *, scale=2.0: Spec(x.shape, x.dtype),
        "forward": squares_by(kernels.squares),
        "rule": lambda g, x, scale: ops.mul(ops.mul(g, x), 2 * scale),
        "backward": squares_back_by(kernels.squares_back),
        "into": True,
        "samples": lambda rng: [
            *(Sample(rng.standard_normal(s)) for s in ((), (5,), (3, 4), (0, 3), (135,))),
            Sample(rng.standard_normal((2, 3, 4)), scale=-0.7),
            Sample(np.array([np.nan, np.inf, -0.0]), smooth=False),
        ],
    }


def _flat(x: CudaArray, out: CudaArray | None = None, *, scale: float = 2.0) -> CudaArray:
    y = out if out is not None else allocate(x.shape, x.dtype, x)
    launch(kernels.squares, (triton.cdiv(x.size, BLOCK),), x, y, np.float64(scale), x.size, BLOCK=BLOCK)
    return y


def _into_flat(x: CudaArray, out: CudaArray | None = None, *, scale: float = 2.0) -> CudaArray:
    return _flat(to_c_order(x), out, scale=scale)


def _single_result(x: CudaArray, out: CudaArray | None = None, *, scale: float = 2.0) -> CudaArray:
    y = out if out is not None else allocate(x.shape, np.dtype(np.float32), x)
    return _flat(to_c_order(x), y, scale=scale)


def _one_dimension(x: CudaArray, out: CudaArray | None = None, *, scale: float = 2.0) -> CudaArray:
    return _flat(to_c_order(x).reshape((1,)) if not x.shape else to_c_order(x), out, scale=scale)


def _default_scale(x: CudaArray, out: CudaArray | None = None, *, scale: float = 2.0) -> CudaArray:
    return squares_by(kernels.squares)(x, out)


def _strides_of_g(g: CudaArray, x: CudaArray, scale: float) -> CudaArray:
    dx = allocate(x.shape, x.dtype, x)
    launch(kernels.squares_back, (triton.cdiv(x.size, BLOCK),), g, to_c_order(x), dx, np.float64(scale), x.size, BLOCK=BLOCK)
    return dx


def _single_gradient(g: CudaArray, x: CudaArray, scale: float) -> CudaArray:
    dx = allocate(x.shape, np.dtype(np.float32), x)
    launch(kernels.squares_back, (triton.cdiv(x.size, BLOCK),), to_c_order(g), to_c_order(x), dx, np.float64(scale), x.size, BLOCK=BLOCK)
    return dx


planted("strides ignored", squares, kernels.squares, forward=_flat, into=False)
planted("a non-contiguous out ignored", squares, kernels.squares, forward=_into_flat)
planted("the input overwritten", squares, kernels.squares_in_place, forward=squares_by(kernels.squares_in_place))
planted("float32 out whatever comes in", squares, forward=_single_result, into=False)
planted("wrong without dimensions", squares, forward=_one_dimension, into=False)
planted("an attribute's default for the one given", squares, kernels.squares, forward=_default_scale)
planted("reads an element that may not be there", squares, kernels.squares_peeking, forward=squares_by(kernels.squares_peeking))
planted("NaN becomes 0", squares, kernels.squares_without_nan, forward=squares_by(kernels.squares_without_nan))
planted("rounded to 16 bits on the way", squares, kernels.squares_rounded, forward=squares_by(kernels.squares_rounded))
planted("right for whole blocks only", squares, kernels.squares_whole_blocks, forward=squares_by(kernels.squares_whole_blocks))
planted("a wrong rule", squares, rule=lambda g, x, scale: ops.mul(ops.mul(g, x), scale))
planted("a rule that forgets an attribute", squares, rule=lambda g, x: ops.mul(ops.mul(g, x), 4.0))
planted("a rule wrong at second order", squares, rule=lambda g, x, scale: ops.mul(ops.mul(g, x.detach()), 2 * scale))
planted("a rule that detaches what arrives", squares, rule=lambda g, x, scale: ops.mul(ops.mul(g.detach(), x), 2 * scale))
planted("a rule of a rounded value", squares, rule=lambda g, x, scale: ops.mul(ops.mul(g, x.float().to(x.dtype)), 2 * scale))
planted("the gradient's sign", squares, kernels.squares_back_negative, backward=squares_back_by(kernels.squares_back_negative))
planted("the arriving gradient ignored", squares, kernels.squares_back_without_g, backward=squares_back_by(kernels.squares_back_without_g))
planted("strides of the arriving gradient ignored", squares, kernels.squares_back, backward=_strides_of_g)
planted("gradients in float32 whatever comes in", squares, backward=_single_gradient)
planted(
    "a backward that adds to what lies there", squares, kernels.squares_back_adding, backward=squares_back_by(kernels.squares_back_adding)
)
planted("a shape rule with another type", squares, shape=lambda x, *, scale=2.0: Spec(x.shape, np.dtype(np.float32)))


# y = sum x along dim, of a matrix
def _total(x: np.ndarray, *, dim: int, keepdim: bool = False) -> np.ndarray:
    return np.asarray(single(x).sum(dim, keepdims=keepdim)).astype(x.dtype)


def _total_shape(x: Any, *, dim: int, keepdim: bool = False) -> Spec:
    axis = normal_dim("total", dim, len(x.shape))
    return Spec(tuple(1 if d == axis else n for d, n in enumerate(x.shape) if d != axis or keepdim), x.dtype)


def total_by(kernel: Any, axis_of: Callable[[int], int] = lambda dim: dim % 2, keeps: bool | None = None) -> Callable[..., CudaArray]:
    def forward(x: CudaArray, *, dim: int, keepdim: bool = False) -> CudaArray:
        axis = axis_of(dim)
        y = allocate(_total_shape(x, dim=axis, keepdim=keepdim if keeps is None else keeps).shape, x.dtype, x)
        rows, columns = x.shape[1 - axis], x.shape[axis]
        launch(kernel, (rows,), x, y, columns, x.strides[1 - axis], x.strides[axis], BLOCK=16)
        return y

    return forward


def _empty_unwritten(x: CudaArray, *, dim: int, keepdim: bool = False) -> CudaArray:
    if not x.size:
        return allocate(_total_shape(x, dim=dim, keepdim=keepdim).shape, x.dtype, x)
    return total_by(kernels.total)(x, dim=dim, keepdim=keepdim)


def _one_is_a_view(x: CudaArray, *, dim: int, keepdim: bool = False) -> CudaArray:
    if x.shape[dim] == 1:
        return x.reshape(_total_shape(x, dim=dim, keepdim=keepdim).shape) if keepdim or x.strides[dim % 2 - 1] else x
    return total_by(kernels.total)(x, dim=dim, keepdim=keepdim)


def _total_rule(g: Any, x_shape: tuple[int, ...], dim: int, keepdim: bool) -> Any:
    return (g if keepdim else g.unsqueeze(dim)).expand(x_shape)


def _total_back(g: CudaArray, x_shape: tuple[int, ...], dim: int, keepdim: bool) -> CudaArray:
    dx = allocate(x_shape, g.dtype, g)
    axis, flat = dim % 2, to_c_order(g)
    launch(kernels.total_back, (x_shape[1 - axis],), flat, dx, x_shape[axis], dx.strides[1 - axis], dx.strides[axis], BLOCK=16)
    return dx


@sound
def total() -> dict[str, Any]:
    return {
        "reference": _total,
        "shape": _total_shape,
        "forward": total_by(kernels.total),
        "rule": _total_rule,
        "backward": _total_back,
        "condition": "absolute",
        "samples": lambda rng: [
            Sample(rng.standard_normal((5, 7)), dim=1),
            Sample(rng.standard_normal((5, 7)), dim=0, keepdim=True),
            Sample(rng.standard_normal((3, 40)), dim=-1),
            Sample(rng.standard_normal((4, 1)), dim=1, keepdim=True),
            Sample(rng.standard_normal((3, 0)), dim=1),
            Sample(rng.uniform(0.5, 1.5, (6, 400)), dim=1),
        ],
    }


planted("the wrong axis", total, kernels.total, forward=total_by(kernels.total, axis_of=lambda dim: 1))
planted("keepdim ignored", total, forward=total_by(kernels.total, keeps=False))
planted("a shape rule that forgets keepdim", total, shape=lambda x, *, dim, keepdim=False: _total_shape(x, dim=dim))
planted("only the first block summed", total, kernels.total_first_block, forward=total_by(kernels.total_first_block))
planted("a sum kept in 16 bits", total, kernels.total_rounding, forward=total_by(kernels.total_rounding))
planted("the tail counted twice", total, kernels.total_tail_twice, forward=total_by(kernels.total_tail_twice))
planted("no other in a sum", total, kernels.total_without_other, forward=total_by(kernels.total_without_other))
planted("nothing written for empty rows", total, forward=_empty_unwritten)
planted("a view where a copy is due", total, forward=_one_is_a_view)
planted("a rule that forgets keepdim", total, rule=lambda g, x_shape, dim: g.expand(x_shape))


# y = x b, a row for all rows
def _rows(x: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (single(x) * single(b)).astype(x.dtype)


def rows_by(kernel: Any, keeps: bool = False) -> Callable[..., CudaArray]:
    kept: dict[Any, CudaArray] = {}

    def forward(x: CudaArray, b: CudaArray) -> CudaArray:
        y = allocate(x.shape, x.dtype, x)
        if keeps:
            y = kept.setdefault((x.shape, x.dtype), y)
        launch(kernel, (x.shape[0],), to_c_order(x), to_c_order(b), y, x.shape[1], BLOCK=16)
        return y

    return forward


def rows_back_by(kernel: Any, zeroed: bool = True, swapped: bool = False) -> Callable[..., tuple[CudaArray, CudaArray]]:
    def backward(g: CudaArray, x: CudaArray, b: CudaArray) -> tuple[CudaArray, CudaArray]:
        x, b = to_c_order(x), to_c_order(b)
        dx, held = allocate(x.shape, x.dtype, x), np.dtype(np.float64 if x.dtype == np.float64 else np.float32)
        db = filled(b.shape, held, x, 0) if zeroed else allocate(b.shape, held, x)
        launch(kernel, (x.shape[0],), to_c_order(g), *((b, x) if swapped else (x, b)), dx, db, x.shape[1], BLOCK=16)
        return dx, db if held == b.dtype else registry["cast"].forward(db, dtype=b.dtype)  # type: ignore[misc]

    return backward


@sound
def rows() -> dict[str, Any]:
    return {
        "reference": _rows,
        "shape": lambda x, b: Spec(x.shape, x.dtype),
        "forward": rows_by(kernels.rows),
        "rule": lambda g, x, b: (ops.mul(g, b), ops.sum(ops.mul(g, x), dim=(0,), keepdim=False)),
        "backward": rows_back_by(kernels.rows_back),
        "samples": lambda rng: [Sample(rng.standard_normal(s), rng.standard_normal(s[1])) for s in ((4, 5), (9, 30), (5, 5), (1, 7))],
    }


planted("a gradient that is not summed to its input's shape", rows, rule=lambda g, x, b: (ops.mul(g, b), ops.mul(g, x)))
planted(
    "gradients for the inputs in the wrong order",
    rows,
    rule=lambda g, x, b: (ops.mul(g, x), ops.sum(ops.mul(g, b), dim=(0,), keepdim=False)),
)
planted("a kernel that confuses its inputs", rows, kernels.rows_back_confused, backward=rows_back_by(kernels.rows_back_confused))
planted("no gradient for one input", rows, rule=lambda g, x, b: (ops.mul(g, b), None))
planted("a sum over programs without an atomic", rows, kernels.rows_back_racing, backward=rows_back_by(kernels.rows_back_racing))
planted("a sum into memory that nobody zeroed", rows, kernels.rows_back, backward=rows_back_by(kernels.rows_back, zeroed=False))
planted("a gradient 1 % off in 16 bits", rows, kernels.rows_back_biased, backward=rows_back_by(kernels.rows_back_biased))
planted("a result kept from call to call", rows, forward=rows_by(kernels.rows, keeps=True))

WILD = set(PLANTED)  # what follows shows where NaN, infinities or large numbers are put into the samples
planted("NaN taken for 0", rows, kernels.rows_without_nan, forward=rows_by(kernels.rows_without_nan))
planted("an infinity that is clamped", rows, kernels.rows_clamped, forward=rows_by(kernels.rows_clamped))
planted("NaN of one element in its whole row", rows, kernels.rows_spreading, forward=rows_by(kernels.rows_spreading))
WILD = set(PLANTED) - WILD
