"""Fits the rational functions of kernels/parts/special in 50 digits: `python -m tests.peer.special_fits [file ...]` (it needs mpmath) writes their coefficients.

A fit is the rational function that meets f at Chebyshev nodes (its equations are linear), of the least degree that reaches half a unit in the last place.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp

FOLDER = Path(__file__).resolve().parents[2] / "kernels" / "parts" / "special"
mp.dps = 50
Function = Callable[[Any], Any]


def nodes(a: Any, b: Any, count: int) -> list[Any]:
    """Chebyshev nodes of [a, b]."""
    return [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * count)) for k in range(count)]


def rational(f: Function, a: Any, b: Any, top: int, bottom: int) -> tuple[list[Any], list[Any]]:
    """Coefficients, the highest power first, of P / Q with degrees top and bottom and Q(0) = 1 that meets f at Chebyshev nodes."""
    count = top + bottom + 1
    matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
    for i, x in enumerate(nodes(mp.mpf(a), mp.mpf(b), count)):
        y = f(x)
        for k in range(top + 1):
            matrix[i, k] = x**k
        for k in range(1, bottom + 1):
            matrix[i, top + k] = -y * x**k
        right[i] = y
    found = list(mp.lu_solve(matrix, right))
    return found[: top + 1][::-1], [mp.mpf(1), *found[top + 1 :]][::-1]


def error(f: Function, a: Any, b: Any, pair: tuple[list[Any], list[Any]]) -> float:
    """The largest error between the nodes, relative to f, or to a quarter of its largest value where it changes sign; without roundings."""
    p, q = pair
    xs = nodes(mp.mpf(a), mp.mpf(b), 150)
    ys = [f(x) for x in xs]
    floor = max(abs(y) for y in ys) / 4 if min(ys) < 0 < max(ys) else mp.mpf(0)
    return max(float(abs(mp.polyval(p, x) / mp.polyval(q, x) - y) / max(abs(y), floor)) for x, y in zip(xs, ys, strict=True))


def amplification(pair: tuple[list[Any], list[Any]], a: Any, b: Any) -> float:
    """How much roundings grow: the worst of sum |c x^k| / |sum c x^k| in numerator and denominator; of one that changes sign, against half its largest value."""
    worst = 0.0
    xs = nodes(mp.mpf(a), mp.mpf(b), 60)
    for part in pair:
        ys = [mp.polyval(part, x) for x in xs]
        floor = max(abs(y) for y in ys) / 2 if min(ys) < 0 < max(ys) else mp.mpf(0)
        for x, y in zip(xs, ys, strict=True):
            worst = max(worst, float(mp.polyval([abs(c) for c in part], abs(x)) / max(abs(y), floor)))
    return worst


def _pole(bottom: list[Any], a: Any, b: Any) -> bool:
    """Whether the denominator is 0 on [a, b], or next to it."""
    width = float(b) - float(a)
    found = np.roots(np.array([float(c) for c in bottom])) if len(bottom) > 1 else np.zeros(0)
    inside = (found.real > float(a) - 0.01 * width) & (found.real < float(b) + 0.01 * width)
    return bool((inside & (np.abs(found.imag) < 0.02 * width)).any())


def fitted(f: Function, a: Any, b: Any, dtype: type) -> tuple[list[Any], list[Any]]:
    """The first fit, by degree, that is exact to half a unit in the last place of dtype and evaluates without cancellation."""
    goal = {np.float32: 2.0**-25, np.float64: 2.0**-54}[dtype]
    known: dict[Any, Any] = {}
    tried: dict[tuple[int, int], Any] = {}

    def once(x: Any) -> Any:
        if x not in known:
            known[x] = f(x)
        return known[x]

    for total, limit in [(total, limit) for limit in (5, 10, 20) for total in range(2, 16 if dtype is np.float32 else 28)]:
        best = None
        for bottom in sorted({total * 3 // 4, total * 2 // 3, total // 2, total // 2 - 1, total // 3, 0} - {-1}):
            key = (total, bottom)
            if key not in tried:
                try:
                    tried[key] = rational(once, a, b, total - bottom, bottom)
                except ZeroDivisionError:  # no such function, or one of a lower degree
                    tried[key] = None
            pair = tried[key]
            if pair is None or _pole(pair[1], a, b):
                continue
            grown = amplification(pair, a, b)
            if grown < limit and error(once, a, b, pair) < goal and (best is None or grown < best[0]):
                best = (grown, pair)
        if best is not None:
            return best[1]
    raise ValueError(f"no fit on [{a}, {b}] in {dtype.__name__}")


def shown(label: str, values: list[Any], digits: int) -> str:
    """One tuple of coefficients as an argument of Ratio, in a line or several."""
    line, lines = f"    {label}=(", []
    margin = " " * len(line)
    words = [mp.nstr(mp.mpf(v), digits, min_fixed=-2, max_fixed=3) for v in values]
    for i, word in enumerate(words):
        end = ", " if i < len(words) - 1 else ",)," if i == 0 else "),"
        if len(line) + len(word) + len(end.rstrip()) > 130:
            lines.append(line.rstrip())
            line = margin
        line += word + end
    return "\n".join([*lines, line])


def table(fits: dict[str, tuple[str, Function, Any, Any]]) -> str:
    """The lines of several fits: p / q for float32, r / s for float64."""
    out = []
    for name, (doc, f, a, b) in fits.items():
        p, q = fitted(f, a, b, np.float32)
        r, s = fitted(f, a, b, np.float64)
        print(f"{name}: {len(p) - 1}/{len(q) - 1}, {len(r) - 1}/{len(s) - 1}", flush=True)
        rows = [shown(which, c, digits) for which, c, digits in (("p", p, 10), ("q", q, 10), ("r", r, 19), ("s", s, 19))]
        out += [f"# {doc}", f"{name} = Ratio(", *rows, ")  # fmt: skip"]
    return "\n".join(out)


def root(f: Function) -> Function:
    """f of the square root."""
    return lambda w: f(mp.sqrt(w))


def bessel_rest(v: int) -> Function:
    """J_v without its first two zeros (and x, for v = 1), in x^2."""
    z, w = mp.besseljzero(v, 1), mp.besseljzero(v, 2)
    return root(lambda x: mp.besselj(v, x) / x**v / ((x * x - z * z) * (x * x - w * w)))


def phase(v: int, which: int) -> Function:
    """P and x Q in J_v = sqrt(2 / (pi x)) (P cos(c) - Q sin(c)), Y_v = sqrt(2 / (pi x)) (P sin(c) + Q cos(c)), c = x - (2 v + 1) pi / 4, in 1 / x^2."""

    def f(w: Any) -> Any:
        x = 1 / mp.sqrt(w)
        c, a = x - (2 * v + 1) * mp.pi / 4, mp.sqrt(mp.pi * x / 2)
        j, y = mp.besselj(v, x), mp.bessely(v, x)
        return a * (j * mp.cos(c) + y * mp.sin(c)) if which == 0 else a * (y * mp.cos(c) - j * mp.sin(c)) * x

    return f


def airy_phase(which: int) -> Function:
    """P and z Q in Ai(-x) = (P cos(z - pi/4) + Q sin(z - pi/4)) / (sqrt(pi) x^(1/4)), z = 2/3 x^(3/2), in 1 / z^2."""

    def f(w: Any) -> Any:
        z = 1 / mp.sqrt(w)
        x = (z * 3 / 2) ** (mp.mpf(2) / 3)
        a, c = mp.sqrt(mp.pi) * x**0.25, z - mp.pi / 4
        ai, bi = a * mp.airyai(-x), a * mp.airybi(-x)
        return ai * mp.cos(c) - bi * mp.sin(c) if which == 0 else (ai * mp.sin(c) + bi * mp.cos(c)) * z

    return f


def inverse_tail(t: Any) -> Any:
    """erfcinv(exp(-t^2))."""
    return mp.findroot(lambda y: mp.log(mp.erfc(y)) + t * t, (t, t + mp.mpf(1) / 10))


TINY, SMALL = mp.mpf(10) ** -8, mp.mpf(1) / 5000
ROOT = mp.findroot(mp.digamma, 1.46)


def _stirling(u: Any) -> Any:
    x = 1 / mp.sqrt(u)
    return (mp.loggamma(x) - ((x - 0.5) * mp.log(x) - x + mp.log(2 * mp.pi) / 2)) * x


FILES: dict[str, tuple[str, dict[str, tuple[str, Function, Any, Any]]]] = {
    "gamma": ("the gamma function's logarithm and its derivatives", {
        "LGAMMA_NEAR": ("lgamma(x) / ((x - 1)(x - 2)) on [0.5, 3.5]", lambda x: mp.loggamma(x) / ((x - 1) * (x - 2)), 0.5, 3.5),
        "LGAMMA_MIDDLE": ("the same on [3.5, 8]", lambda x: mp.loggamma(x) / ((x - 1) * (x - 2)), 3.5, 8),
        "STIRLING": ("x (lgamma(x) - (x - 1/2) log x + x - log(2 pi) / 2) in 1 / x^2, x > 8", _stirling, TINY, mp.mpf(1) / 64),
        "DIGAMMA_NEAR": ("digamma(x) / (x - its zero) on [0.5, 4]", lambda x: mp.digamma(x) / (x - ROOT), 0.5, 4),
        "DIGAMMA_FAR": ("x^2 (log x - 1 / (2 x) - digamma(x)) in 1 / x^2, x > 4", root(lambda v: (mp.log(1 / v) - v / 2 - mp.digamma(1 / v)) / v**2), TINY, mp.mpf(1) / 16),
        "TRIGAMMA_NEAR": ("x^2 trigamma(x) on [0.5, 4]", lambda x: x * x * mp.psi(1, x), 0.5, 4),
        "TRIGAMMA_FAR": ("x^3 (trigamma(x) - 1 / x - 1 / (2 x^2)) in 1 / x^2, x > 4", root(lambda v: (mp.psi(1, 1 / v) - v - v**2 / 2) / v**3), TINY, mp.mpf(1) / 16),
    }),
    "error": ("the error function's inverse and its scaled complement", {
        "ERFCX_NEAR": ("exp(x^2) erfc(x) on [0, 4]", lambda x: mp.exp(x * x) * mp.erfc(x), 0, 4),
        "ERFCX_FAR": ("x exp(x^2) erfc(x) in 1 / x^2, x > 4", root(lambda v: mp.exp(1 / v**2) * mp.erfc(1 / v) / v), TINY, mp.mpf(1) / 16),
        "ERFINV": ("erfinv(x) / x in x^2, |x| < 1/2", root(lambda x: mp.erfinv(x) / x), TINY, 0.25),
        "TAIL_NEAR": ("erfcinv(exp(-t^2)) on [0.83, 2.5]", inverse_tail, 0.832, 2.5),
        "TAIL_MIDDLE": ("the same on [2.5, 6.2]", inverse_tail, 2.5, 6.2),
        "TAIL_FAR": ("the same on [6.2, 27.4]", inverse_tail, 6.2, 27.4),
    }),
    "modified_bessel": ("the modified Bessel functions", {
        "I0_NEAR": ("I0(x) in x^2, x < 12", root(lambda x: mp.besseli(0, x)), TINY, 144),
        "I0_FAR": ("sqrt(x) exp(-x) I0(x) in 1 / x, x > 12", lambda u: mp.besseli(0, 1 / u) * mp.exp(-1 / u) / mp.sqrt(u), SMALL, mp.mpf(1) / 12),
        "I1_NEAR": ("I1(x) / x in x^2, x < 12", root(lambda x: mp.besseli(1, x) / x), TINY, 144),
        "I1_FAR": ("sqrt(x) exp(-x) I1(x) in 1 / x, x > 12", lambda u: mp.besseli(1, 1 / u) * mp.exp(-1 / u) / mp.sqrt(u), SMALL, mp.mpf(1) / 12),
        "I0_UNIT": ("I0(x) in x^2, x < 1", root(lambda x: mp.besseli(0, x)), TINY, 1),
        "I1_UNIT": ("I1(x) / x in x^2, x < 1", root(lambda x: mp.besseli(1, x) / x), TINY, 1),
        "K0_NEAR": ("K0(x) + log(x) I0(x) in x^2, x < 1", root(lambda x: mp.besselk(0, x) + mp.log(x) * mp.besseli(0, x)), TINY, 1),
        "K0_FAR": ("sqrt(x) exp(x) K0(x) in 1 / x, x > 1", lambda u: mp.besselk(0, 1 / u) * mp.exp(1 / u) / mp.sqrt(u), SMALL, 1),
        "K1_NEAR": ("x (K1(x) - log(x) I1(x)) in x^2, x < 1", root(lambda x: x * (mp.besselk(1, x) - mp.log(x) * mp.besseli(1, x))), TINY, 1),
        "K1_FAR": ("sqrt(x) exp(x) K1(x) in 1 / x, x > 1", lambda u: mp.besselk(1, 1 / u) * mp.exp(1 / u) / mp.sqrt(u), SMALL, 1),
    }),
    "bessel": ("the Bessel functions of the first and the second kind", {
        "J0_NEAR": ("J0(x) / ((x^2 - z1^2)(x^2 - z2^2)) in x^2, x < 5", bessel_rest(0), TINY, 25),
        "J1_NEAR": ("J1(x) / (x (x^2 - z1^2)(x^2 - z2^2)) in x^2, x < 5", bessel_rest(1), TINY, 25),
        "Y0_NEAR": ("Y0(x) - 2 / pi log(x) J0(x) in x^2, x < 2", root(lambda x: mp.bessely(0, x) - 2 / mp.pi * mp.log(x) * mp.besselj(0, x)), TINY, 4),
        "Y0_MIDDLE": ("Y0(x) / (x - its second zero) in x - 3.5, on [2, 5]", lambda t: mp.bessely(0, t + 3.5) / (t + 3.5 - mp.besselyzero(0, 2)), -1.5, 1.5),
        "Y1_NEAR": ("(Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x in x^2, x < 2", root(lambda x: (mp.bessely(1, x) - 2 / mp.pi * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x), TINY, 4),
        "Y1_MIDDLE": ("Y1(x) / (x - its first zero) in x - 3.5, on [2, 5]", lambda t: mp.bessely(1, t + 3.5) / (t + 3.5 - mp.besselyzero(1, 1)), -1.5, 1.5),
        **{f"{'PQ'[which]}{v}": (f"{('P', 'x Q')[which]} of order {v} in 1 / x^2, x > 5", phase(v, which), TINY, mp.mpf(1) / 25) for v in (0, 1) for which in (0, 1)},
    }),
    "airy": ("the Airy function", {
        "AI_LEFT": ("Ai(x) / (x - its first zero) in x + 1.5, on [-3, 0]", lambda t: mp.airyai(t - 1.5) / (t - 1.5 - mp.airyaizero(1)), -1.5, 1.5),
        "AI_RIGHT": ("Ai(x) on [0, 2]", mp.airyai, 0, 2),
        "AI_FAR": ("Ai(x) exp(z) x^(1/4) in 1 / z, z = 2/3 x^(3/2), x > 2", lambda u: mp.airyai((1.5 / u) ** (mp.mpf(2) / 3)) * mp.exp(1 / u) * (1.5 / u) ** (mp.mpf(1) / 6), SMALL, 0.531),
        "AI_P": ("P of Ai(-x) in 1 / z^2, x > 3", airy_phase(0), TINY, 0.0834),
        "AI_Q": ("z Q of Ai(-x) in 1 / z^2, x > 3", airy_phase(1), TINY, 0.0834),
    }),
}  # fmt: skip


def main() -> None:
    for name, (subject, fits) in FILES.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        text = f'''"""Coefficients for {subject}: rational functions fitted in 50 digits (tests/peer/special_fits.py wrote this file).

p / q for float32, r / s for float64, the highest power first.
"""

from tritensor.kernels.parts.maths import Ratio

'''
        (FOLDER / f"{name}_fits.py").write_text(text + table(fits) + "\n")


if __name__ == "__main__":
    main()
