"""Oracle of tapes and steps: the same values in plain numpy, slowly and without a kernel, for tests to compare with."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from tritensor.kernels.parts import backends
from tritensor.kernels.parts.cpu.float_conversions import as_integers
from tritensor.kernels.parts.half_precision import functions as half
from tritensor.kernels.parts.random_words.draws import signed
from tritensor.kernels.parts.tapes.capture import Captured
from tritensor.kernels.parts.tapes.tape import Fold, Places, Step, Tape
from tritensor.ops.array import CudaArray, as_strided
from tritensor.ops.replay.steps import Drawn, Folded, Pointwise, Spreading


def evaluate(tape: Tape, inputs: Sequence[np.ndarray | Places], numbers: Sequence[Any] = ()) -> tuple[np.ndarray, ...]:
    """What a tape stores, each value in its step's type and of the shape that its step gives it.

    inputs: arrays of tape.inputs; for a tape with folds of 2 dimensions each, (rows, n), (rows, 1) or (1, n). numbers: of tape.numbers.
    Values between steps are rounded to their types. A fold goes over the last axis, by halves.
    """
    shape = np.broadcast_shapes(*[x.shape for x in inputs]) if inputs else (1, 1)
    given = [x.numbers() if isinstance(x, Places) else x for x in inputs]
    values: list[np.ndarray] = [*given, *[np.full((1,) * max(len(shape), 1), n, d) for n, d in zip(numbers, tape.numbers, strict=True)]]
    for step in tape.steps:
        if isinstance(step, Step):
            values.append(stored(pointwise(step.formula, [values[k] for k in step.picks], step.wide), step.dtype))
        else:
            values += _folded_rows(step, values, shape)
    return tuple([values[k] for k in tape.stores])


def _folded_rows(step: Fold, values: Sequence[np.ndarray], shape: tuple[int, ...]) -> list[np.ndarray]:
    """A fold's values, one per row each."""
    xs = [np.broadcast_to(values[k], (max(shape[0], len(values[k])), shape[1])) for k in step.picks]
    found = folded(step.functions, xs, step.states, [values[k] for k in step.scalars], [values[k] for k in step.numbers])
    return [stored(np.asarray(y), d) for y, d in zip(found, step.dtypes, strict=True)]


def pointwise(formula: Any, values: Sequence[np.ndarray], wide: bool) -> np.ndarray:
    """A formula of arrays as the elementwise kernel reads them: floats widened, booleans as int8; not yet rounded to a type."""
    kind = np.dtype(np.float64 if wide else np.float32)
    with np.errstate(all="ignore"):
        y = np.asarray(_as_numpy(formula)(*[_widened(x, kind) for x in values]))
    return _cut(y, max([x.ndim for x in values]))


def _cut(y: np.ndarray, ndim: int) -> np.ndarray:
    """A value without the leading dimensions that formulas are given more than it has."""
    return y.reshape(y.shape[max(y.ndim - ndim, 0) :])


