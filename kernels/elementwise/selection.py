"""Selection: where, maximum, minimum, clamp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton

from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError, DTypeError
from tritensor.kernels.parts import backends, formula_llvm, maths
from tritensor.kernels.parts.allocation import allocate_result
from tritensor.kernels.parts.cpu.blocks import select, zero_where
from tritensor.kernels.parts.elementwise import backward_of, elementwise, run, work
from tritensor.kernels.parts.float8 import moved_as_bytes
from tritensor.kernels.parts.pointwise_samples import Domain
from tritensor.llvm.loops import MANY, is_contiguous
from tritensor.ops.array import CudaArray
from tritensor.ops.table import FLOATS, Sample, Spec, broadcast, op

_REAL = ("bool", "uint", "int", "float")
_TYPES = (*FLOATS, "int32", "int64", "uint8", "bool")


# y = max(a, b), of which _larger is dy/da and _smaller dy/db; of min(a, b) the other way round. At a tie half of the gradient goes to each
@triton.jit
def _larger(g, a, b):
    return maths.where(a == b, 0.5 * g, maths.where(a < b, maths.zeros(g), g))


@triton.jit
def _smaller(g, a, b):
    return maths.where(a == b, 0.5 * g, maths.where(a > b, maths.zeros(g), g))


def _zero_where(g: np.ndarray, drop: np.ndarray) -> np.ndarray:
    """g with zeros where `drop` is True; of few elements by numpy's where."""
    return np.where(drop, g.dtype.type(0), g) if g.size < MANY else zero_where(g, drop)


def _pick(losing: Callable[..., Any]) -> Callable[..., Any]:
    """The gradient on numpy of the input that loses where losing(a, b)."""

    def gradient(g: np.ndarray, a: Any, b: Any) -> np.ndarray:
        out = _zero_where(g, np.asarray(losing(a, b)))
        tied = np.equal(a, b)
        if np.logical_or.reduce(tied, axis=None):
            out = np.where(tied, g * g.dtype.type(0.5), out)
        return out

    return gradient


def _ties(rng: np.random.Generator) -> list[Sample]:
    a = rng.integers(-2, 3, (4, 5)).astype(np.float64)
    b = rng.integers(-2, 3, (4, 5)).astype(np.float64)
    nans = Sample(np.array([np.nan, 1.0, np.inf, 2.0]), np.array([1.0, np.nan, -np.inf, np.nan]), smooth=False)
    return [Sample(a, b, smooth=False), nans]


_LARGER, _SMALLER = (_larger, _pick(np.less)), (_smaller, _pick(np.greater))
for _name, _formula, _ufunc, _first, _second in (
    ("maximum", maths.maximum, np.maximum, _LARGER, _SMALLER),
    ("minimum", maths.minimum, np.minimum, _SMALLER, _LARGER),
):
    elementwise(
        _name, _formula, (_first[0], _second[0]), _ufunc, promote="same", kinds=_REAL, dtypes=_TYPES, extra=_ties,
        domain=(Domain(-2.0, 2.0, step=0.25), Domain(-1.875, 1.875, step=0.25)), cpu_backward=(_first[1], _second[1]),
    )  # fmt: skip


# y = a where condition else b
@triton.jit
def _where(condition, a, b):
    return maths.where(condition != 0, a, b)


@triton.jit
def _where_a(g, condition):
    return maths.where(condition != 0, g, maths.zeros(g))


@triton.jit
def _where_b(g, condition):
    return maths.where(condition != 0, maths.zeros(g), g)


def _where_type(a: Any, b: Any) -> np.dtype:
    """The common type of two branches, arrays of one type or Python numbers."""
    if hasattr(a, "dtype") and hasattr(b, "dtype"):
        if a.dtype != b.dtype:
            raise DTypeError(f"where: a is {dtypes.of(a.dtype).name}, b is {dtypes.of(b.dtype).name}; cast one of them with .to(...)")
        return a.dtype
    array, number = (a, b) if hasattr(a, "dtype") else (b, a)
    found = dtypes.result_type((a, b), "where")
    if not hasattr(array, "dtype"):
        return found
    dtypes.check_number(found, number, "where")
    if found != array.dtype:
        raise DTypeError(
            f"where: {number!r} does not fit a {dtypes.of(array.dtype).name} tensor; cast the tensor with .to({dtypes.of(found).name!r})"
        )
    return found


