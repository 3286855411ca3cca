"""Back ends of a formula: scalar mathematics for numpy arrays and for Tensors, so that one formula serves as kernel, as numpy and as differentiable rule.

A formula of an elementwise op calls functions of `maths` only. With `maths` read as `on_numpy` its body is numpy, with `on_tensors` a
rule on Tensors that can be differentiated again: see `translate`. A function added to `maths` needs its counterparts here.
"""

from __future__ import annotations

import difflib
import dis
import functools
import math
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tritensor.cuda.jit import unread
from tritensor.ground.errors import RegistrationError
from tritensor.kernels.parts.cpu import special
from tritensor.kernels.parts.cpu.complex_functions import complex_power
from tritensor.kernels.parts.random_words import draws_on_cpu
from tritensor.ops.table import ops


# --- on numpy arrays
# a condition that is a Python bool was decided by an attribute, for all elements at once
def _numpy_where(condition: Any, a: Any, b: Any) -> Any:
    return (a if condition else b) if type(condition) is bool else np.where(condition, a, b)


def _numpy_safe(g: Any, d: Any) -> Any:
    if not isinstance(d, np.ndarray | np.generic):  # a Python number, True and False among them
        return d if d != 0 else np.where(g == 0, g.dtype.type(1), g.dtype.type(d))  # of -0.0 the sign is kept
    # most divisors hold no 0: one pass to see that is cheaper than the choice
    return d if d.all() else np.where((g == 0) & (d == 0), d.dtype.type(1), d)


def _numpy_chain(g: Any, factor: Any) -> Any:
    out = g * factor
    if math.isnan(out.sum()):  # one pass without a temporary; the repair is rare
        out = np.where((g == 0) & ~np.isfinite(factor), out.dtype.type(0), out)
    return out


def _numpy_tame(g: Any, y: Any) -> Any:
    return y if math.isfinite(y.sum()) else np.where((g == 0) & ~np.isfinite(y), y.dtype.type(0), y)


def sign_of_array(x: np.ndarray, out: np.ndarray | None = None) -> Any:
    """numpy's sign, with 0 for NaN; a bool is its own."""
    if x.dtype == np.bool_:  # numpy has no sign of a bool
        return np.positive(x.view(np.int8), out=None if out is None else out.view(np.int8)).view(np.bool_)
    y = np.sign(x, out=out)
    # numpy's is NaN there, PyTorch's 0
    if x.dtype.kind not in "iu" and (unknown := np.isnan(y)).any():
        y = np.asarray(y)
        np.copyto(y, 0, where=unknown)
    return y