def stored(y: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Values as a kernel writes them to memory of a type, see `maths.stored`."""
    if dtype.kind in "iu" and y.dtype.kind == "f":
        return as_integers(y, dtype)
    with np.errstate(all="ignore"):
        return y != 0 if dtype.kind == "b" else y.astype(dtype)


def folded(
    functions: Any, xs: Sequence[np.ndarray], states: Sequence[np.dtype], scalars: Sequence[Any], numbers: Sequence[Any]
) -> tuple[np.ndarray, ...]:
    """What a reduction's functions make of every row of `xs`, all of shape (rows, n): arrays of shape (rows, 1), not yet rounded to a type.

    By `combine`, of neighbours first, then of neighbouring pairs; `walk`, a faster way to the same, is not asked.
    """
    rows, n = xs[0].shape
    given = [_upcast(x) for x in xs]
    index = _values(np.broadcast_to(np.arange(n), (rows, n)))
    mapped = given if functions.map is None else _tuple(_as_numpy(functions.map)(*given, index, *[_number(v) for v in numbers]))
    state = [_values(np.broadcast_to(m, (rows, n)).astype(d)) for m, d in zip(mapped, states, strict=True)]
    nothing = [np.full((rows, 1), k, d) for k, d in zip(functions.identity(tuple(states)), states, strict=True)]
    combine = _as_numpy(functions.combine)
    while state[0].shape[1] > 1:
        if state[0].shape[1] % 2:
            state = [_values(np.concatenate([s, k], 1)) for s, k in zip(state, nothing, strict=True)]
        joined = _tuple(combine(*[s[:, ::2] for s in state], *[s[:, 1::2] for s in state]))
        state = [_values(s.astype(d)) for s, d in zip(joined, states, strict=True)]
    if n == 0:
        state = [_values(k) for k in nothing]
    if functions.finish is None:
        return tuple(state)
    return _tuple(_as_numpy(functions.finish)(*state, *[_number(s) for s in scalars]))


def spread_out(formula: Any, xs: Sequence[np.ndarray], scalars: Sequence[Any]) -> tuple[np.ndarray, ...]:
    """What `spread` makes of `xs`, all of shape (rows, n): arrays that broadcast to it, not yet rounded to a type."""
    index = _values(np.broadcast_to(np.arange(xs[0].shape[1]), xs[0].shape))
    return _tuple(_as_numpy(formula)(*[_upcast(x) for x in xs], index, *[_number(s) for s in scalars]))


# -- the steps of a corner
def run_steps(captured: Captured, args: Sequence[Any]) -> Any:
    """What the corner returns for arrays of numpy's in the places of `captured.args`, whose layouts they have; of what it writes they are written, too."""
    memory = _Memory()
    memory.lend(captured.args, args)
    for step in captured.steps:
        with np.errstate(all="ignore"):
            _RUN[type(step)](step, memory)
    memory.give_back(captured.args, args)
    return _result(captured.results, captured, args, memory)


def _result(value: Any, captured: Captured, args: Sequence[Any], memory: _Memory) -> Any:
    if isinstance(value, tuple):
        return tuple([_result(v, captured, args, memory) for v in value])
    if not isinstance(value, CudaArray):
        return value
    for there, own in zip(captured.args, args, strict=True):
        if there is value:
            return own
        if isinstance(there, CudaArray) and there.storage is value.storage and there.dtype == value.dtype:
            return _view(own, value, value.offset - there.offset)
    return memory.view(value).copy(order="K")


def _view(x: np.ndarray, like: CudaArray, offset: int) -> np.ndarray:
    """A view of the caller's array that lies as `like` does, `offset` elements behind its first element or before it."""
    turned = [s < 0 for s in x.strides]
    index: Any = (*[slice(None, None, -1 if back else 1) for back in turned], ...)
    first = x[index]  # that of the lowest address
    low = sum([s * (n - 1) for n, s, back in zip(x.shape, x.strides, turned, strict=True) if back]) // x.itemsize if x.size else 0
    return as_strided(first, like.shape, like.strides, offset - low)  # type: ignore[no-any-return]


class _Memory:
    """The memory of a capture's arrays, by storage."""

    def __init__(self) -> None:
        self._bytes: dict[int, np.ndarray] = {}

    def view(self, x: CudaArray) -> np.ndarray:
        """A window as numpy's array."""
        memory = self._bytes.get(id(x.storage))
        if memory is None:
            memory = self._bytes[id(x.storage)] = np.zeros(max(x.storage.nbytes, 1), np.uint8)
        start = x.offset * x.itemsize if x.size else 0
        return np.ndarray(x.shape, x.dtype, memory, start, tuple([s * x.itemsize for s in x.strides]) if x.size else None)

    def lend(self, there: Any, here: Any) -> None:
        """Fill a capture's arrays with the caller's."""
        if isinstance(there, tuple):
            for t, h in zip(there, here, strict=True):
                self.lend(t, h)
        elif isinstance(there, CudaArray):
            self.view(there)[...] = here

    def give_back(self, there: Any, here: Any) -> None:
        """Write what has changed of them to the caller's."""
        if isinstance(there, tuple):
            for t, h in zip(there, here, strict=True):
                self.give_back(t, h)
        elif isinstance(there, CudaArray) and self.view(there).tobytes() != here.tobytes():
            here[...] = self.view(there)


def _run_pointwise(step: Pointwise, memory: _Memory) -> None:
    values = [memory.view(x) if isinstance(x, CudaArray) else _number(x) for x in step.operands]
    if 0 in step.outs[0].shape:  # nothing is launched
        return
    made = [pointwise(f, [values[k] for k in picks], step.wide) for f, picks in zip(step.formulas, step.picks, strict=True)]
    for out, y in zip(step.outs, made, strict=True):
        memory.view(out)[...] = stored(_cut(y, out.ndim), out.dtype)


def _in_rows(x: np.ndarray, dims: Sequence[int]) -> np.ndarray:
    """An array with `dims` behind the others, as a matrix."""
    kept = [d for d in range(x.ndim) if d not in dims]
    last = x.transpose(*kept, *dims)
    return last.reshape(math.prod(last.shape[: len(kept)]), math.prod(last.shape[len(kept) :]))


def _run_folded(step: Folded, memory: _Memory) -> None:
    xs = [_in_rows(memory.view(x), step.dims) for x in step.xs]
    for out, y in zip(step.ys, folded(step.functions, xs, step.states, step.scalars, step.numbers), strict=True):
        memory.view(out)[...] = np.broadcast_to(y, (len(xs[0]), 1)).astype(out.dtype).reshape(out.shape)


def _run_spreading(step: Spreading, memory: _Memory) -> None:
    rows = [_in_rows(memory.view(x), step.dims) for x in step.xs]
    shape, dims = step.ys[0].shape, step.dims
    kept = [d for d in range(len(shape)) if d not in dims]
    order = [*kept, *dims]
    for out, y in zip(step.ys, spread_out(step.formula, rows, step.scalars), strict=True):
        whole = np.broadcast_to(y, rows[0].shape).astype(out.dtype).reshape([shape[d] for d in order])
        memory.view(out)[...] = whole.transpose(np.argsort(order))


def _run_drawn(step: Drawn, memory: _Memory) -> None:
    place = np.arange(step.out.size).reshape(step.out.shape)
    if place.size:
        memory.view(step.out)[...] = stored(
            pointwise(step.formula, [place, *[np.asarray(signed(x)) for x in (step.seed, step.offset)]], False), step.out.dtype
        )


_RUN: dict[type, Callable[[Any, _Memory], None]] = {
    Pointwise: _run_pointwise, Folded: _run_folded, Spreading: _run_spreading, Drawn: _run_drawn,
}  # fmt: skip


# -- formulas in numpy
class _Values(np.ndarray):
    """An array with what a formula asks of a kernel's values beyond operators; whole numbers are divided as kernels divide them, towards 0."""

    def to(self, dtype: Any, bitcast: bool = False) -> Any:
        return self.view(dtype) if bitcast else self.astype(dtype)

    def __floordiv__(self, other: Any) -> Any:
        if self.dtype.kind in "iu":
            return np.ndarray.__floordiv__(self - self % other, other)
        return super().__floordiv__(other)

    def __mod__(self, other: Any) -> Any:
        return np.fmod(self, other) if self.dtype.kind in "iu" else super().__mod__(other)


def _values(x: Any) -> Any:
    """An array of numpy's, of two dimensions at least as a kernel's tile, as formulas get it; anything else as it is."""
    return np.atleast_2d(x).view(_Values) if isinstance(x, np.ndarray | np.generic) else x


def _number(x: Any) -> Any:
    """A number as kernels get it: a Python float is a float32."""
    return _values(np.float32(x) if type(x) is float else np.asarray(x) if isinstance(x, int | np.generic) else x)


def _widened(x: np.ndarray, kind: np.dtype) -> Any:
    floating = x.dtype.kind in "fV"
    return _values(x.astype(np.int8) if x.dtype.kind == "b" else x.astype(kind) if floating else x)


def _upcast(x: np.ndarray) -> Any:
    return _values(x.astype(np.float32) if x.dtype.kind in "fV" and x.itemsize < 4 else x)


def _tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of numpy whose arrays formulas can go on with."""

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return _values(function(*args, **kwargs))

    return wrapped


def _larger(a: Any, b: Any, propagate_nan: Any = None) -> Any:
    return np.maximum(a, b) if propagate_nan == "all" else np.fmax(a, b)


def _smaller(a: Any, b: Any, propagate_nan: Any = None) -> Any:
    return np.minimum(a, b) if propagate_nan == "all" else np.fmin(a, b)


_TYPES = {f"{kind}{bits}": np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
_TRITON = types.SimpleNamespace(
    where=_wrapped(np.where), maximum=_wrapped(_larger), minimum=_wrapped(_smaller), abs=_wrapped(np.abs), zeros_like=_wrapped(np.zeros_like),
    full=_wrapped(np.full), max=np.max, PropagateNan=types.SimpleNamespace(ALL="all"), constexpr=lambda x: x, static_range=range,
    int1=np.dtype(bool), float32=np.dtype(np.float32), float64=np.dtype(np.float64), **_TYPES,
)  # fmt: skip
# the exact functions, of which these are approximations that 16 bits do not tell from them
_HALF = types.SimpleNamespace(exp=_wrapped(np.exp), exp2=_wrapped(np.exp2), reciprocal=lambda x: 1.0 / x, div=_wrapped(np.divide))
_FUNCTIONS = types.SimpleNamespace(
    **{k: f if k == "choose" else _wrapped(f) for k, f in vars(backends.on_numpy).items()},
    modules={"triton.language": _TRITON, half.__name__: _HALF},
)


@cache
def _as_numpy(formula: Any) -> Callable[..., Any]:
    """A formula as a function of such arrays."""
    return backends.translate(formula, _FUNCTIONS)
