"""Complex logarithm and power where numpy rounds too soon or overflows on the way."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.kernels.parts.cpu.blocks import SILENT


def complex_log1p(x: np.ndarray) -> np.ndarray:
    """log(1 + x) of complex numbers. Near 0 its real part is log1p(|1 + x|^2 - 1) / 2, of a (2 + a) + b^2; numpy's rounds 1 + x first."""
    a, b = x.real.astype(np.float64), x.imag.astype(np.float64)
    y = np.empty_like(x)
    with SILENT():
        beyond = a * (2.0 + a) + b * b
        far = np.log(np.hypot(1.0 + a, b))
        y.real = np.where(np.hypot(a, b) < 0.5, np.where(beyond == 0, a, 0.5 * np.log1p(beyond)), far)  # a: squares below the least number
        y.imag = np.arctan2(b, 1.0 + a)
    return y


def complex_power(a: Any, b: Any, out: np.ndarray | None = None) -> np.ndarray:
    """a^b of complex numbers. Where squares overflow on the way, which numpy's whole exponents take, exp(b log a) in complex128."""
    with SILENT():
        y = np.asarray(np.power(a, b))
        lost = np.isnan(y) & np.isfinite(a) & np.isfinite(b) & np.not_equal(a, 0)
        if lost.any():
            base, exponent = np.broadcast_arrays(a, b)
            y[lost] = np.exp(exponent[lost] * np.log(base[lost].astype(np.complex128)))
    if out is None:
        return y
    out[...] = y
    return out