# math's functions raise at the edge of their domain, where arrays have infinity and NaN
def _log_of_number(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def _log1p_of_number(x: float) -> float:
    return math.log1p(x) if x > -1 else -math.inf if x == -1 else math.nan


def _numpy_log1p(x: Any) -> Any:
    return _log1p_of_number(x) if type(x) is float or type(x) is int else np.log1p(x)


def _numpy_log(x: Any) -> Any:
    return _log_of_number(x) if type(x) is float or type(x) is int else np.log(x)


def _numpy_pow(a: Any, b: Any) -> Any:
    return complex_power(a, b) if np.iscomplexobj(a) or np.iscomplexobj(b) else np.power(a, b)


def _numpy_horner(x: Any, coefficients: Any) -> Any:
    first, *rest = (x.dtype.type(c) for c in coefficients.value)
    y = np.full_like(x, first) if not rest else np.asarray(x * first)
    for i, c in enumerate(rest):
        if i:
            y *= x
        y += c
    return y


def _numpy_ratio(x: Any, function: Any) -> Any:
    above, below = function.value[2:] if x.dtype == np.float64 else function.value[:2]
    y = _numpy_horner(x, above)
    if len(below) > 1:
        y /= _numpy_horner(x, below)
    return y


def _numpy_choose(condition: Any, one: Callable[..., Any], other: Callable[..., Any], x: Any) -> Any:
    """Each formula on the elements that are its own: both everywhere would cost twice as much, and overflow where they do not serve."""
    chosen = np.count_nonzero(condition)
    if chosen == x.size:
        return one(x)
    if chosen == 0:
        return other(x)
    y, flat, mask = np.empty_like(x, order="C"), x.reshape(-1), condition.reshape(-1)
    for formula, own in ((one, np.flatnonzero(mask)), (other, np.flatnonzero(~mask))):
        y.reshape(-1)[own] = formula(flat[own])
    return y


def _numpy_square_rest(x: Any) -> Any:
    """By Veltkamp's and Dekker's exact product (Numerische Mathematik 18, 1971)."""
    if x.dtype == np.float32:  # float64 holds its square exactly
        wide = x.astype(np.float64)
        return (wide * wide - x * x).astype(np.float32)
    c = x * 134217729.0
    high = c - (c - x)
    low = x - high
    return ((high * high - x * x) + 2.0 * high * low) + low * low


def _numpy_whole_most(x: Any) -> int:
    known = x[np.isfinite(x)]
    return int(known.max()) if known.size else 0


on_numpy = types.SimpleNamespace(
    exp=np.exp, exp2=np.exp2, expm1=np.expm1, log=_numpy_log, log2=np.log2, log10=np.log10, log1p=_numpy_log1p, sin=np.sin, cos=np.cos,
    tan=np.tan, asin=np.arcsin, acos=np.arccos, atan=np.arctan, sinh=np.sinh, cosh=np.cosh, tanh=np.tanh, asinh=np.arcsinh,
    acosh=np.arccosh, atanh=np.arctanh, atan2=np.arctan2, hypot=np.hypot, erf=special.erf, normal_cdf=special.normal_cdf,
    pow=_numpy_pow, sqrt=np.sqrt, rsqrt=lambda x: 1.0 / np.sqrt(x), div=np.divide, abs=np.abs, floor=np.floor, ceil=np.ceil, trunc=np.trunc,
    rint=np.rint, fmod=np.fmod, maximum=np.maximum, minimum=np.minimum, neg=np.negative, zeros=np.zeros_like, ones=lambda x: 1.0, where=_numpy_where,
    sign=sign_of_array, floor_divide=np.floor_divide, trunc_divide=lambda a, b: np.trunc(np.divide(a, b)), sigmoid=lambda x: 1.0 / (1.0 + np.exp(-x)),
    one_minus_square=lambda x: (1.0 - x) * (1.0 + x), both=np.logical_and, either=np.logical_or, safe=_numpy_safe, chain=_numpy_chain, tame=_numpy_tame,
    chain_div=lambda g, a, d: _numpy_chain(g, np.divide(a, d)), gated=lambda g, x: g / (1.0 + np.exp(-x)), floor_quotient=np.floor_divide,
    signbit=np.signbit, erfc=special.erfc, horner=_numpy_horner, ratio=_numpy_ratio, choose=_numpy_choose, square_rest=_numpy_square_rest,
    whole_most=_numpy_whole_most, any=np.any,
    wide=lambda x: np.asarray(x).astype(np.float64, copy=False),
)  # fmt: skip


# --- on Tensors: every name is the op of that name, so a rule written with it is differentiable again
class _OnTensors:
    """Looks ops up when a rule runs."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return getattr(ops, name)

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        return (a if condition else b) if type(condition) is bool else ops.where(condition, a, b)

    def log(self, x: Any) -> Any:
        return _log_of_number(x) if isinstance(x, int | float) else ops.log(x)

    def log1p(self, x: Any) -> Any:
        return _log1p_of_number(x) if isinstance(x, int | float) else ops.log1p(x)

    def zeros(self, x: Any) -> Any:
        return ops.full(shape=tuple(x.shape), value=0, dtype=x._array.dtype, device=x.device)

    def ones(self, x: Any) -> float:
        return 1.0

    def both(self, a: Any, b: Any) -> Any:
        return ops.logical_and(a, b)

    def either(self, a: Any, b: Any) -> Any:
        return ops.logical_or(a, b)

    def safe(self, g: Any, d: Any) -> Any:
        if isinstance(d, int | float | complex):
            found = d if d != 0 else ops.cast(ops.eq(g, 0.0), dtype=g._array.dtype)  # of 0: 1, else 0 of d's sign
            return -found if d == 0 and not isinstance(d, complex) and math.copysign(1.0, d) < 0 else found
        return ops.where(ops.logical_and(ops.eq(g, 0.0), ops.eq(d, 0.0)), 1.0, d)

    def chain(self, g: Any, factor: Any) -> Any:
        return g * (factor if isinstance(factor, int | float | complex) else self.tame(g, factor))

    def tame(self, g: Any, y: Any) -> Any:
        if isinstance(g, int | float | complex):
            return y if g != 0 else ops.where(ops.ne(y - y, 0.0), 0.0, y)
        return ops.where(ops.logical_and(ops.eq(g, 0.0), ops.ne(y - y, 0.0)), 0.0, y)

    def chain_div(self, g: Any, a: Any, d: Any) -> Any:
        return self.chain(g, ops.div(a, d))

    gated = staticmethod(lambda g, x: g * ops.sigmoid(x))
    floor_quotient = staticmethod(lambda a, b: ops.floor_divide(a, b))

    def one_minus_square(self, x: Any) -> Any:
        return ops.one_minus_square(x)

    def horner(self, x: Any, coefficients: Any) -> Any:
        first, *rest = coefficients.value
        y = x * 0.0 + first
        for c in rest:
            y = y * x + c
        return y

    def normal_cdf(self, x: Any) -> Any:
        return 0.5 * ops.erfc(x * -math.sqrt(0.5))


on_tensors = _OnTensors()


def body(formula: Any) -> types.FunctionType:
    """The Python function under a `@triton.jit` formula, compiled or interpreted."""
    return formula.fn


def translate(formula: Any, backend: Any) -> types.FunctionType:
    """A formula's body as a function of numpy arrays (`on_numpy`) or Tensors (`on_tensors`): `maths` in it means that back end.

    Formulas that it names are translated too, also those of modules in kernels/parts/special, which on Tensors are the ops of their names. A back end
    may have `modules`, by name: what stands for others (see tapes/oracle.py).
    """
    fn = body(formula)
    if fn.__module__ == _MATHS:  # a function of maths as a formula: its body is Triton's own
        return getattr(backend, fn.__name__)  # type: ignore[no-any-return]
    if fn.__module__ == _DRAWS:
        return getattr(vars(backend).get("draws", draws_on_cpu.on_numpy), fn.__name__)  # type: ignore[no-any-return]
    names: dict[str, Any] = {**fn.__globals__, "maths": backend}
    for name in fn.__code__.co_names:
        other = fn.__globals__.get(name)
        if isinstance(other, types.ModuleType) and other.__name__ == _MATHS:
            names[name] = backend  # also where it was imported under another name
        elif (path := _module_path(other)) in vars(backend).get("modules", ()):
            names[name] = backend.modules[path]
        elif isinstance(getattr(other, "fn", None), types.FunctionType):
            names[name] = translate(other, backend)
        elif isinstance(other, types.ModuleType) and other.__name__.startswith(_SPECIAL):
            # on Tensors a special function is an op, whose own rule is differentiated
            names[name] = backend if backend is on_tensors else _TranslatedModule(other, backend)
    return types.FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__)


def _module_path(other: Any) -> str:
    """The name of a module, imported or not yet; empty for anything else."""
    return other.path if isinstance(other, unread.Name) else other.__name__ if isinstance(other, types.ModuleType) else ""


def in_numpy(formula: Any) -> types.FunctionType:
    """A formula's body as a function of numpy arrays and numbers."""
    return translate(formula, on_numpy)


_SPECIAL, _MATHS, _DRAWS = f"{__package__}.special", f"{__package__}.maths", f"{__package__}.random_words.draws"


def untranslatable_calls(formula: Any, seen: frozenset[int] = frozenset()) -> list[str]:
    """Complaints about what a gradient formula calls that numpy and Tensors have not: functions of Triton's, names that `maths` has not."""
    fn = body(formula)
    problems: list[str] = []
    module: types.ModuleType | None = None
    called = ""  # as the formula calls the module: tl
    for step in dis.get_instructions(fn):
        if step.opname == "LOAD_GLOBAL":
            other = fn.__globals__.get(step.argval)
            module, called = (other, step.argval) if isinstance(other, types.ModuleType) else (None, "")
            if isinstance(getattr(other, "fn", None), types.FunctionType) and id(other) not in seen:
                problems += untranslatable_calls(other, seen | {id(other)})
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD") and module is not None:
            problems += _complaints_about_name(fn, module, called, step.argval)
            module = None
        elif step.opname not in ("PRECALL", "CACHE", "PUSH_NULL"):
            module = None
    return list(dict.fromkeys(problems))


def _complaints_about_name(fn: types.FunctionType, module: types.ModuleType, called: str, name: str) -> list[str]:
    is_maths = module.__name__ == _MATHS
    if not (is_maths and not hasattr(on_numpy, name)) and not module.__name__.startswith("triton."):
        return []
    near = difflib.get_close_matches(name, vars(on_numpy), 1)
    why = "which maths has not" if is_maths else "which numpy and tensors have not: the formula runs on them too"
    mend = f"; did you mean maths.{near[0]}?" if near else "; write it with operators and functions of tritensor.kernels.parts.maths"
    return [f"{fn.__name__} in {Path(fn.__code__.co_filename).name}:{fn.__code__.co_firstlineno} calls {called}.{name}, {why}{mend}"]


def gradient_rules(op: str, gradients: tuple[Any, ...], bent: bool = False) -> tuple[Any, ...]:
    """The gradients of an elementwise op as its rule; `bent` where they are constant but for jumps. Raises RegistrationError for what only a kernel
    could call."""
    problems = [p for f in gradients if f is not None for p in untranslatable_calls(f)]
    if problems:
        raise RegistrationError(f"op {op!r} was not registered:\n" + "\n".join(f"  - the gradient {p}" for p in dict.fromkeys(problems)))
    found = tuple(None if f is None else translate(f, on_tensors) for f in gradients)
    return tuple(None if f is None else _with_zeros(f) for f in found) if bent else found


def _with_zeros(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule whose result stays in the graph of the value that it depends on by jumps alone: its own gradient is zeros, as in PyTorch, and not missing."""

    @functools.wraps(rule)
    def with_zeros(g: Any, value: Any, *attributes: Any) -> Any:
        found = rule(g, value, *attributes)
        if found._tracked or not value._tracked:
            return found
        always = ops.full(shape=(), value=True, dtype=np.dtype(bool), device=value.device)
        return ops.where(always, found, ops.sign(value))

    return with_zeros


class _TranslatedModule:
    """The formulas of a module for another back end, translated when they are first asked for: a module of special functions holds a hundred."""

    def __init__(self, module: types.ModuleType, backend: Any) -> None:
        self._module, self._backend = module, backend

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        made = translate(found, self._backend) if isinstance(getattr(found, "fn", None), types.FunctionType) else found
        setattr(self, name, made)
        return made
