"""Random words and the numbers made of them in plain numpy, operation for operation as in the kernels: the references of this family."""

from __future__ import annotations

import math

import numpy as np

from tritensor.kernels.parts.random_words import normal
from tritensor.kernels.parts.random_words.philox import MULTIPLIER_0, MULTIPLIER_1, ROUNDS, WEYL_0, WEYL_1, key_of
from tritensor.random import blocks_used

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_SERIES = ((), (normal.SIN32, normal.COS32), (normal.SIN64, normal.COS64))  # by words of 32 bits to one


def words(n: int, bits: int, seed: int, offset: int) -> np.ndarray:
    """The first n words of `bits` bits from block `offset` of a stream on, as uint64: Philox4x32-10 of the blocks' numbers."""
    block = np.arange(blocks_used(n, bits), dtype=np.uint64) + np.uint64(offset)
    a, b, c, d = block & _LOW, block >> _HALF, 0 * block, 0 * block
    for k in range(ROUNDS):
        key, other = (np.uint64(w + k * step & 0xFFFFFFFF) for w, step in zip(key_of(seed), (WEYL_0, WEYL_1), strict=True))
        p, q = a * np.uint64(MULTIPLIER_0), c * np.uint64(MULTIPLIER_1)
        a, b, c, d = (q >> _HALF) ^ b ^ key, q & _LOW, (p >> _HALF) ^ d ^ other, p & _LOW
    pair = (a, b, c, d) if bits == 32 else (b << _HALF | a, d << _HALF | c)
    return np.stack(pair, axis=1).reshape(-1)[:n]


def uniforms(n: int, seed: int, offset: int, digits: int) -> np.ndarray:
    """Numbers of [0, 1): the upper bits of each word, 53 of 64 or 24 of 32, cut to so many binary digits."""
    if digits == 53:
        return (words(n, 64, seed, offset) >> np.uint64(11)) * 2.0**-53
    m, e = np.frexp((words(n, 32, seed, offset) >> np.uint64(8)) * 2.0**-24)
    return np.ldexp(np.floor(np.ldexp(m, digits)), e - digits)


def _polynomial(x: np.ndarray, coefficients: tuple[float, ...]) -> np.ndarray:
    y = x.dtype.type(coefficients[0])
    for c in coefficients[1:]:
        y = y * x + x.dtype.type(c)
    return y


def _log32(u: np.ndarray) -> np.ndarray:
    m, e = np.frexp(u)
    small = m < np.float32(0.70710678)
    e, f = (e - small).astype(np.float32), np.where(small, m + m, m) - np.float32(1)
    z = f * f
    y = _polynomial(f, normal.LOG32) * f * z + e * np.float32(normal.LOW32) - z * np.float32(0.5)
    return (f + y) + e * np.float32(normal.HIGH32)


def _log64(u: np.ndarray) -> np.ndarray:
    m, e = np.frexp(u)
    small = m < 0.7071067811865476
    e, f = (e - small).astype(np.float64), np.where(small, m + m, m) - 1.0
    s = f / (f + 2.0)
    tail, half = _polynomial(s * s, normal.LOG64) * (s * s), f * f * 0.5
    return e * normal.HIGH64 - ((half - (s * (half + tail) + e * normal.LOW64)) - f)


def _sine_and_cosine(x: np.ndarray, sine: tuple[float, ...], cosine: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
    z, real = x * x, x.dtype.type
    return _polynomial(z, sine) * z * x + x, (_polynomial(z, cosine) * z * z - z * real(0.5)) + real(1)


def normals(n: int, bits: int, seed: int, offset: int) -> np.ndarray:
    """Pairs r cos(a), r sin(a), r = sqrt(-2 log u), of two words each, one for u and one for a: Box and Muller (see random_words/normal.py)."""
    w, v = words(n + n % 2, bits, seed, offset).reshape(-1, 2).T
    real = np.float64 if bits == 64 else np.float32
    if bits == 64:
        log = _log64((w >> np.uint64(11)) * 2.0**-53 + 2.0**-54)
    else:
        log = _log32(w.astype(real) * real(2.0**-32) + real(2.0**-33))
    t = v + np.uint64(1 << bits - 3)  # an eighth of a turn on: quarters are then centred
    x, middle = (t % np.uint64(1 << bits - 2)).astype(np.int64), 1 << bits - 3
    x = (x - middle).astype(real) if bits == 64 else x.astype(real) - real(middle)
    s, c = _sine_and_cosine(x * real(2 * math.pi / 2**bits), *_SERIES[bits // 32])
    quarter = (t >> np.uint64(bits - 2)).astype(np.int64) % 4
    cosines, sines = np.choose(quarter, (c, -s, -c, s)), np.choose(quarter, (s, c, -s, -c))
    return (np.sqrt(np.maximum(log * real(-2), real(0))) * (cosines, sines)).T.reshape(-1)[:n]
