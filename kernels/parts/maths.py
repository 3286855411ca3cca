"""Scalar mathematics, every function spelled three times: for Triton kernels, for numpy arrays and for Tensors.

A formula of an elementwise op is written once, `g * (1.0 - y * y)`, with functions of this module only. Its body serves as a
kernel (the functions below), as numpy (`on_numpy`) and as a differentiable rule on Tensors (`on_tensors`): see `twin`.
Triton's own exp, sqrt and / are approximate; these keep the promise of 4 ULP in float32, and of exact division and roots.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice

from tritensor.table import ops


# --- in kernels: values are float32, float64 or integers
@triton.jit
def exp(x):
    return libdevice.exp(x)


@triton.jit
def exp2(x):
    return libdevice.exp2(x)


@triton.jit
def expm1(x):
    return libdevice.expm1(x)


@triton.jit
def log(x):
    return libdevice.log(x)


@triton.jit
def log2(x):
    return libdevice.log2(x)


@triton.jit
def log10(x):
    return libdevice.log10(x)


@triton.jit
def log1p(x):
    return libdevice.log1p(x)


@triton.jit
def sin(x):
    return libdevice.sin(x)


@triton.jit
def cos(x):
    return libdevice.cos(x)


@triton.jit
def tan(x):
    return libdevice.tan(x)


@triton.jit
def asin(x):
    return libdevice.asin(x)


@triton.jit
def acos(x):
    return libdevice.acos(x)


@triton.jit
def atan(x):
    return libdevice.atan(x)


@triton.jit
def sinh(x):
    return libdevice.sinh(x)


@triton.jit
def cosh(x):
    return libdevice.cosh(x)


@triton.jit
def tanh(x):
    return libdevice.tanh(x)


@triton.jit
def asinh(x):
    return libdevice.asinh(x)


@triton.jit
def acosh(x):
    return libdevice.acosh(x)


@triton.jit
def atanh(x):
    return libdevice.atanh(x)


@triton.jit
def atan2(a, b):
    return libdevice.atan2(a, b)


@triton.jit
def hypot(a, b):
    return libdevice.hypot(a, b)


@triton.jit
def erf(x):
    return libdevice.erf(x)


@triton.jit
def erfc(x):
    return libdevice.erfc(x)


@triton.jit
def normal_cdf(x):
    return libdevice.normcdf(x)


@triton.jit
def pow(a, b):
    return libdevice.pow(a, b)


@triton.jit
def sqrt(x):
    """sqrt(x) rounded to nearest."""
    return tl.sqrt_rn(x) if x.dtype == tl.float32 else tl.sqrt(x)


@triton.jit
def div(a, b):
    """a / b rounded to nearest in a's precision."""
    if a.dtype == tl.float64:
        q = a / b.to(tl.float64)
    else:
        q = tl.div_rn(a, b.to(tl.float32))
    return q


@triton.jit
def rsqrt(x):
    """1 / sqrt(x) within 2 ULP, of one instruction in float32."""
    return libdevice.rsqrt(x)


@triton.jit
def abs(x):
    return tl.abs(x)


@triton.jit
def floor(x):
    return libdevice.floor(x)


@triton.jit
def ceil(x):
    return libdevice.ceil(x)


@triton.jit
def trunc(x):
    return libdevice.trunc(x)


@triton.jit
def rint(x):
    return libdevice.rint(x)


@triton.jit
def where(condition, a, b):
    return tl.where(condition, a, b)


@triton.jit
def zeros(x):
    return tl.zeros_like(x)


@triton.jit
def ones(x):
    return tl.zeros_like(x) + 1


@triton.jit
def maximum(a, b):
    """The larger; NaN if either is."""
    return tl.where((a > b) | (a != a), a, b)


@triton.jit
def minimum(a, b):
    """The smaller; NaN if either is."""
    return tl.where((a < b) | (a != a), a, b)


@triton.jit
def fmod(a, b):
    """Remainder with the sign of a, exact."""
    return libdevice.fmod(a, b)


@triton.jit
def sign(x):
    """1, 0 or -1; 0 of NaN."""
    return tl.where(x > 0, ones(x), tl.where(x < 0, -ones(x), tl.zeros_like(x)))


