"""Numpy stand-ins for CUDA's libdevice functions, by symbol name: what the emulated device computes with."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def _each(function: Callable[..., float]) -> Callable[..., np.ndarray]:
    """A function of Python floats, over arrays; its domain errors become NaN and its overflows infinity, as in C."""

    def safe(*args: float) -> float:
        try:
            return function(*args)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return np.vectorize(safe, otypes=[np.float64])


def _round_away(x: np.ndarray) -> np.ndarray:
    """Nearest integer, halves away from zero (C's round)."""
    whole = np.trunc(x)
    return whole + np.where(np.abs(x - whole) >= 0.5, np.copysign(1.0, x), 0.0)


_vector_erf = _each(math.erf)


def _erfinv(y: np.ndarray) -> np.ndarray:
    """Inverse of erf: Winitzki's approximation, then Newton steps on erf(x) - y."""
    log = np.log1p(-y * y)
    first = 2 / (math.pi * 0.147) + log / 2
    x = np.copysign(np.sqrt(np.sqrt(first * first - log / 0.147) - first), y)
    inside = np.abs(y) < 1
    for _ in range(4):
        step = (_vector_erf(x) - y) / (2 / math.sqrt(math.pi) * np.exp(-x * x))
        x = np.where(inside & np.isfinite(step), x - step, x)
    return np.where(inside, x, np.where(np.abs(y) == 1, np.copysign(np.inf, y), np.nan))


def _ldexp(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.ldexp(x, n.astype(np.int32))


# Evaluated in float64 and rounded once to the result's type.
_REAL: dict[str, Callable[..., np.ndarray]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atan2": np.arctan2,
    "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh,
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)), "erf": _vector_erf, "erfc": _each(math.erfc), "erfinv": _erfinv, "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x), "exp2": np.exp2, "expm1": np.expm1, "fabs": np.abs, "fdim": lambda x, y: np.fmax(x - y, 0.0),
    "floor": np.floor, "fmod": np.fmod, "hypot": np.hypot, "ldexp": _ldexp, "lgamma": _each(math.lgamma), "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logb": lambda x: np.floor(np.log2(np.abs(x))), "nearbyint": np.rint,
    "normcdf": lambda x: 0.5 * _each(math.erfc)(-x / math.sqrt(2.0)), "pow": np.power, "powi": np.power, "rcbrt": lambda x: 1 / np.cbrt(x),
    "remainder": _each(math.remainder), "rhypot": lambda x, y: 1 / np.hypot(x, y), "rint": np.rint, "round": _round_away,
    "rsqrt": lambda x: 1 / np.sqrt(x), "saturate": lambda x: np.clip(x, 0.0, 1.0), "scalbn": _ldexp, "sin": np.sin, "sinh": np.sinh,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)), "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "tgamma": _each(math.gamma),
    "trunc": np.trunc,
}  # fmt: skip

# Evaluated in the arguments' own type: rounding and bits matter.
_NATIVE: dict[str, Callable[..., Any]] = {
    "add_rn": np.add, "sub_rn": np.subtract, "mul_rn": np.multiply, "div_rn": np.divide, "sqrt_rn": np.sqrt, "rcp_rn": np.reciprocal,
    "nextafter": np.nextafter,
}  # fmt: skip

_TABLE: dict[str, Callable[..., Any]] = {
    "isnanf": np.isnan, "isnand": np.isnan, "isinff": np.isinf, "isinfd": np.isinf, "finitef": np.isfinite, "isfinited": np.isfinite,
    "signbitf": np.signbit, "signbitd": np.signbit, "frsqrt_rn": lambda x: (1 / np.sqrt(x.astype(np.float64))).astype(x.dtype),
    "float_as_int": lambda x: x.view(np.int32), "float_as_uint": lambda x: x.view(np.uint32), "int_as_float": lambda x: x.view(np.float32),
    "uint_as_float": lambda x: x.view(np.float32), "double_as_longlong": lambda x: x.view(np.int64),
    "longlong_as_double": lambda x: x.view(np.float64), "popc": np.bitwise_count, "popcll": np.bitwise_count,
    "abs": np.abs, "llabs": np.abs, "llrint": np.rint, "llrintf": np.rint, "llround": _round_away, "llroundf": _round_away,
    "fast_fdividef": np.divide,
}  # fmt: skip


def _in_float64(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda *args: function(*(a.astype(np.float64) for a in args))


for _name, _function in _REAL.items():
    _TABLE[_name] = _TABLE[_name + "f"] = _in_float64(_function)
    if _name in ("cos", "sin", "tan", "exp", "exp10", "log", "log2", "log10", "pow"):
        _TABLE[f"fast_{_name}f"] = _TABLE[_name]
for _name, _function in _NATIVE.items():
    for _spelling in (f"f{_name}", f"d{_name}", _name, f"{_name}f"):
        _TABLE[_spelling] = _function


def stand_in(symbol: str, args: Sequence[np.ndarray]) -> np.ndarray:
    """The value of libdevice function `symbol` (`__nv_erff`); raises NotImplementedError, naming it, for one that is not here."""
    function = _TABLE.get(symbol.removeprefix("__nv_"))
    if function is None:
        raise NotImplementedError(
            f"libdevice {symbol} has no numpy stand-in on the emulated device; add one to tritensor/cuda/libdevice.py"
        )
    return function(*(np.ascontiguousarray(a).reshape(np.shape(a)) for a in args))
