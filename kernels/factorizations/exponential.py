"""The exponential of matrices, by scaling and squaring of a Pade approximant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tritensor.kernels.factorizations.matrices import batched, in_c_order, part, refuse_shape, transposed
from tritensor.ops.table import Sample, Spec, op, ops, refuse_kind

# Higham, "The scaling and squaring method for the matrix exponential revisited" (2005), table 2.3: up to which 1-norm a degree is exact to
# rounding, in float64 and (Higham, "Functions of matrices", 2008, section 10.3) in float32.
_REACH = {8: {3: 1.495585217958292e-2, 5: 2.539398330063230e-1, 7: 9.504178996162932e-1, 9: 2.097847961257068, 13: 5.371920351148152},
          4: {3: 4.258730016922831e-1, 5: 1.880152677804762, 7: 3.925724783138660}}  # fmt: skip


def _coefficients(degree: int) -> list[float]:
    """Those of the numerator of the diagonal Pade approximant of exp, the last one 1."""

    b = [math.factorial(2 * degree - j) // (math.factorial(degree - j) * math.factorial(j)) for j in range(degree + 1)]
    return [n / b[degree] for n in b]


def _pade(a: np.ndarray, degree: int) -> np.ndarray:
    """r(a) = (V - U)^-1 (V + U), U the odd part of the numerator, V the even one."""
    b = _coefficients(degree)
    eye = np.eye(a.shape[-1], dtype=a.dtype)
    a2 = a @ a
    if degree == 13:
        a4 = a2 @ a2
        a6 = a4 @ a2
        u = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * eye)
        v = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * eye
    else:
        power = np.broadcast_to(eye, a.shape)
        odd, v = b[1] * power, b[0] * power
        for j in range(2, degree, 2):
            power = power @ a2
            odd, v = odd + b[j + 1] * power, v + b[j] * power
        u = a @ odd
    return np.linalg.solve(v - u, v + u)


# y = 1 + a + a^2 / 2 + a^3 / 6 + ...
def _matrix_exp(a: np.ndarray) -> np.ndarray:
    """exp of square matrices (..., n, n); 16-bit floats through float32."""
    y = np.full_like(a, np.nan)
    for at in np.ndindex(*a.shape[:-2]):
        norm = np.abs(a[at]).sum()
        if np.isfinite(norm):
            halvings = int(np.ceil(np.log2(max(norm, 1)))) + 1  # down to a norm of 1/2, so that 20 terms are exact to rounding
            term = total = np.eye(a.shape[-1], dtype=a.dtype)
            for k in range(1, 20):
                term = term @ a[at] / (k * 2.0**halvings)
                total = total + term
            y[at] = np.linalg.matrix_power(total, 2**halvings)
    return y


def _matrix_exp_cpu(a: np.ndarray) -> np.ndarray:
    if a.dtype.itemsize == 2:
        return _matrix_exp_cpu(a.astype(np.float32)).astype(a.dtype)
    if a.size == 0:
        return np.zeros(a.shape, a.dtype)
    work = batched(a)
    norms = np.abs(work).sum(axis=-2).max(axis=-1)  # (batch,)
    # np.linalg.solve raises for all of a batch where one matrix holds an infinity
    good = np.isfinite(norms)
    y = np.full(work.shape, np.nan, a.dtype)
    if good.any():
        y[good] = _scaled_and_squared(work[good], norms[good])
    return y.reshape(a.shape)


def _scaled_and_squared(a: np.ndarray, norms: np.ndarray) -> np.ndarray:
    reach = _REACH[8 if a.dtype.char in "dD" else 4]
    last = max(reach)
    top = float(norms.max())
    # one degree for the batch, the least that is exact for its largest norm; beyond the last one halvings, each matrix as many as it needs
    degree = next((d for d, least in reach.items() if top <= least), last)
    with np.errstate(divide="ignore"):
        times = np.maximum(np.ceil(np.log2(norms / reach[last])), 0).astype(np.int64) if degree == last else np.zeros(len(a), np.int64)
    y = _pade(a * np.ldexp(1.0, -times).astype(a.real.dtype)[:, None, None], degree)
    for i in range(int(times.max())):
        left = times > i
        y[left] = y[left] @ y[left]
    return y


def _shape(a: Any) -> Spec:
    refuse_shape("matrix_exp", a, square=True)
    refuse_kind("matrix_exp", a.dtype, ("float", "complex"), "A")
    return Spec(tuple(a.shape), a.dtype)


def _rule(g: Any, a: Any) -> Any:
    """The upper right block of exp([a^T g; 0 a^T]). Najfeld and Havel, "Derivatives of the matrix exponential and their computation" (1995)."""
    n = a.shape[-1]
    t = transposed(a)
    zero = ops.mul(t, 0.0)
    above, below = ops.cat(t, g, dim=a.ndim - 1), ops.cat(zero, t, dim=a.ndim - 1)
    return part(ops.matrix_exp(ops.cat(above, below, dim=a.ndim - 2)), slice(0, n), slice(n, None))


def _cpu_backward(g: np.ndarray, a: np.ndarray) -> np.ndarray:
    n, t = a.shape[-1], a.swapaxes(-1, -2)
    whole = np.zeros((*a.shape[:-2], 2 * n, 2 * n), a.dtype)
    whole[..., :n, :n] = whole[..., n:, n:] = t
    whole[..., :n, n:] = g
    return np.array(_matrix_exp_cpu(whole)[..., :n, n:])


def _samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    found = in_c_order(0.01 * x((2, 2)), 0.2 * x((2, 3, 3)), x((3, 3)), np.stack([0.1 * x((2, 2)), 3 * x((2, 2))]), np.zeros((0, 3, 3)))
    return found + in_c_order(np.stack([x((2, 2)), np.full((2, 2), np.inf)]), smooth=False)


op(
    "matrix_exp", _matrix_exp, cpu=_matrix_exp_cpu, shape=_shape, rule=_rule, cpu_backward=_cpu_backward, samples=_samples, host=True,
    dtypes=("float64", "float32", "float16", "bfloat16"), doc="The exponential of square matrices.",
)  # fmt: skip