@triton.jit
def floor_divide(a, b):
    """floor(a / b) from the exact remainder: a / b may round up to a whole number. A step function."""
    r = fmod(a, b)
    q = div(a - r, b)
    q = tl.where((r != 0) & ((r < 0) != (b < 0)), q - 1.0, q)
    whole = floor(q)
    whole = tl.where(q - whole > 0.5, whole + 1.0, whole)
    return tl.where(b == 0, div(a, b), whole)


@triton.jit
def trunc_divide(a, b):
    """a / b without its fraction. A step function."""
    return trunc(div(a, b))


@triton.jit
def sigmoid(x):
    return div(ones(x), 1.0 + exp(-x))


@triton.jit
def one_minus_square(x):
    """1 - x^2, as a product that cancels nothing where x is near 1."""
    return (1.0 - x) * (1.0 + x)


@triton.jit
def both(a, b):
    """a and b, of truth values."""
    return a & b


@triton.jit
def either(a, b):
    """a or b, of truth values."""
    return a | b


@triton.jit
def safe(g, d):
    """d, but 1 where both g and d are 0: dividing by it gives 0 for an upstream zero, never 0/0."""
    return tl.where((g == 0) & (d == 0), 1.0, d)


@triton.jit
def chain(g, factor):
    """g * factor, but 0 where g is 0 even if the factor is infinite or NaN: an upstream zero wins."""
    return tl.where(g == 0, 0.0, g * factor)


@triton.jit
def tame(g, y):
    """y, but 0 where g is 0: products of g with it are 0 for an upstream zero, even where y is infinite or NaN."""
    return tl.where(g == 0, 0.0, y)


@triton.jit
def chain_div(g, a, d):
    """g * (a / d), but 0 where g is 0 whatever a / d is. Not the quotient but a is chosen: one register less to keep through a division."""
    return g * div(tl.where(g == 0, 0.0, a), d)


@triton.jit
def gated(g, x):
    """g sigmoid(x), in one division."""
    return div(g, 1.0 + exp(-x))


@triton.jit
def floor_quotient(a, b):
    """floor_divide within a rounding, without the loop of an exact remainder: a / b rounds up to a whole number where a - q b has not b's sign."""
    q = floor(div(a, b))
    r = tl.where(q == 0, a, tl.fma(-q, b, a))  # b may be infinite
    unknown = tl.where(b == 0, b, a)
    return tl.where((r != 0) & ((r < 0) != (b < 0)), q - 1.0, q) + (unknown - unknown)  # infinity has no whole part


# --- on numpy arrays
def _numpy_where(condition: Any, a: Any, b: Any) -> Any:
    return (a if condition else b) if type(condition) is bool else np.where(condition, a, b)


def _numpy_safe(g: Any, d: Any) -> Any:
    if not isinstance(d, np.ndarray | np.generic):  # a Python number, True and False among them
        return d if d != 0 else np.where(g == 0, g.dtype.type(1), g.dtype.type(d))  # of -0.0 the sign is kept
    return d if d.all() else np.where((g == 0) & (d == 0), d.dtype.type(1), d)


def _numpy_chain(g: Any, factor: Any) -> Any:
    out = g * factor
    if math.isnan(out.sum()):  # one pass without a temporary; the repair is rare
        out = np.where((g == 0) & ~np.isfinite(factor), out.dtype.type(0), out)
    return out


def _numpy_tame(g: Any, y: Any) -> Any:
    return y if math.isfinite(y.sum()) else np.where((g == 0) & ~np.isfinite(y), y.dtype.type(0), y)


def numpy_sign(x: np.ndarray, out: np.ndarray | None = None) -> Any:
    """numpy's sign, with 0 for NaN."""
    y = np.sign(x, out=out)
    if x.dtype.kind not in "iu" and (unknown := np.isnan(y)).any():
        y = np.asarray(y)
        np.copyto(y, 0, where=unknown)
    return y


def _log_of_number(x: float) -> float:
    return math.log(x) if x > 0 else -math.inf if x == 0 else math.nan


def _numpy_log(x: Any) -> Any:
    return _log_of_number(x) if type(x) is float or type(x) is int else np.log(x)


def numpy_erf(x: Any) -> Any:
    """Error function of an array (looked up when called: its module stands on this one's floor)."""
    from tritensor.kernels.parts.special import erf as evaluate

    return evaluate(x)


def numpy_normal_cdf(x: Any) -> Any:
    """Distribution function of the standard normal of an array."""
    from tritensor.kernels.parts.special import normal_cdf as evaluate

    return evaluate(x)