def _where_shape(condition: Any, a: Any, b: Any) -> Spec:
    if condition.dtype != np.bool_:
        raise DTypeError(f"where: condition is {dtypes.of(condition.dtype).name}, not bool; compare it, as in where(x != 0, a, b)")
    shapes = [(label, x.shape) for label, x in (("condition", condition), ("a", a), ("b", b)) if hasattr(x, "shape")]
    return Spec(broadcast("where", *[s for _, s in shapes], labels=[label for label, _ in shapes]), _where_type(a, b))


_where_loop = formula_llvm.formula_loop(_where)


def _machine_where(condition: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray | None:
    """The choice among many floats by machine code: numpy's guesses which side comes next, and is wrong half of the time."""
    if dtypes.of(a.dtype).kind != "float":
        return None
    given, shape, order = formula_llvm.to_common_layout((condition, a, b))
    y = np.empty(shape, a.dtype, order) if out is None else out
    return y if y.shape == shape and y.dtype == a.dtype and _where_loop(given, y) else None


def _where_reference(condition: np.ndarray, a: Any, b: Any) -> np.ndarray:
    """a where condition, else b."""
    return np.where(condition, a, b)


def _where_cpu(condition: np.ndarray, a: Any, b: Any, *, out: np.ndarray | None = None) -> np.ndarray:
    whole = np.broadcast(condition, a, b)
    arrays = [x for x in (a, b) if isinstance(x, np.ndarray)]
    dtype = arrays[0].dtype if arrays else _where_type(a, b)
    if whole.size >= MANY and len(arrays) == 2 and (found := _machine_where(condition, a, b, out)) is not None:
        return found
    if whole.size >= MANY and len(arrays) < 2:
        y = select(condition, a, b, whole.shape, dtype)
    else:
        y = np.where(condition, *[x if isinstance(x, np.ndarray) else dtype.type(x) for x in (a, b)])
    if out is None:
        return y
    np.copyto(out, y)
    return out


def _planned_where(condition: np.ndarray, a: Any, b: Any) -> Callable[..., np.ndarray] | None:
    arrays = [x for x in (a, b) if isinstance(x, np.ndarray)]
    if not arrays or not isinstance(condition, np.ndarray) or np.broadcast(condition, a, b).size >= MANY:
        return None
    first, second = (x if isinstance(x, np.ndarray) else np.array(x, arrays[0].dtype) for x in (a, b))
    if len(arrays) == 2:
        return np.where
    return (lambda c, b: np.where(c, first, b)) if arrays[0] is b else (lambda c, a: np.where(c, a, second))


_where_cpu.planned = _planned_where  # type: ignore[attr-defined]


@moved_as_bytes
def _where_forward(condition: CudaArray, a: Any, b: Any, *, out: CudaArray | None = None) -> CudaArray:
    spec = _where_shape(condition, a, b)
    if out is None:
        out = allocate_result((condition, a, b), spec.shape, spec.dtype)
    run((_where,), ((0, 1, 2),), (condition, a, b), (out,), spec.dtype)
    return out


def _where_samples(rng: np.random.Generator) -> list[Sample]:
    def draw(*shape: int) -> np.ndarray:
        return np.asarray(rng.uniform(-2, 2, shape))

    def truth(*shape: int) -> np.ndarray:
        return np.asarray(rng.integers(0, 2, shape).astype(np.bool_))

    return [
        Sample(truth(3, 5), draw(3, 5), draw(3, 5)),
        Sample(truth(5), draw(3, 1), draw(4, 1, 5)),
        Sample(truth(9, 15), draw(9, 15), 0.0),
        Sample(truth(7), 1.5, draw(7)),
        Sample(truth(2, 3), draw(), draw(3)),
        Sample(truth(4), 1.0, 0.0),
    ]


_WHERE = (None, _where_a, _where_b)
op(
    "where", _where_reference, cpu=_where_cpu, shape=_where_shape, forward=_where_forward, broadcasts=True, into=True, dtypes=FLOATS,
    rule=tuple(f and backends.translate(f, backends.on_tensors) for f in _WHERE), backward=backward_of(_WHERE), samples=_where_samples, work=work,
    cpu_backward=(None, lambda g, condition: _zero_where(g, np.logical_not(condition)), lambda g, condition: _zero_where(g, condition)),
)  # fmt: skip


# y = min(max(x, low), high): every formula once for each of the bounds that are given
@triton.jit
def _between(x, low, high):
    return maths.minimum(maths.maximum(x, low), high)


@triton.jit
def _x_above(g, x, low):
    return maths.where(x >= low, g, maths.zeros(g))


@triton.jit
def _x_below(g, x, high):
    return maths.where(x <= high, g, maths.zeros(g))


@triton.jit
def _x_between(g, x, low, high):
    return maths.where(maths.both(x >= low, x <= high), g, maths.zeros(g))


@triton.jit
def _low_alone(g, x, low):
    return maths.where(x < low, g, maths.zeros(g))


@triton.jit
def _low_of_both(g, x, low, high):
    return maths.where(maths.both(x < low, low < high), g, maths.zeros(g))


@triton.jit
def _high_alone(g, x, high):
    return maths.where(x > high, g, maths.zeros(g))


@triton.jit
def _high_of_both(g, x, low, high):
    return maths.where(maths.either(x > high, high < low), g, maths.zeros(g))


_CLAMP = {"x": (_x_above, _x_below, _x_between), "low": (_low_alone, None, _low_of_both), "high": (None, _high_alone, _high_of_both)}


def _bounds(x: Any, low: Any, high: Any) -> tuple[int, tuple[Any, ...]]:
    """The index of one of three formulas, and the bounds that it takes, as x's type holds them: its own 0.1 is within a bound of 0.1."""
    dtype = getattr(x, "_array", x).dtype
    low, high = dtypes.as_held(dtype, low), dtypes.as_held(dtype, high)
    if high is None:
        return 0, (low,)
    return (1, (high,)) if low is None else (2, (low, high))


def _clamp_gradient(name: str, backend: Any) -> Callable[..., Any]:
    formulas = [f and backends.translate(f, backend) for f in _CLAMP[name]]

    def gradient(g: Any, x: Any, low: Any, high: Any) -> Any:
        which, bounds = _bounds(x, low, high)
        return formulas[which](g, x, *bounds)

    return gradient


def _clamp_x_numpy(g: np.ndarray, x: np.ndarray, low: Any, high: Any) -> np.ndarray:
    if x.dtype.char not in "fd":  # to which numpy rounds a number by itself
        low, high = dtypes.as_held(x.dtype, low), dtypes.as_held(x.dtype, high)
    inside = x == x if low is None else x >= low
    if high is not None:
        inside = np.logical_and(inside, x <= high)
    return _zero_where(g, np.logical_not(inside))


def _clamp_backward(name: str) -> Callable[..., CudaArray]:
    def backward(g: CudaArray, x: CudaArray, low: Any, high: Any) -> CudaArray:
        which, bounds = _bounds(x, low, high)
        out = allocate_result((g, x, *bounds), g.shape, g.dtype)
        run((_CLAMP[name][which],), (tuple(range(2 + len(bounds))),), (g, x, *bounds), (out,), g.dtype)
        return out

    return backward


def _clamp_shape(x: Any, low: Any, high: Any) -> Spec:
    if low is None and high is None:
        raise ArgumentError("clamp: neither min nor max was given; give at least one")
    if dtypes.of(x.dtype).kind not in _REAL:
        raise DTypeError(f"clamp: {dtypes.of(x.dtype).name} has no order; it takes {', '.join(_REAL)} types")
    shapes = [(label, v.shape) for label, v in (("x", x), ("min", low), ("max", high)) if hasattr(v, "shape")]
    return Spec(broadcast("clamp", *[s for _, s in shapes], labels=[label for label, _ in shapes]), x.dtype)


_CLAMPED = formula_llvm.formula_loop(_between)


def _clamp_reference(x: np.ndarray, low: Any = None, high: Any = None) -> np.ndarray:
    """x, but at least low and at most high; NaN stays."""
    y = x if low is None else np.maximum(x, low)
    return y if high is None else np.minimum(y, high)


def _clamp_cpu(x: np.ndarray, low: Any = None, high: Any = None, *, out: np.ndarray | None = None) -> np.ndarray:
    if isinstance(low, int | float) and isinstance(high, int | float) and x.size >= MANY and x.dtype.char in "fd":
        order = "C" if x.flags.c_contiguous else "F"
        y = np.empty(x.shape, x.dtype, order) if out is None else out
        if (
            is_contiguous(x, order)
            and is_contiguous(y, order)
            and y.shape == x.shape
            and y.dtype == x.dtype
            and _CLAMPED([x, float(low), float(high)], y)
        ):
            return y
    low, high = [x.dtype.type(v) if isinstance(v, int | float) else v for v in (low, high)]  # numpy makes bfloat16 with a number float32
    if low is None:
        return np.minimum(x, high, out=out)
    if high is None:
        return np.maximum(x, low, out=out)
    y = np.asarray(np.maximum(x, low))
    fits = out if out is not None else y if np.shape(high) in ((), y.shape) else None
    return np.minimum(y, high, out=fits)


def _planned_clamp(x: np.ndarray, low: Any = None, high: Any = None) -> Callable[..., np.ndarray] | None:
    if x.size >= MANY or x.dtype.char not in "fdilq" or not all([v is None or type(v) in (int, float) for v in (low, high)]):
        return None
    least, most = (None if v is None else np.array(x.dtype.type(v)) for v in (low, high))
    if most is None:
        return lambda x: np.maximum(x, least)  # type: ignore[arg-type]
    if least is None:
        return lambda x: np.minimum(x, most)
    return lambda x: np.minimum(np.maximum(x, least), most)  # type: ignore[arg-type]


_clamp_cpu.planned = _planned_clamp  # type: ignore[attr-defined]


def _clamp_forward(x: CudaArray, low: Any, high: Any, *, out: CudaArray | None = None) -> CudaArray:
    if out is None:
        out = allocate_result((x, low, high), _clamp_shape(x, low, high).shape, x.dtype)
    which, bounds = _bounds(x, low, high)
    run(((maths.maximum, maths.minimum, _between)[which],), (tuple(range(1 + len(bounds))),), (x, *bounds), (out,), x.dtype)
    return out


def _clamp_samples(rng: np.random.Generator) -> list[Sample]:
    value, under, over = (
        Domain(low, high, step=0.25) for low, high in ((-2.0, 2.0), (-1.125, -0.625), (0.625, 1.125))
    )  # lattices that never meet
    x = value.draw(rng, (3, 5))
    odd = Sample(np.array([np.nan, 0.0, 3.0, -3.0]), np.array([1.0, np.nan, 2.0, 0.0]), np.array([2.0, 1.0, 1.0, 0.0]), smooth=False)
    return [
        Sample(x, -0.6, 1.1), Sample(x, -0.6, None), Sample(x, None, 1.1), Sample(value.draw(rng, (135,)), -0.6, 1.1),
        Sample(x, under.draw(rng, (5,)), over.draw(rng, (3, 1))), Sample(x, under.draw(rng, (3, 1)), None),
        Sample(x, None, over.draw(rng, (4, 1, 5))), Sample(x, 2.6, -2.6), odd,
    ]  # fmt: skip


op(
    "clamp", _clamp_reference, cpu=_clamp_cpu, shape=_clamp_shape, forward=_clamp_forward,
    rule=tuple(_clamp_gradient(n, backends.on_tensors) for n in _CLAMP), backward=tuple(_clamp_backward(n) for n in _CLAMP),
    cpu_backward=(_clamp_x_numpy, _clamp_gradient("low", backends.on_numpy), _clamp_gradient("high", backends.on_numpy)),
    broadcasts=True, promote="same", into=True, dtypes=(*FLOATS, "int64"), samples=_clamp_samples, work=work,
)  # fmt: skip
