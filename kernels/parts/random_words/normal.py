"""Normal numbers from random words by Box and Muller, bit for bit the same in Triton and in numpy.

z0 = r cos(a), z1 = r sin(a), r = sqrt(-2 log u), u uniform on (0, 1], a uniform on the circle. The devices' own log, sin and cos
differ in their last bits, so they are spelled out here in additions and multiplications, each rounded once: log, sin and cos
of Cephes (Moshier) in float32 and of fdlibm (Sun) in float64. A compiler may fuse a product with a sum and round only once; in the
kernels every product is therefore libdevice's mul_rn, which no compiler fuses.
"""

from __future__ import annotations

import math

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice

LOG32 = (
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1, 2.0000714765e-1,
    -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
SIN32 = (-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
COS32 = (2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
LOG64 = (
    1.479819860511658591e-1, 1.531383769920937332e-1, 1.818357216161805012e-1, 2.222219843214978396e-1, 2.857142874366239149e-1,
    3.999999999940941908e-1, 6.666666666666735130e-1,
)  # fmt: skip
SIN64 = (
    1.58969099521155010221e-10, -2.50507602534068634195e-8, 2.75573137070700676789e-6, -1.98412698298579493134e-4,
    8.33333333332248946124e-3, -1.66666666666666324348e-1,
)  # fmt: skip
COS64 = (
    -1.13596475577881948265e-11, 2.08757232129817482790e-9, -2.75573143513906633035e-7, 2.48015872894767294178e-5,
    -1.38888888888741095749e-3, 4.16666666666666019037e-2,
)  # fmt: skip
HIGH32, LOW32 = 0.693359375, -2.12194440e-4  # log 2 in two parts
HIGH64, LOW64 = 6.93147180369123816490e-01, 1.90821492927058770002e-10
TURN32, TURN64 = 2 * math.pi / 2**32, 2 * math.pi / 2**64

_LOG32, _SIN32, _COS32 = tl.constexpr(LOG32), tl.constexpr(SIN32), tl.constexpr(COS32)
_LOG64, _SIN64, _COS64 = tl.constexpr(LOG64), tl.constexpr(SIN64), tl.constexpr(COS64)
_HIGH32, _LOW32, _HIGH64, _LOW64 = tl.constexpr(HIGH32), tl.constexpr(LOW32), tl.constexpr(HIGH64), tl.constexpr(LOW64)
_TURN32, _TURN64 = tl.constexpr(TURN32), tl.constexpr(TURN64)


# --- in kernels
@triton.jit
def _constant(x, value: tl.constexpr):
    return tl.full(x.shape, value, x.dtype)


@triton.jit
def _mul(x, y):
    return libdevice.mul_rn(x, y)


@triton.jit
def _times(x, value: tl.constexpr):
    return libdevice.mul_rn(x, tl.full(x.shape, value, x.dtype))


@triton.jit
def _polynomial(x, COEFFICIENTS: tl.constexpr, COUNT: tl.constexpr):
    """Horner's rule, highest power first."""
    y = _constant(x, COEFFICIENTS[0])
    for k in tl.static_range(1, COUNT):
        y = _mul(y, x) + _constant(x, COEFFICIENTS[k])
    return y


@triton.jit
def _directed(r, t, x, SIN: tl.constexpr, COS: tl.constexpr, COUNT: tl.constexpr):
    """r times (cos, sin) of an angle: its quarter of the turn in the top two bits of t, x what it is from the middle of that quarter."""
    z = _mul(x, x)
    s = _mul(_mul(_polynomial(z, SIN, COUNT), z), x) + x
    c = (_mul(_mul(_polynomial(z, COS, COUNT), z), z) - _times(z, 0.5)) + 1.0
    quarter = (t >> (t.dtype.primitive_bitwidth - 2)).to(tl.int32)
    odd = (quarter & 1) == 1
    a = tl.where(odd, s, c)
    b = tl.where(odd, c, s)
    a = tl.where((quarter == 1) | (quarter == 2), -a, a)
    b = tl.where(quarter >= 2, -b, b)
    return _mul(r, a), _mul(r, b)


@triton.jit
def _polar32(w, v):
    """Two float32 normals from two uint32 words."""
    u = _times(w.to(tl.float32), 2.0**-32) + _constant(w.to(tl.float32), 2.0**-33)  # (0, 1]
    bits = u.to(tl.int32, bitcast=True)
    m = ((bits & 0x7FFFFF) | 0x3F000000).to(tl.float32, bitcast=True)  # [1/2, 1)
    small = m < 0.70710678
    e = ((bits >> 23) - 126 - small.to(tl.int32)).to(tl.float32)
    f = tl.where(small, m + m, m) - 1.0
    z = _mul(f, f)
    y = _mul(_mul(_polynomial(f, _LOG32, 9), f), z)
    y = y + _times(e, _LOW32)
    y = y - _times(z, 0.5)
    log = (f + y) + _times(e, _HIGH32)
    r = libdevice.sqrt_rn(tl.maximum(_times(log, -2.0), 0.0))
    t = v + 0x20000000  # an eighth of a turn on: quarters are then centred
    x = _times((t & 0x3FFFFFFF).to(tl.int32).to(tl.float32) - 536870912.0, _TURN32)
    return _directed(r, t, x, _SIN32, _COS32, 3)


@triton.jit
def _polar64(w, v):
    """Two float64 normals from two uint64 words."""
    u = _times((w >> 11).to(tl.float64), 2.0**-53) + _constant(w.to(tl.float64), 2.0**-54)  # (0, 1]
    bits = u.to(tl.int64, bitcast=True)
    m = ((bits & 0xFFFFFFFFFFFFF) | 0x3FE0000000000000).to(tl.float64, bitcast=True)  # [1/2, 1)
    small = m < 0.7071067811865476
    e = ((bits >> 52) - 1022 - small.to(tl.int64)).to(tl.float64)
    f = tl.where(small, m + m, m) - 1.0
    s = f / (f + 2.0)
    z = _mul(s, s)
    tail = _mul(_polynomial(z, _LOG64, 7), z)
    half = _times(_mul(f, f), 0.5)
    log = _times(e, _HIGH64) - ((half - (_mul(s, half + tail) + _times(e, _LOW64))) - f)
    r = libdevice.sqrt_rn(tl.maximum(_times(log, -2.0), 0.0))
    t = v + 0x2000000000000000
    x = _times(((t & 0x3FFFFFFFFFFFFFFF).to(tl.int64) - 0x2000000000000000).to(tl.float64), _TURN64)
    return _directed(r, t, x, _SIN64, _COS64, 6)


@triton.jit
def polar(w, v):
    """Two normals from two words: float32 from 32-bit words, float64 from 64-bit words."""
    if w.dtype == tl.uint32:
        return _polar32(w, v)
    else:
        return _polar64(w, v)


# --- in numpy, step for step the same
def _numpy_polynomial(x: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    y = x * x.dtype.type(coefficients[0]) + x.dtype.type(coefficients[1])
    for c in coefficients[2:]:
        y *= x
        y += x.dtype.type(c)
    return y


def _numpy_log32(w: np.ndarray) -> np.ndarray:
    u = w.astype(np.float32)
    u *= np.float32(2.0**-32)
    u += np.float32(2.0**-33)
    # Exponent and mantissa of [sqrt(1/2), sqrt(2)) from one difference of bits: the kernel's m, small and e, in fewer passes.
    bits = u.view(np.int32)
    above = bits - np.float32(0.70710678).view(np.int32)
    e = (above >> 23).astype(np.float32)
    above &= np.int32(-(1 << 23))
    bits -= above
    f = u
    f -= np.float32(1)
    z = f * f
    y = _numpy_polynomial(f, LOG32)
    y *= f
    y *= z
    y += e * np.float32(LOW32)
    z *= np.float32(0.5)
    y -= z
    y += f
    e *= np.float32(HIGH32)
    y += e
    return y


def _numpy_log64(w: np.ndarray) -> np.ndarray:
    u = (w >> np.uint64(11)).astype(np.float64) * 2.0**-53 + 2.0**-54
    bits = u.view(np.int64)
    m = ((bits & 0xFFFFFFFFFFFFF) | 0x3FE0000000000000).view(np.float64)
    small = m < 0.7071067811865476
    e = ((bits >> 52) - 1022 - small).astype(np.float64)
    f = np.where(small, m + m, m) - 1.0
    s = f / (f + 2.0)
    z = s * s
    tail = _numpy_polynomial(z, LOG64) * z
    half = f * f * 0.5
    return e * HIGH64 - ((half - (s * (half + tail) + e * LOW64)) - f)


def numpy_polar(w: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two normals from each pair of words: float32 from uint32, float64 from uint64."""
    double = w.dtype == np.uint64
    real, r = (np.float64, _numpy_log64(w)) if double else (np.float32, _numpy_log32(w))
    r *= real(-2)
    np.maximum(r, real(0), out=r)
    np.sqrt(r, out=r)
    bits = w.itemsize * 8
    eighth = 1 << (bits - 3)
    t = v + v.dtype.type(eighth)
    signed = (t & v.dtype.type(2 * eighth - 1)).view(np.int64 if double else np.int32)
    x = (signed - eighth).astype(real) if double else signed.astype(real)
    if not double:
        x -= real(eighth)
    x *= real(TURN64 if double else TURN32)
    z = x * x
    s = _numpy_polynomial(z, SIN64 if double else SIN32)
    s *= z
    s *= x
    s += x
    c = _numpy_polynomial(z, COS64 if double else COS32)
    c *= z
    c *= z
    z *= real(0.5)
    c -= z
    c += real(1)
    a, b = _swapped(c.view(v.dtype), s.view(v.dtype), t, bits)
    top = v.dtype.type(4 * eighth)  # the sign: cosine is negative in the second and third quarter, sine from the third on
    b ^= t & top
    a ^= (t ^ (t + t)) & top
    a, b = a.view(real), b.view(real)
    a *= r
    b *= r
    return a, b


def _swapped(c: np.ndarray, s: np.ndarray, t: np.ndarray, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Sine and cosine, as bits, change places in the second and fourth quarter; by a mask, which is faster than a where."""
    signed = np.dtype(f"i{bits // 8}")
    odd = (((t + t).view(signed)) >> signed.type(bits - 1)).view(t.dtype)  # all ones where the second bit of t is set
    odd &= c ^ s
    c ^= odd
    s ^= odd
    return c, s
