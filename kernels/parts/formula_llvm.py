"""Formulas on the CPU: machine code where there is any for the arrays' types and layouts, numpy for everything else.

A formula has one value for a number, whatever the number of elements beside it: machine code is made, or found on disk, when a formula is first
called, never behind the program's back, so that no result depends on when that was.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.strides import ELEMENTWISE, dims_by_stride
from tritensor.kernels.parts import backends
from tritensor.kernels.parts.cpu import blocks
from tritensor.kernels.parts.cpu.float_conversions import HALVES
from tritensor.kernels.parts.cpu.simd_maths import on_vectors
from tritensor.llvm.loops import MANY, Loop, is_contiguous
from tritensor.ops.array import to_layout
from tritensor.ops.table import FLOATS
from tritensor.ops.table.signature import signature

HALF_TYPES = ("float16", "bfloat16")  # numpy's loops for them go number by number, where it has any
_COPIED = ("plain", "refuses", "__signature__", "__module__", "__doc__", "__name__")


def formula_loop(formula: Any, functions: Any = on_vectors, names: Sequence[str] = ()) -> Loop:
    """The loop of a `@triton.jit` formula, which is translated when it is first needed: few programs need many formulas. `names` are its attributes'."""
    return Loop(lambda *vectors: backends.translate(formula, functions)(*vectors), tuple(names))


def to_common_layout(inputs: Sequence[Any]) -> tuple[list[Any], tuple[int, ...], str]:
    """Arrays that broadcast, and numbers, as a loop takes them: arrays of the common shape in one order of memory, numbers as they are; with that shape
    and that order, "C" or "F". What lies otherwise is copied."""
    if len(inputs) == 1 and inputs[0].flags.c_contiguous:
        return list(inputs), inputs[0].shape, "C"
    arrays = [x for x in inputs if isinstance(x, np.ndarray) and x.size != 1]
    first = arrays[0]
    shape = first.shape
    # numpy's own answer costs as much as a loop over a thousand elements, and mostly all shapes are one
    if any(x.shape != shape for x in arrays[1:]) or first.ndim < max(x.ndim for x in inputs if isinstance(x, np.ndarray)):
        shape = np.broadcast_shapes(*[x.shape for x in inputs if isinstance(x, np.ndarray)])
    # Fortran's order only where nothing has to be copied for it
    order = "F" if all(x.shape == shape and x.flags.f_contiguous and not x.flags.c_contiguous for x in arrays) else "C"
    given = [
        x
        if not isinstance(x, np.ndarray) or x.size == 1 or (x.shape == shape and is_contiguous(x, order))
        else np.ascontiguousarray(np.broadcast_to(x, shape))
        for x in inputs
    ]
    return given, shape, order


_ROWS = 32768  # elements of the rows that are computed together where an operand is the same in all of them


def _run_on_rows(loop: Callable[..., bool], inputs: Sequence[Any], dtype: np.dtype) -> np.ndarray | None:
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
    # rows that are longer have left the cache before the operand is used again, and a call on fewer elements does not pay
    if rows < 2 or length > 2 * _ROWS or step * length < MANY:
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
        top = min(start, rows - step)
        part = slice(top, top + step)
        if not loop([x[part] if w else x for x, w in zip(lanes, whole, strict=True)], out[part]):
            return None
    return out.reshape(shape)


def _axes_from_outermost(inputs: Sequence[Any]) -> tuple[int, ...] | None:
    """The dimensions from the outermost in memory to the innermost, of arrays that lie alike and without gaps, in neither C nor Fortran order."""
    first, *others = [x for x in inputs if np.ndim(x)]
    if (
        first.flags.c_contiguous
        or first.flags.f_contiguous
        or not all([x.shape == first.shape and x.strides == first.strides for x in others])
    ):
        return None
    axes = dims_by_stride(first.strides)
    return axes if first.transpose(axes).flags.c_contiguous else None


