"""Numpy stand-ins for CUDA's libdevice functions, by symbol name: what the emulated device computes with."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from statistics import NormalDist
from typing import Any

import numpy as np

from tritensor.cuda.emulator.instructions.arithmetic import fma, to_integer, umulhi


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


_vector_erfc = _each(math.erfc)


def _normcdf(x: np.ndarray) -> np.ndarray:
    """erfc(z) / 2, z = -x / sqrt(2), with what rounding took off z put right by the slope of erfc: it counts 2 z^2 times."""
    exact = -np.clip(x, -40.0, 40.0).astype(np.longdouble) / np.sqrt(np.longdouble(2))
    z = exact.astype(np.float64)
    lost = (exact - z).astype(np.float64)
    return 0.5 * (_vector_erfc(z) - lost * (2 / math.sqrt(math.pi)) * np.exp(-z * z))


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


def _exponent(x: np.ndarray) -> np.ndarray:
    """The whole exponent of a power of two that is in x."""
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), np.frexp(x)[1] - 1, np.abs(x)))


def _whole_exponent(x: np.ndarray) -> np.ndarray:
    """The same as an int32: its smallest value for 0 and NaN, its largest for infinity."""
    limits = np.iinfo(np.int32)
    kept = np.clip(np.nan_to_num(_exponent(x), nan=limits.min), limits.min, limits.max)
    return kept.astype(np.int32)


def _from_c(name: str) -> Callable[..., np.ndarray]:
    """The C library's function of that name: of (x), or of (order, x) where the name ends with n, a Bessel function."""
    function = getattr(ctypes.CDLL("libm.so.6"), name)
    order = [ctypes.c_int] if name.endswith("n") else []
    function.argtypes, function.restype = [*order, ctypes.c_double], ctypes.c_double
    return np.vectorize(lambda *args: function(*map(int, args[:-1]), args[-1]), otypes=[np.float64])


def _bessel_i(order: int) -> Callable[[np.ndarray], np.ndarray]:
    """The modified Bessel function of order 0 or 1, by its power series."""

    def series(x: np.ndarray) -> np.ndarray:
        term = total = (x / 2) ** order
        for k in range(1, 300):
            term = term * (x / 2) ** 2 / (k * (k + order))
            total = total + term
        return total

    return series


def _erfcx(x: np.ndarray) -> np.ndarray:
    """exp(x^2) erfc(x); far out by the first terms of its expansion."""
    near, far = np.minimum(x, 20.0), np.maximum(x, 20.0)
    return np.where(x < 20.0, np.exp(near * near) * _each(math.erfc)(near), (1 - 0.5 / far**2 + 0.75 / far**4) / (far * math.sqrt(math.pi)))


_normcdfinv = _each(lambda p: NormalDist().inv_cdf(p) if 0 < p < 1 else {0.0: -math.inf, 1.0: math.inf}.get(p, math.nan))


def _ldexp(x: np.ndarray, n: np.ndarray) -> np.ndarray:
    return np.ldexp(x, n.astype(np.int32))


def _to_long(rounded: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: to_integer(rounded(x), np.dtype(np.int64))


# Evaluated in float64 and rounded once to the result's type.
_REAL: dict[str, Callable[..., np.ndarray]] = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atan2": np.arctan2,
    "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh,
    "cospi": lambda x: np.cos(np.pi * np.fmod(x, 2.0)), "erf": _vector_erf, "erfc": _vector_erfc, "erfinv": _erfinv, "exp": np.exp,
    "exp10": lambda x: np.power(10.0, x), "exp2": np.exp2, "expm1": np.expm1, "fabs": np.abs, "fdim": lambda x, y: np.where(x <= y, 0.0, x - y),
    "floor": np.floor, "fmod": np.fmod, "hypot": np.hypot, "ldexp": _ldexp, "lgamma": _from_c("lgamma"), "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logb": _exponent, "nearbyint": np.rint,
    "normcdf": _normcdf, "pow": np.power, "powi": np.power, "rcbrt": lambda x: 1 / np.cbrt(x),
    "remainder": _each(math.remainder), "rhypot": lambda x, y: 1 / np.hypot(x, y), "rint": np.rint, "round": _round_away,
    "rsqrt": lambda x: 1 / np.sqrt(x), "saturate": lambda x: np.clip(np.nan_to_num(x, nan=0.0), 0.0, 1.0), "scalbn": _ldexp, "sin": np.sin, "sinh": np.sinh,
    "sinpi": lambda x: np.sin(np.pi * np.fmod(x, 2.0)), "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "tgamma": _from_c("tgamma"),
    "trunc": np.trunc, "j0": _from_c("j0"), "j1": _from_c("j1"), "jn": _from_c("jn"), "y0": _from_c("y0"), "y1": _from_c("y1"),
    "yn": _from_c("yn"), "cyl_bessel_i0": _bessel_i(0), "cyl_bessel_i1": _bessel_i(1), "erfcx": _erfcx, "normcdfinv": _normcdfinv,
    "erfcinv": lambda y: -_normcdfinv(y / 2) / math.sqrt(2.0), "norm3d": lambda *v: np.sqrt(sum(x * x for x in v)),
    "norm4d": lambda *v: np.sqrt(sum(x * x for x in v)), "rnorm3d": lambda *v: 1 / np.sqrt(sum(x * x for x in v)),
    "rnorm4d": lambda *v: 1 / np.sqrt(sum(x * x for x in v)),
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
    "abs": np.abs, "llabs": np.abs, "llrint": _to_long(np.rint), "llrintf": _to_long(np.rint),
    "llround": _to_long(_round_away), "llroundf": _to_long(_round_away), "fast_fdividef": np.divide,
}  # fmt: skip


