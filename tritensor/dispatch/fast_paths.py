"""Fast paths: what `apply` does, unrolled for the calls that programs make most: floating tensors of one type, or a recording on a GPU.

Each path is a closure over what one op needs. It answers the calls that it knows by looking at as little as it can, and hands every other call to `apply`
untouched, so that a path decides nothing of its own: what it gives is what `apply` gives (tests/dispatch/test_fast_paths.py). Wrapping the result and leaving
the node are written out in each of them: a Python call costs as much as an addition of a few numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np

from tritensor.autograd.modes import state
from tritensor.autograd.node import Version, calls_new_node, new_node, version_of
from tritensor.autograd.saved import note_borrowed, note_borrower
from tritensor.dispatch import dispatcher
from tritensor.dispatch.dispatcher import apply
from tritensor.dispatch.nodes import share
from tritensor.ground import dtypes
from tritensor.ground.call_site import wrapper
from tritensor.ground.errors import DTypeError
from tritensor.ground.numpy_warnings import quietly
from tritensor.ground.strides import CONTIGUOUS, IMAGES
from tritensor.ground.transforms import running, transform
from tritensor.ops.array import CudaArray, to_layout
from tritensor.ops.replay import Corner, attributes_part, record_view
from tritensor.ops.table import Op, Ops, Spec, ops
from tritensor.ops.table.description import describe
from tritensor.ops.table.lookup import Proven

_FLOATS = "efd"  # numpy's letters for the floating types that ufuncs compute in; one that float8 gives itself is another


def binary_path(op: Op, otherwise: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """The call of an elementwise op of two inputs without attributes; `otherwise` takes every call that the path does not know."""
    compute = getattr(op.cpu, "bare", op.cpu)  # a ufunc without its care for numbers
    letters = _FLOATS if getattr(op.cpu, "half_is_bare", True) else "fd"
    differentiable = op.rule is not None
    keep = tuple([tuple([(*op.keep((p, q))[0], op.keep((p, q))[1][0]) for q in (False, True)]) for p in (False, True)])
    make, Tensor, ndarray, mode = object.__new__, dispatcher._Tensor, np.ndarray, state
    known, rule = _recordings(op), op.layout
    scalar = _scalar_path(op, otherwise)

    @wrapper
    def call(a: Any, b: Any) -> Any:
        # Asking for the attribute and being wrong now and then is cheaper than isinstance twice: nearly all calls have two tensors.
        try:
            x = a._array
            y = b._array
        except AttributeError:
            return scalar(a, b)
        dtype = x.dtype
        same = x.shape == y.shape
        # A ufunc's own loop is right here: one type, so nothing is promoted, and x in C order, so the result lies as the layout rule says.
        if (
            type(x) is ndarray
            and type(y) is ndarray
            and dtype is y.dtype
            and dtype.char in letters
            and x.flags.c_contiguous
            and (same or (y.flags.c_contiguous and _fits(x.shape, y.shape)))
        ):
            try:
                result = compute(x, y)
            except RuntimeWarning:
                result = quietly(compute, x, y)
            if type(result) is not ndarray:  # of two 0-d arrays numpy makes a number
                result = np.asarray(result)
        # Layouts that were asked for before have been through the shape rule; a recording exists for them or it does not.
        elif type(x) is CudaArray and type(y) is CudaArray and (recording := known.get((x.known_layout, y.known_layout))) is not None:
            result = recording((x, y))
        elif type(x) is ndarray and type(y) is ndarray and dtype is y.dtype and dtype.char in letters and (same or _fits(x.shape, y.shape)):
            result = _compute_with_gaps(compute, rule, x, y)
        elif type(x) is ndarray and type(y) is ndarray and dtype.char != y.dtype.char and dtype.char in "fd" and y.dtype.char in "fd":
            return call(*_cast_to_common(op, a, b))
        else:
            return otherwise(a, b)
        out = make(Tensor)
        out._array = result
        out._grad = out._version_counter = out._extra = out._view_path = None
        if differentiable and (a._tracked or b._tracked) and mode.enabled:
            left = (a._node or a) if a._tracked else None
            right = (b._node or b) if b._tracked else None
            keep_a, keep_b, keep_y = keep[left is not None][right is not None]
            if keep_y:  # exp keeps its result: a write to it before backward must be seen
                out._version_counter = Version()
            # Shapes are noted only where broadcasting has to be undone, and inputs only where the gradient names them: neither is for add.
            out._node = new_node(
                op, (left, right), (a if keep_a else None, b if keep_b else None) if keep_a or keep_b else None,
                ((result, out._version_counter),) if keep_y else None, None, None if same else ((x.shape, dtype), (y.shape, y.dtype)),
            )  # fmt: skip
            out._tracked = True
        else:
            out._node = None
            out._tracked = False
        return out

    return call


_numbers: dict[str, dict[float, Any]] = {"f": {}, "d": {}}  # Python numbers as arrays of a type, by its letter
_MOST = 1024  # of a type


def _as_array(number: float, dtype: np.dtype[Any]) -> Any:
    """A Python number as an array of a floating type, which a ufunc takes sooner than the number; itself where that might not be the same."""
    largest = _LARGEST[dtype.char]
    # 0.0 and -0.0 are one key of a dict; what the type cannot hold is numpy's to judge.
    if not number or not -largest <= number <= largest:
        return number
    numbers = _numbers[dtype.char]
    if len(numbers) >= _MOST:
        numbers.clear()
    found = numbers[number] = np.array(number, dtype)
    return found


_LARGEST = {letter: float(np.finfo(letter).max) for letter in "fd"}


def _scalar_path(op: Op, otherwise: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A floating tensor on the CPU with a Python number, which is weak: the result has the tensor's type."""
    compute = getattr(op.cpu, "bare", op.cpu)  # a ufunc without its care for numbers
    differentiable = op.rule is not None
    (keep_a, _), (keep_y,), _ = op.keep((True, False))
    (_, keep_b), (keep_y_b,), _ = op.keep((False, True))
    is_ufunc = isinstance(compute, np.ufunc)  # which looks at values alone
    inverts = op.name == "div"  # of which PyTorch makes number * x.reciprocal(), so that x may be written
    known = _recordings(op)
    new, mode = dispatcher._new, state

    @wrapper
    def call(a: Any, b: Any) -> Any:
        left = type(b) is float or type(b) is int  # not isinstance: True is an int, and promotes otherwise
        t = a if left else b
        x = getattr(t, "_array", None)
        if type(x) is CudaArray:
            number = b if left else a
            if type(number) is not float and type(number) is not int:
                return otherwise(a, b)
            part = (int, number) if type(number) is int else (float, number or str(number))  # 0.0 and -0.0 are two keys
            recording = known.get((x.known_layout, part) if left else (part, x.known_layout))
            if recording is None:
                return otherwise(a, b)
            result = recording((x,))
        elif type(x) is not np.ndarray or x.dtype.char not in "fd" or not (left or type(a) is float or type(a) is int):
            return otherwise(a, b)
        else:
            number = b if left else a
            # A ufunc takes an array of one number in half the time of a number; made once, it serves a loop. 0.0 and -0.0 would be one key.
            if is_ufunc and number:
                cached = _numbers[x.dtype.char].get(number)
                number = _as_array(number, x.dtype) if cached is None else cached
            try:
                result = compute(x, number) if left else compute(number, x)
            except RuntimeWarning:
                result = quietly(compute, x, number) if left else quietly(compute, number, x)
            if type(result) is not np.ndarray:
                result = np.asarray(result)
        out = new(result)
        if differentiable and t._tracked and mode.enabled:
            held = None
            if keep_y if left else keep_y_b:
                out._version_counter = Version()
                held = ((result, out._version_counter),)
            edge = t._node or t
            if left:
                out._node = new_node(op, (edge, None), (a if keep_a else None, b), held, None, None)
            else:
                out._node = new_node(op, (None, edge), (a, b if keep_b else None), held, None, None)
                if inverts:
                    note_borrower(b._version_counter or version_of(b), ref(out._node), 1)
            out._tracked = True
        return out

    return call