def with_machine_code(
    plain: Callable[..., Any], loop: Callable[..., bool], types: Sequence[str], defaults: dict[str, Any] | None = None,
    result: np.dtype | None = None,
) -> Any:  # fmt: skip
    """The CPU's side of an op from its side in numpy, `plain`, and a loop, loop(inputs, out), which takes elements of these types; `defaults` are
    the attributes' that follow the inputs in the formula, `result` the type of what it gives (None: the inputs')."""
    known = frozenset(dtypes.as_dtype(t).numpy for t in types)
    halves = known <= HALVES  # the others are for numpy

    def otherwise(*arrays: Any, out: np.ndarray | None = None, **attrs: Any) -> Any:
        """Of many elements, and of arrays that lie in orders of their own."""
        first = arrays[0] if isinstance(arrays[0], np.ndarray) else arrays[1]
        many = first.size if len(arrays) == 1 else max([x.size for x in arrays if isinstance(x, np.ndarray)])
        if many < 2 or first.dtype not in known:
            y = plain(*arrays, out=out, **attrs)
            return y if out is not None else to_layout(ELEMENTWISE, y, arrays)
        dtype = result or first.dtype
        # an operand that is the same in all rows need not be spread over as much memory as the result
        if not defaults and out is None and len(arrays) > 1 and (y := _run_on_rows(loop, arrays, dtype)) is not None:
            return y
        # images with channels last, and the like: as if they lay in C order, and back
        if out is None and (axes := _axes_from_outermost(arrays)) is not None:
            swapped = cpu_side(*[x.transpose(axes) if np.ndim(x) else x for x in arrays], **attrs)
            return swapped.transpose(np.argsort(axes))
        given, shape, order = to_common_layout(arrays)
        y = np.empty(shape, dtype, order) if out is None else out
        if defaults:
            given += [attrs.get(name, default) for name, default in defaults.items()]
        if not (y.dtype == dtype and y.shape == shape and loop(given, y)):
            with blocks.SILENT():
                y = plain(*arrays, out=out, **attrs)
        return y if out is not None else to_layout(ELEMENTWISE, y, arrays)

    if isinstance(loop, Loop):
        function = loop.as_function(getattr(plain, "__name__", "formula"), otherwise, known, result)
        ufunc = plain if isinstance(plain, np.ufunc) else getattr(plain, "bare", None)
        one_call = isinstance(ufunc, np.ufunc)  # which of few elements is as soon done

        def cpu_side(*arrays: Any, out: np.ndarray | None = None, **attrs: Any) -> Any:
            if (halves and getattr(arrays[0], "itemsize", 2) != 2) or (one_call and max(map(np.size, arrays)) < MANY):
                return plain(*arrays, out=out, **attrs)
            return function.call(*arrays, **attrs) if out is None else otherwise(*arrays, out=out, **attrs)

        def planned(*arrays: Any, **attrs: Any) -> Any:
            if attrs or halves or not all([isinstance(a, np.ndarray) and a.dtype.char in "fd" for a in arrays]):
                return None
            return ufunc if one_call and max(map(np.size, arrays)) < MANY else None if one_call else function.call

        cpu_side.planned = planned  # type: ignore[attr-defined]
    else:
        cpu_side = otherwise
    for name in _COPIED:
        if hasattr(plain, name):
            setattr(cpu_side, name, getattr(plain, name))
    # `bare`: what plans call of float32 and float64 arrays, without the care for numbers and 16-bit floats
    bare = plain if isinstance(plain, np.ufunc) else getattr(plain, "bare", None)
    if bare is not None and halves:
        cpu_side.bare = bare  # type: ignore[attr-defined]
    cpu_side.half_is_bare = False  # type: ignore[attr-defined]
    cpu_side.in_numpy, cpu_side.types = plain, known  # type: ignore[attr-defined]  # for the tests that compare the two
    if not hasattr(plain, "__signature__"):
        cpu_side.__wrapped__ = plain  # type: ignore[attr-defined]  # whose signature registration reads
    return cpu_side


def numpy_gradient(formula: Any, one_rounding: bool) -> Callable[..., Any]:
    """A gradient formula on numpy arrays, of g's shape and type: machine code, else its body as it is, in blocks where that saves passes over memory,
    through float32 for 16-bit floats."""
    plain = backends.translate(formula, backends.on_numpy)
    code = backends.body(formula).__code__
    names = code.co_varnames[: code.co_argcount]
    if one_rounding and len(names) == 1:
        return plain
    # a single operation is one pass over memory as it is
    few = sys.maxsize if one_rounding else blocks.BLOCK
    known = frozenset(dtypes.as_dtype(t).numpy for t in (HALF_TYPES if one_rounding else FLOATS))
    loop = formula_loop(formula)

    def otherwise(*values: Any) -> Any:
        g = values[0]
        if g.size > 1 and g.dtype in known and (found := in_order(*values)) is not None:
            return found
        if g.itemsize == 2 or g.size > few:
            return blocks.evaluate(plain, values)
        return plain(*values)

    def in_order(*values: Any) -> np.ndarray | None:
        """Of many elements, and of arrays that lie in orders of their own."""
        if (axes := _axes_from_outermost(values)) is not None:
            swapped = in_order(*[x.transpose(axes) if np.ndim(x) else x for x in values])
            return None if swapped is None else swapped.transpose(np.argsort(axes))
        given, shape, order = to_common_layout(values)
        y = np.empty(shape, values[0].dtype, order)
        return y if loop(given, y) else None

    function = loop.as_function(code.co_name, otherwise, known)

    def of_two(g: Any, x: Any) -> Any:  # the common case, without the cost of *values
        return plain(g, x) if one_rounding and g.itemsize != 2 else function.call(g, x)

    def of_any(*values: Any) -> Any:
        return function.call(*values)

    gradient: Any = of_two if len(names) == 2 else of_any
    gradient.__signature__ = signature(names)
    return gradient


def recurrence_loop(formula: Any, largest: int = 64) -> Callable[..., bool]:
    """The loop of a formula of (x, n) whose steps are as many as n's largest whole number, up to `largest`: machine code for each such number, which
    pays for many elements."""

    @functools.cache
    def loop_of_steps(steps: int) -> Loop:
        return formula_loop(formula, on_vectors.having(whole_most=lambda degree: steps))

    def loop(inputs: Sequence[Any], out: np.ndarray) -> bool:
        top = float(np.max(inputs[1])) if out.size >= MANY else math.inf
        return top <= largest and loop_of_steps(max(int(top), 1))(inputs, out)

    return loop
