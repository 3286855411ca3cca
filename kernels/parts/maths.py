"""Scalar mathematics in Triton kernels: the functions of which elementwise formulas are made.

A formula is written once, `g * (1.0 - y * y)`, with functions of this module only; `backends` makes of it numpy and a rule on Tensors.
Triton's own exp, sqrt and / are approximate; these keep the promise of 4 ULP in float32, and of exact division and roots.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def _beside(x, other):
    """x; a number that the kernel's text holds as a value of the other's type, for functions that ask both for their types."""
    return x if hasattr(x, "dtype") else tl.full((), x, other.dtype)


_LEAST_32: tl.constexpr = tl.constexpr(-(2**31))
_LEAST_64: tl.constexpr = tl.constexpr(-(2**63))


# beyond 2^63 the hardware's conversion goes to the nearest end, x86's to the least number
@triton.jit
def _in_64_bits(x):
    return tl.where(x < 9223372036854775808.0, x.to(tl.int64), _LEAST_64)


@triton.jit
def stored(x, KIND: tl.constexpr):
    """x as a type in memory. Floats are cut to whole numbers. Those that 32 bits do not hold, NaN too, are -2^31 as int32, 64 bits -2^63 as int64; a
    narrower integer has the low bits of int32, uint32 those of int64: what x86 processors make of them, and PyTorch there. The GPU's own conversion
    goes to the nearest end, and 0 for NaN; so it agrees below."""
    if x.dtype.is_floating() and KIND.is_int() and KIND.primitive_bitwidth > 1:
        if tl.uint64 == KIND:
            # the upper half by way of the lower, which a signed conversion holds
            top = _in_64_bits(x - 9223372036854775808.0) ^ _LEAST_64
            y = tl.where(x >= 9223372036854775808.0, top, _in_64_bits(x)).to(KIND)
        elif tl.int64 == KIND or tl.uint32 == KIND:
            y = _in_64_bits(x).to(KIND)
        else:
            y = tl.where(x < 2147483648.0, x.to(tl.int32), _LEAST_32).to(KIND)
    else:
        y = x.to(KIND)
    return y


# Values are float32, float64 or integers; of a function of two, one may be a plain number. libdevice's functions keep 4 ULP where Triton's own exp and
# log, of one hardware instruction, are off by 64 at the end of their range.
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
    return libdevice.atan2(_beside(a, b), _beside(b, a))


@triton.jit
def hypot(a, b):
    return libdevice.hypot(_beside(a, b), _beside(b, a))


@triton.jit
def erf(x):
    return libdevice.erf(x)


@triton.jit
def erfc(x):
    return libdevice.erfc(x)


# below 0 one plus the error function would cancel: a function of its own
@triton.jit
def normal_cdf(x):
    return libdevice.normcdf(x)


@triton.jit
def pow(a, b):
    return libdevice.pow(_beside(a, b), _beside(b, a))


@triton.jit
def sqrt(x):
    """sqrt(x) rounded to nearest."""
    # tl.sqrt of float32 is approximate, of float64 there is no other
    return tl.sqrt_rn(x) if x.dtype == tl.float32 else tl.sqrt(x)


@triton.jit
def div(a, b):
    """a / b rounded to nearest in a's precision."""
    a, b = _beside(a, b), _beside(b, a)
    # `/` of float32 is approximate, of float64 rounded right
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


# tl.maximum drops a NaN, PyTorch keeps it
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
    return libdevice.fmod(_beside(a, b), _beside(b, a))


@triton.jit
def neg(x):
    """-x; of a float by a product, which turns the sign of 0, too (Triton 3.6 computes 0 - x)."""
    return x * -1.0 if x.dtype.is_floating() else -x


@triton.jit
def sign(x):
    """1, 0 or -1; 0 of NaN."""
    return tl.where(x > 0, ones(x), tl.where(x < 0, -ones(x), tl.zeros_like(x)))


@triton.jit
def floor_divide(a, b):
    """floor(a / b) from the exact remainder: a / b may round up to a whole number. A step function."""
    r = fmod(a, b)
    q = div(a - r, b)  # nearly whole: a - r is a multiple of b but for one rounding
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


# as in PyTorch, where a `where` upstream has cut an infinite slope off
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


@triton.jit
def signbit(x):
    """Whether the sign's bit is set, also of -0 and of NaN; of integers whether they are negative."""
    if x.dtype == tl.float32:
        y = x.to(tl.int32, bitcast=True) < 0
    elif x.dtype == tl.float64:
        y = x.to(tl.int64, bitcast=True) < 0
    else:
        y = x < 0
    return y


# approximations by polynomials and quotients of them
class Coefficients(tl.constexpr):
    """Coefficients of a polynomial, the highest power first, known when a kernel is compiled."""

    def __len__(self) -> int:
        return len(self.value)


@triton.jit
def horner(x, C: tl.constexpr):
    """c0 x^n + ... + cn by Horner's rule."""
    y = tl.zeros_like(x) + C[0]  # of x's type: a constant alone is float32
    for i in tl.static_range(1, len(C)):
        y = y * x + C[i]
    return y


class Ratio(tl.constexpr):
    """A rational function, known when a kernel is compiled: p / q in float32, r / s in float64, coefficients from the highest power down."""

    def __init__(self, p: tuple[float, ...], q: tuple[float, ...], r: tuple[float, ...], s: tuple[float, ...]) -> None:
        super().__init__(tuple(map(Coefficients, (p, q, r, s))))


@triton.jit
def ratio(x, F: tl.constexpr):
    """F(x) of a Ratio F."""
    if x.dtype == tl.float64:
        y = horner(x, F[2])
        if len(F[3]) > 1:
            y = y / horner(x, F[3])
    else:
        # fewer coefficients are enough for 24 bits
        y = horner(x, F[0])
        if len(F[1]) > 1:
            y = tl.div_rn(y, horner(x, F[1]))
    return y


# a GPU's warp takes both ways anyway where its threads disagree
@triton.jit
def choose(condition, one, other, x):
    """one(x) where condition, else other(x), of two formulas. numpy evaluates each where it is needed."""
    return tl.where(condition, one(x), other(x))


@triton.jit
def square_rest(x):
    """x * x - the product as it is rounded, exactly."""
    return tl.fma(x, x, -(x * x))


@triton.jit
def wide(x):
    """x in float64."""
    return x.to(tl.float64)


@triton.jit
def whole_most(x):
    """The largest element of a tile of whole numbers, as an int."""
    # held below 2^31: what is larger, infinity among it, has no int32
    return tl.max(tl.max(tl.minimum(x, 2147483000.0).to(tl.int32), 1), 0)


@triton.jit
def any(condition):
    """Whether a condition holds anywhere in a tile."""
    return tl.max(tl.max(condition.to(tl.int32), 1), 0) > 0