def _recordings(op: Op) -> dict[Any, Any]:
    """The recordings of an op's forward, by key (see replay/); of a view, its own. None where a path must not use them: an op that
    reports errors enters the caller's line first, and those of one that draws take its seed and offset."""
    corner = op.forward
    return corner.recordings if isinstance(corner, Corner) and not corner.reports and corner.draws is None else {}


def _first_view(op: Op, known: dict[Any, Any], key: Any, a: Any, attrs: dict[str, Any]) -> Any:
    """The view that an op makes of a layout for the first time; the next ones are made as it lies."""
    out = apply(op, a, **attrs)
    record_view(known, key, a._array, out._array)
    return out


def _fits(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """True where two shapes broadcast."""
    return all([m == n or m == 1 or n == 1 for m, n in zip(reversed(a), reversed(b), strict=False)])


def _compute_with_gaps(compute: Callable[..., Any], rule: str, x: Any, y: Any) -> Any:
    """The result of arrays with gaps between their elements, as a slice has: numpy's order may be another than the layout rule's."""
    try:
        result = compute(x, y)
    except RuntimeWarning:
        result = quietly(compute, x, y)
    if type(result) is not np.ndarray:
        return np.asarray(result)
    plain = x.shape == result.shape and result.flags.c_contiguous and _descend(x.strides)
    return result if plain else to_layout(rule, result, (x, y))


def _cast_to_common(op: Op, a: Any, b: Any) -> tuple[Any, Any]:
    """A tensor of float32 and one of float64, both of the type in which they meet."""
    common = dtypes.result_type((a._array, b._array), op.name)
    return (a, ops.cast(b, dtype=common)) if a._array.dtype == common else (ops.cast(a, dtype=common), b)


def _descend(strides: tuple[int, ...]) -> bool:
    """True where each dimension takes longer steps than the next one: such an operand, of the result's shape, puts a result in C order."""
    before = 0
    for step in reversed(strides):
        if step <= before:
            return False
        before = step
    return True


def _unary_path(op: Op, proven: bool = False) -> Callable[..., Any]:
    """The call of an op of one input and one output. Those that promote take floating tensors here, which need no promotion.
    `proven`: the caller has done what the shape rule would do for a floating tensor."""
    compute, floats_only = op.cpu, proven or op.promote is not None
    check = None if proven or (op.broadcasts and floats_only and not op.attrs and takes_floats(op)) else op.shape
    differentiable, view = op.rule is not None, op.view
    (keep_x,), (keep_y, *_), meta = op.keep((True,))
    meta = meta and not op.broadcasts
    known, rule, in_c_order, of_images = _recordings(op), op.layout, op.layout == CONTIGUOUS, op.layout == IMAGES
    refused = "" if view else "FD"  # numpy's letters for complex numbers, whose nodes `apply` makes
    laid_by_numpy = view or isinstance(compute, np.ufunc)  # whose result of one array lies as that does
    bare = getattr(compute, "bare", compute if laid_by_numpy else None) if check is None and not view and not op.attrs else None
    new, mode, ndarray, borrows = dispatcher._new, state, np.ndarray, bool(op.borrows)

    @wrapper
    def call(a: Any, **attrs: Any) -> Any:
        try:
            x = a._array
        except AttributeError:
            return apply(op, a, **attrs)
        if type(x) is CudaArray:
            layout = x.known_layout or x.layout()
            key = (layout, attributes_part(attrs)) if attrs else (layout,)
            # A recording has been through the shape rule with these layouts and attributes: nothing is left to check.
            try:
                recording = known.get(key)
            except TypeError:  # an attribute that cannot be hashed
                return apply(op, a, **attrs)
            if recording is None:
                return _first_view(op, known, key, a, attrs) if view else apply(op, a, **attrs)
            result = recording((x,))
        # No check: an elementwise op without attributes takes every floating array, and its result lies as the ufunc's does.
        elif bare is not None and type(x) is ndarray and x.dtype.char in "fd" and not attrs:
            try:
                result = bare(x)  # a ufunc without its care for 16-bit floats
            except RuntimeWarning:
                return apply(op, a)
            if type(result) is not ndarray:
                result = np.asarray(result)
        elif type(x) is not ndarray or (x.dtype.char not in _FLOATS if floats_only else x.dtype.char in refused):
            return apply(op, a, **attrs)
        else:
            try:
                if check is not None:
                    check(x, **attrs)
                result = compute(x, **attrs)
            except (TypeError, RuntimeWarning) as error:
                return _try_again(op, a, attrs, error)
            if type(result) is not ndarray:
                result = np.asarray(result)
            # Only a result that may lie otherwise than the op's layout rule says is looked at closely.
            elif not laid_by_numpy and not (result.flags.c_contiguous and (in_c_order or (x.flags.c_contiguous and not of_images))):
                result = to_layout(rule, result, (x,))
        out = new(result)
        if differentiable and a._tracked and mode.enabled and (check is None or dtypes.has_gradient(result.dtype)):
            out._version_counter = Version() if keep_y else None
            held = ((result, out._version_counter),) if keep_y else None
            out._node = new_node(op, (a._node or a,), (a,) if keep_x else None, held, attrs, ((x.shape, x.dtype),) if meta else None)
            out._tracked = True
            if borrows:
                note_borrowed(out._node)
        if view:
            share(out, a, op, attrs)
        return out

    return call


def _try_again(op: Op, a: Any, attrs: dict[str, Any], error: TypeError | RuntimeWarning) -> Any:
    """What `apply` gives where a warning of numpy's has ended a computation. Raises TypeError for attributes that do not fit."""
    if isinstance(error, TypeError):
        raise dispatcher.explain_misgiven(op, attrs, error) from error.__cause__
    return apply(op, a, **attrs)


def _plain_path(op: Op) -> Callable[..., Any]:
    """The call of an op of two or three inputs whose `cpu` has a `plain` form (matmul, linear): of float32 or float64 arrays of one type that gives a fresh
    result, or None where their layouts want more care, and then `apply` takes the call."""
    plain, most = op.cpu.plain, len(op.inputs)  # type: ignore[attr-defined]
    differentiable = op.rule is not None
    new, mode, ndarray, Tensor = dispatcher._new, state, np.ndarray, dispatcher._Tensor

    @wrapper
    def call(a: Any, b: Any, *rest: Any) -> Any:
        if not isinstance(a, Tensor) or not isinstance(b, Tensor):
            return apply(op, a, b, *rest)
        x, y = a._array, b._array
        dtype = x.dtype
        if type(x) is not ndarray or type(y) is not ndarray or dtype is not y.dtype or dtype.char not in "fd":
            return apply(op, a, b, *rest)
        c = rest[0] if rest else None
        try:
            if c is None:
                result = plain(x, y)
            elif isinstance(c, Tensor) and type(c._array) is ndarray and c._array.dtype is dtype and len(rest) < most - 1:
                result = plain(x, y, c._array)
            else:
                return apply(op, a, b, *rest)
        except RuntimeWarning:
            return apply(op, a, b, *rest)
        if result is None:
            return apply(op, a, b, *rest)
        out = new(result)
        if differentiable and mode.enabled and (a._tracked or b._tracked or (c is not None and c._tracked)):
            left = (a._node or a) if a._tracked else None
            right = (b._node or b) if b._tracked else None
            meta: Any = ((x.shape, dtype), (y.shape, dtype))
            # matmul and linear: written out for two and three inputs, where a loop over them would cost a third of the node.
            if most == 2:
                (keep_a, keep_b), _, wanted = op.keep((left is not None, right is not None))
                saved: Any = (a if keep_a else None, b if keep_b else None)
                edges: Any = (left, right)
            else:
                last = (c._node or c) if c is not None and c._tracked else None
                (keep_a, keep_b, keep_c), _, wanted = op.keep((left is not None, right is not None, last is not None))
                saved = (a if keep_a else None, b if keep_b else None, c if keep_c else None)
                edges = (left, right, last)
                meta = (*meta, None if c is None else (c._array.shape, dtype))
            out._node = new_node(op, edges, saved, None, {}, meta if wanted else None)
            out._tracked = True
        return out

    return call


def _has_plain(op: Op) -> bool:
    """True where an op has a `plain` form."""
    simple = not op.attrs and not op.variadic and len(op.outputs) == 1 and op.required == 2 <= len(op.inputs) <= 3
    return simple and getattr(op.cpu, "plain", None) is not None


def takes_floats(op: Op) -> bool:
    """True where the shape rule lets floating tensors through: paths of elementwise ops do not ask it again."""
    probe = Spec((), np.dtype(np.float32))
    try:
        op.shape(*[probe] * len(op.inputs))
    except DTypeError:
        return False
    return True


def bind(op: Op) -> Callable[..., Any]:
    """The callable that `ops.<name>` gives, under the op's name, with what `help` says of it."""
    return describe(_fastest(op), op)


def _fastest(op: Op) -> Callable[..., Any]:
    """The path that serves an op, or a call of `apply`."""
    if len(op.inputs) == 2 and op.broadcasts and op.promote is not None and not op.attrs and takes_floats(op):
        return binary_path(op, lambda a, b: apply(op, a, b))
    if len(op.inputs) == 1 and not op.variadic and not op.mutates and len(op.outputs) == 1:
        return _unary_path(op)
    if _has_plain(op):
        return _plain_path(op)

    draws = not op.inputs and "seed" in op.attrs

    @wrapper
    def call(*inputs: Any, **attrs: Any) -> Any:
        if draws and running.levels:
            return transform.current.draw(op, attrs)
        return apply(op, *inputs, **attrs)

    return call


calls_new_node(globals())
Ops.bind = staticmethod(bind)  # type: ignore[assignment]
Proven.bind = staticmethod(lambda op: _unary_path(op, proven=True))  # type: ignore[assignment]