# Integers, by their bits
def _leading_zeros(x: np.ndarray) -> np.ndarray:
    bits = x.dtype.itemsize * 8
    return np.vectorize(lambda v: bits - (int(v) & (1 << bits) - 1).bit_length(), otypes=[np.int32])(x)


def _first_set(x: np.ndarray) -> np.ndarray:
    """The place of the lowest bit that is set, counted from 1; 0 for 0."""
    return np.vectorize(lambda v: (int(v) & -int(v)).bit_length(), otypes=[np.int32])(x)


def _reversed_bits(x: np.ndarray) -> np.ndarray:
    bits = x.dtype.itemsize * 8
    turned = np.vectorize(lambda v: int(format(int(v) & (1 << bits) - 1, f"0{bits}b")[::-1], 2), otypes=[np.uint64])(x)
    return turned.astype(f"u{x.dtype.itemsize}").view(x.dtype)


def _byte_perm(x: np.ndarray, y: np.ndarray, selector: np.ndarray) -> np.ndarray:
    """Four of the eight bytes of (x, y), which one each of the selector's half-bytes says."""
    both = x.astype(np.int64) & 0xFFFFFFFF | y.astype(np.int64) << 32
    found = sum((both >> 8 * (selector.astype(np.int64) >> 4 * i & 7) & 0xFF) << 8 * i for i in range(4))
    return np.asarray(found).astype(np.uint32).view(np.int32)


def _average(up: int) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    return lambda x, y: ((x.astype(np.int64) + y.astype(np.int64) + up) >> 1).astype(x.dtype)


def _low_24(x: np.ndarray) -> np.ndarray:
    return x.astype(np.int64) << 40 >> 40 if x.dtype.kind == "i" else x.astype(np.int64) & 0xFFFFFF


def _product_24(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (_low_24(x) * _low_24(y)).astype(x.dtype)


_TABLE |= {
    "clz": _leading_zeros, "clzll": _leading_zeros, "ffs": _first_set, "ffsll": _first_set, "brev": _reversed_bits,
    "brevll": _reversed_bits, "byte_perm": _byte_perm, "hadd": _average(0), "uhadd": _average(0), "rhadd": _average(1),
    "urhadd": _average(1), "sad": lambda x, y, z: np.abs(x.astype(np.int64) - y) + z, "usad": lambda x, y, z: np.abs(x.astype(np.int64) - y) + z,
    "mul24": _product_24, "umul24": _product_24, "ilogb": _whole_exponent, "ilogbf": _whole_exponent,
    "double2hiint": lambda x: (x.view(np.int64) >> 32).astype(np.int32), "double2loint": lambda x: x.view(np.int64).astype(np.int32),
    "hiloint2double": lambda high, low: (high.astype(np.int64) << 32 | low.astype(np.int64) & 0xFFFFFFFF).view(np.float64),
}  # fmt: skip
_TABLE |= {f"{name}hi": umulhi for name in ("umul", "umul64")}
_TABLE |= {f"{name}hi": lambda x, y: umulhi(x, y) - np.where(x < 0, y, 0) - np.where(y < 0, x, 0) for name in ("mul", "mul64")}


# Conversions, named for their rounding: to nearest even, towards zero, down, up
_ROUNDED: dict[str, Callable[[np.ndarray], np.ndarray]] = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
_NUMBERS = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64, "float": np.float32, "double": np.float64}