on_numpy = types.SimpleNamespace(
    exp=np.exp, exp2=np.exp2, expm1=np.expm1, log=_numpy_log, log2=np.log2, log10=np.log10, log1p=np.log1p, sin=np.sin, cos=np.cos,
    tan=np.tan, asin=np.arcsin, acos=np.arccos, atan=np.arctan, sinh=np.sinh, cosh=np.cosh, tanh=np.tanh, asinh=np.arcsinh,
    acosh=np.arccosh, atanh=np.arctanh, atan2=np.arctan2, hypot=np.hypot, erf=numpy_erf, normal_cdf=numpy_normal_cdf,
    pow=np.power, sqrt=np.sqrt, rsqrt=lambda x: 1.0 / np.sqrt(x), div=np.divide, abs=np.abs, floor=np.floor, ceil=np.ceil, trunc=np.trunc,
    rint=np.rint, fmod=np.fmod, maximum=np.maximum, minimum=np.minimum, zeros=np.zeros_like, ones=lambda x: 1.0, where=_numpy_where,
    sign=numpy_sign, floor_divide=np.floor_divide, trunc_divide=lambda a, b: np.trunc(np.divide(a, b)), sigmoid=lambda x: 1.0 / (1.0 + np.exp(-x)),
    one_minus_square=lambda x: (1.0 - x) * (1.0 + x), both=np.logical_and, either=np.logical_or, safe=_numpy_safe, chain=_numpy_chain, tame=_numpy_tame,
    chain_div=lambda g, a, d: _numpy_chain(g, np.divide(a, d)), gated=lambda g, x: g / (1.0 + np.exp(-x)), floor_quotient=np.floor_divide,
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

    def zeros(self, x: Any) -> Any:
        return ops.full(shape=tuple(x.shape), value=0, dtype=x.array.dtype, device=x.device)

    def ones(self, x: Any) -> float:
        return 1.0

    def both(self, a: Any, b: Any) -> Any:
        return ops.logical_and(a, b)

    def either(self, a: Any, b: Any) -> Any:
        return ops.logical_or(a, b)

    def safe(self, g: Any, d: Any) -> Any:
        if isinstance(d, int | float):
            found = d if d != 0 else ops.cast(ops.eq(g, 0.0), dtype=g.array.dtype)  # of 0: 1, else 0 of d's sign
            return found * -1.0 if d == 0 and math.copysign(1.0, d) < 0 else found  # not neg: that of Triton 3.6 makes 0 of 0
        return ops.where(ops.logical_and(ops.eq(g, 0.0), ops.eq(d, 0.0)), 1.0, d)

    def chain(self, g: Any, factor: Any) -> Any:
        return g * (factor if isinstance(factor, int | float) else self.tame(g, factor))

    def tame(self, g: Any, y: Any) -> Any:
        if isinstance(g, int | float):
            return y if g != 0 else ops.where(ops.ne(y - y, 0.0), 0.0, y)
        return ops.where(ops.logical_and(ops.eq(g, 0.0), ops.ne(y - y, 0.0)), 0.0, y)

    def chain_div(self, g: Any, a: Any, d: Any) -> Any:
        return self.chain(g, ops.div(a, d))

    gated = staticmethod(lambda g, x: g * ops.sigmoid(x))
    floor_quotient = staticmethod(lambda a, b: ops.floor_divide(a, b))

    def one_minus_square(self, x: Any) -> Any:
        return ops.one_minus_square(x)

    def normal_cdf(self, x: Any) -> Any:
        return 0.5 * ops.erfc(x * -math.sqrt(0.5))


on_tensors = _OnTensors()


def body(formula: Any) -> types.FunctionType:
    """The Python function under a `@triton.jit` formula, compiled or interpreted."""
    return formula.fn


def twin(formula: Any, spelling: Any) -> types.FunctionType:
    """A formula's body as a function of numpy arrays (`on_numpy`) or Tensors (`on_tensors`): `maths` in it means that spelling.

    Formulas that it calls from its own file become twins too.
    """
    fn = body(formula)
    names: dict[str, Any] = {**fn.__globals__, "maths": spelling}
    for name in fn.__code__.co_names:
        other = fn.__globals__.get(name)
        if isinstance(getattr(other, "fn", None), types.FunctionType):
            names[name] = twin(other, spelling)
    return types.FunctionType(fn.__code__, names, fn.__name__, fn.__defaults__)
