"""True values of the special functions in 40 digits: `python -m tests.peer.special_values` (it needs mpmath) writes tests/special_values.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import mp

mp.dps = 40
FILE = Path(__file__).resolve().parents[1] / "special_values.json"


def _scaled(f: Callable[..., Any], v: int, sign: int) -> Callable[[Any], Any]:
    return lambda x: f(v, x) * mp.exp(sign * abs(x))


# name: the function, and from where to where
ONE: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "gammaln": (lambda x: mp.log(abs(mp.gamma(x))), 0.01, 60),
    "digamma": (mp.digamma, 0.01, 60),
    "trigamma": (lambda x: mp.psi(1, x), -6, 60),
    "erfinv": (mp.erfinv, -0.99999, 0.99999),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), -9, 60),
    "ndtri": (lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), 1e-6, 0.9999),
    "ndtr": (mp.ncdf, -12, 6),
    "log_ndtr": (lambda x: mp.log(mp.ncdf(x)), -60, 6),
    "entr": (lambda x: -x * mp.log(x), 1e-6, 60),
    "sinc": (lambda x: mp.sinc(mp.pi * x), -30, 30),
    "i0": (lambda x: mp.besseli(0, x), -80, 80),
    "i1": (lambda x: mp.besseli(1, x), -80, 80),
    "i0e": (_scaled(mp.besseli, 0, -1), -80, 80),
    "i1e": (_scaled(mp.besseli, 1, -1), -80, 80),
    "modified_bessel_k0": (lambda x: mp.besselk(0, x), 1e-3, 60),
    "modified_bessel_k1": (lambda x: mp.besselk(1, x), 1e-3, 60),
    "scaled_modified_bessel_k0": (_scaled(mp.besselk, 0, 1), 1e-3, 60),
    "scaled_modified_bessel_k1": (_scaled(mp.besselk, 1, 1), 1e-3, 60),
    "bessel_j0": (lambda x: mp.besselj(0, x), -40, 40),
    "bessel_j1": (lambda x: mp.besselj(1, x), -40, 40),
    "bessel_y0": (lambda x: mp.bessely(0, x), 0.01, 40),
    "bessel_y1": (lambda x: mp.bessely(1, x), 0.01, 40),
    "spherical_bessel_j0": (lambda x: mp.sin(x) / x, -40, 40),
    "airy_ai": (mp.airyai, -12, 12),
}
TWO: dict[str, tuple[Callable[[Any, Any], Any], tuple[float, float], tuple[float, float]]] = {
    "zeta": (mp.zeta, (1.1, 12), (0.05, 30)),
    "gammainc": (lambda a, x: mp.gammainc(a, 0, x, regularized=True), (0.1, 150), (0.5, 1.5)),
    "gammaincc": (lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True), (0.1, 150), (0.5, 1.5)),
}


def _points(low: float, high: float, count: int, seed: int) -> np.ndarray:
    """Half spread over the range, half over its part near 0; in float32, so that both types can hold them."""
    rng = np.random.default_rng(seed)
    near = rng.uniform(max(low, -3), min(high, 3), count // 2)
    return np.concatenate([rng.uniform(low, high, count - count // 2), near]).astype(np.float32)


def main() -> None:
    found: dict[str, Any] = {}
    for name, (f, low, high) in ONE.items():
        xs = [float(x) for x in _points(low, high, 40, 1)]
        found[name] = [xs, [float(f(mp.mpf(x))) for x in xs]]
    for name, (g, first, second) in TWO.items():
        a = _points(*first, 24, 2)
        b = _points(*second, 24, 3)
        b = (a * b).astype(np.float32) if name != "zeta" else b
        found[name] = [a.tolist(), b.tolist(), [float(g(mp.mpf(x), mp.mpf(y))) for x, y in zip(a.tolist(), b.tolist(), strict=True)]]
    FILE.write_text("{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items()) + "\n}\n")


if __name__ == "__main__":
    main()