def _rounded_to_integer(mode: str, to: Any) -> Callable[[np.ndarray], np.ndarray]:
    return lambda x: to_integer(_ROUNDED[mode](x.astype(np.float64)), np.dtype(to), x.dtype)


def _rounded_to_float(mode: str, to: Any) -> Callable[[np.ndarray], np.ndarray]:
    """The nearest float, or its neighbour on the side that the rounding asks for."""

    def convert(x: np.ndarray) -> np.ndarray:
        nearest, exact = x.astype(to), x.astype(np.longdouble)  # of 64 bits: it holds every integer and double
        if mode == "rn":
            return nearest
        low, high = np.nextafter(nearest, to(-np.inf)), np.nextafter(nearest, to(np.inf))
        down = np.where(nearest.astype(np.longdouble) > exact, low, nearest)
        up = np.where(nearest.astype(np.longdouble) < exact, high, nearest)
        return {"rd": down, "ru": up, "rz": np.where(x < 0, up, down)}[mode]

    return convert


def _directed(mode: str, nearest: Callable[..., np.ndarray], above: Callable[..., int]) -> Callable[..., np.ndarray]:
    """Arithmetic that rounds down, up or towards zero: of the nearest float or its neighbour the one on that side.

    `above(result, *operands)`, in fractions, is positive where a result is larger than the exact value, negative where it is smaller, 0 where it is that."""

    def exact(result: float, *operands: float) -> int:
        if not all(map(math.isfinite, operands)) or math.isnan(result):
            return 0
        if math.isinf(result):
            return 0 if nearest is np.divide and operands[-1] == 0 else 1 if result > 0 else -1
        return above(Fraction(result), *map(Fraction, operands))

    def rounded(*operands: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            found = nearest(*operands)
        off = np.vectorize(lambda *v: exact(*map(float, v)), otypes=[np.int8])(found, *operands)
        down = np.where(off > 0, np.nextafter(found, found.dtype.type(-np.inf)), found)
        up = np.where(off < 0, np.nextafter(found, found.dtype.type(np.inf)), found)
        return {"rd": down, "ru": up, "rz": np.where(np.signbit(found), up, down)}[mode]

    return rounded


def _sign(x: Fraction) -> int:
    return (x > 0) - (x < 0)


_INEXACT: dict[str, tuple[Callable[..., np.ndarray], Callable[..., int]]] = {
    "add": (np.add, lambda r, x, y: _sign(r - x - y)), "sub": (np.subtract, lambda r, x, y: _sign(r - x + y)),
    "mul": (np.multiply, lambda r, x, y: _sign(r - x * y)), "div": (np.divide, lambda r, x, y: _sign(r - x / y)),
    "fma": (fma, lambda r, x, y, z: _sign(r - x * y - z)), "sqrt": (np.sqrt, lambda r, x: _sign(r * r - x)),
}  # fmt: skip
for _mode in ("rd", "ru", "rz"):
    for _name, (_nearest, _above) in _INEXACT.items():
        _function = _directed(_mode, _nearest, _above)
        for _spelling in (f"fmaf_{_mode}", f"fma_{_mode}") if _name == "fma" else (f"f{_name}_{_mode}", f"d{_name}_{_mode}"):
            _TABLE[_spelling] = _function
    for _spelling in (f"frcp_{_mode}", f"drcp_{_mode}"):
        _TABLE[_spelling] = lambda x, divided=_TABLE[f"fdiv_{_mode}"]: divided(np.ones_like(x), x)
for _mode in _ROUNDED:
    for _from in ("float", "double"):
        for _to in ("int", "uint", "ll", "ull"):
            _TABLE[f"{_from}2{_to}_{_mode}"] = _rounded_to_integer(_mode, _NUMBERS[_to])
            _TABLE[f"{_to}2{_from}_{_mode}"] = _rounded_to_float(_mode, _NUMBERS[_from])
    _TABLE[f"double2float_{_mode}"] = _rounded_to_float(_mode, np.float32)


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
            f"libdevice {symbol} has no numpy stand-in on the emulated device; add one to tritensor/cuda/emulator/instructions/libdevice.py"
        )
    return function(*(np.ascontiguousarray(a).reshape(np.shape(a)) for a in args))
