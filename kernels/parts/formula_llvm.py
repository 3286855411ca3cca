"""A formula on the CPU: machine code for many elements, the numpy reference for everything else."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.strides import ELEMENTWISE, order_of
from tritensor.kernels.parts import backends
from tritensor.kernels.parts.cpu import blocks
from tritensor.kernels.parts.cpu.float_conversions import HALVES
from tritensor.kernels.parts.cpu.simd_maths import on_lanes
from tritensor.llvm.loops import MANY, Loop, lies
from tritensor.ops.array import settled
from tritensor.ops.table import FLOATS

NARROW = ("float16", "bfloat16")  # numpy has loops for them that go number by number, if any
_KEPT = ("plain", "__signature__", "__module__", "__doc__", "__name__")


def loop_of(formula: Any, spelling: Any = on_lanes) -> Loop:
    """The loop of a `@triton.jit` formula; its twin on lanes is made when it is first needed."""
    return Loop(lambda *lanes: backends.twin(formula, spelling)(*lanes))


def arranged(inputs: Sequence[Any]) -> tuple[list[Any], tuple[int, ...], str]:
    """Arrays that broadcast, and numbers, as a loop takes them: arrays of the common shape that lie alike, numbers as they are. With that shape and
    the order of memory, "C" or "F". What lies otherwise is copied."""
    if len(inputs) == 1 and inputs[0].flags.c_contiguous:
        return list(inputs), inputs[0].shape, "C"
    arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.size != 1]
    first = arrays[0]
    shape = first.shape
    if any(x.shape != shape for x in arrays[1:]) or first.ndim < max(x.ndim for x in inputs if isinstance(x, np.ndarray)):
        shape = np.broadcast_shapes(*[x.shape for x in inputs if isinstance(x, np.ndarray)])
    order = "F" if all(x.shape == shape and x.flags.f_contiguous and not x.flags.c_contiguous for x in arrays) else "C"
    given = [
        x
        if not isinstance(x, np.ndarray) or x.size == 1 or (x.shape == shape and lies(x, order))
        else np.ascontiguousarray(np.broadcast_to(x, shape))
        for x in inputs
    ]
    return given, shape, order


_ROWS = 32768  # elements of the rows that are computed together where an operand is the same in all of them


def _of_rows(loop: Callable[..., bool], inputs: Sequence[Any], dtype: np.dtype) -> np.ndarray | None:
    """The loop over rows where some input is the same in each, such as a number per column: it is spread over a few of them only. None where that
    does not pay."""
    arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.size != 1]
    shape = np.broadcast_shapes(*[x.shape for x in inputs if isinstance(x, np.ndarray)])
    small = [(1,) * (len(shape) - x.ndim) + x.shape for x in arrays if x.shape != shape]
    if not small or not all(x.flags.c_contiguous for x in arrays):
        return None
    lead = min(next(d for d, n in enumerate(s) if n != 1) for s in small)
    rows, length = math.prod(shape[:lead]), math.prod(shape[lead:])
    step = min(max(_ROWS // max(length, 1), 1), rows)
    if rows < 2 or length > 2 * _ROWS or not step * length >= MANY:
        return None
    out = np.empty((rows, length), dtype)
    some = (step, *shape[lead:])
    lanes = [
        x if not isinstance(x, np.ndarray) or x.size == 1 else x.reshape(rows, length) if x.shape == shape
        else np.ascontiguousarray(np.broadcast_to(x.reshape(x.shape[max(x.ndim - len(shape) + lead, 0) :]), some)).reshape(step, length)
        for x in inputs
    ]  # fmt: skip
    whole = [isinstance(x, np.ndarray) and x.size != 1 and x.shape == shape for x in inputs]
    for start in range(0, rows, step):
        top = min(start, rows - step)  # the last rows overlap those before them
        part = slice(top, top + step)
        if not loop([x[part] if w else x for x, w in zip(lanes, whole, strict=True)], out[part]):
            return None
    return out.reshape(shape)


def _turn(inputs: Sequence[Any]) -> tuple[int, ...] | None:
    """The dimensions from the outermost in memory to the innermost, of arrays that lie alike and without gaps, in neither C nor Fortran order."""
    first, *others = [x for x in inputs if np.ndim(x)]
    if (
        first.flags.c_contiguous
        or first.flags.f_contiguous
        or not all([x.shape == first.shape and x.strides == first.strides for x in others])
    ):
        return None
    axes = order_of(first.strides)
    return axes if first.transpose(axes).flags.c_contiguous else None


def natively(
    reference: Callable[..., Any],
    loop: Callable[..., bool],
    types: Sequence[str],
    defaults: dict[str, Any] | None = None,
    result: np.dtype | None = None,
) -> Any:
    """A reference that leaves many elements of these types to a loop, loop(inputs, out); `defaults` are the attributes' that follow the inputs in the
    formula, `result` the type of what it gives (None: the inputs')."""
    known = frozenset(dtypes.as_dtype(t).numpy for t in types)

    def chosen(*arrays: Any, out: np.ndarray | None = None, **attrs: Any) -> Any:
        first = arrays[0] if isinstance(arrays[0], np.ndarray) else arrays[1]
        many = first.size if len(arrays) == 1 else max([x.size for x in arrays if isinstance(x, np.ndarray)])
        if many >= MANY and first.dtype in known:
            dtype = result or first.dtype
            if not defaults and out is None and len(arrays) > 1 and (y := _of_rows(loop, arrays, dtype)) is not None:
                return y
            if out is None and (axes := _turn(arrays)) is not None:
                turned = chosen(*[x.transpose(axes) if np.ndim(x) else x for x in arrays], **attrs)
                return turned.transpose(np.argsort(axes))
            given, shape, order = arranged(arrays)
            y = np.empty(shape, dtype, order) if out is None else out
            if defaults:
                given += [attrs.get(name, default) for name, default in defaults.items()]
            if y.dtype == dtype and y.shape == shape and loop(given, y):
                return y if out is not None else settled(ELEMENTWISE, y, arrays)
            with blocks.SILENT():
                return reference(*arrays, out=out, **attrs)
        return reference(*arrays, out=out, **attrs)

    for name in _KEPT:
        if hasattr(reference, name):
            setattr(chosen, name, getattr(reference, name))
    bare = reference if isinstance(reference, np.ufunc) else getattr(reference, "bare", None)
    if bare is not None and known <= HALVES:
        chosen.bare = bare  # type: ignore[attr-defined]
    elif bare is not None:
        chosen.bare = _with_size_asked(chosen, bare)  # type: ignore[attr-defined]
    chosen.half_is_bare = False  # type: ignore[attr-defined]
    chosen.in_numpy, chosen.types = reference, known  # type: ignore[attr-defined]  # for the tests that compare the two
    if not hasattr(reference, "__signature__"):
        chosen.__wrapped__ = reference  # type: ignore[attr-defined]  # whose signature registration reads
    return chosen


def _with_size_asked(many: Callable[..., Any], few: Callable[..., Any]) -> Callable[..., Any]:
    def one_or_two(x: Any, *second: Any) -> Any:
        return (many if getattr(x, "size", 0) >= MANY else few)(x, *second)

    return one_or_two


def _gradient(formula: Any, types: Sequence[str]) -> Callable[..., np.ndarray | None]:
    """A gradient formula of g and what else it names, arrays of g's shape and type or numbers; None where numpy has to."""
    loop = loop_of(formula)
    known = frozenset(dtypes.as_dtype(t).numpy for t in types)

    def machine(g: np.ndarray, *values: Any) -> np.ndarray | None:
        if g.dtype not in known:
            return None
        if (axes := _turn((g, *values))) is not None:
            turned = machine(*[x.transpose(axes) if np.ndim(x) else x for x in (g, *values)])
            return None if turned is None else turned.transpose(np.argsort(axes))
        given, shape, order = arranged((g, *values))
        y = np.empty(shape, g.dtype, order)
        return y if loop(given, y) else None

    return machine


def numpy_gradient(formula: Any, one_rounding: bool) -> Callable[..., Any]:
    """A gradient formula on numpy arrays: its body as it is, blocked where that saves passes over memory, through float32 for 16-bit floats."""
    plain = backends.twin(formula, backends.on_numpy)
    code = backends.body(formula).__code__
    names = code.co_varnames[: code.co_argcount]
    if one_rounding and len(names) == 1:
        return plain
    few = sys.maxsize if one_rounding else blocks.BLOCK
    machine = _gradient(formula, NARROW if one_rounding else FLOATS)

    def of_two(g: Any, x: Any) -> Any:  # the common case, without the cost of *values
        if g.size >= MANY and (found := machine(g, x)) is not None:
            return found
        if g.itemsize == 2 or g.size > few:
            return blocks.evaluate(plain, (g, x))
        return plain(g, x)

    def of_any(*values: Any) -> Any:
        g = values[0]
        if g.size >= MANY and (found := machine(*values)) is not None:
            return found
        if g.itemsize == 2 or g.size > few:
            return blocks.evaluate(plain, values)
        return plain(*values)

    gradient: Any = of_two if len(names) == 2 else of_any
    gradient.__signature__ = blocks.signature(names)
    return gradient


def recurrence(formula: Any, most: int = 64) -> Callable[..., bool]:
    """The loop of a formula of (x, n) whose steps are as many as n's largest whole number, up to `most`: machine code for each such number."""

    @functools.cache
    def of(steps: int) -> Loop:
        return loop_of(formula, on_lanes.having(whole_most=lambda degree: steps))

    def loop(inputs: Sequence[Any], out: np.ndarray) -> bool:
        top = float(np.max(inputs[1]))
        return top <= most and of(max(int(top), 1))(inputs, out)

    return loop
