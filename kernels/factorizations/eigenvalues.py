"""Eigenvalues and eigenvectors: of Hermitian matrices real, from the smallest; of any square matrix complex."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import GradError
from tritensor.kernels.factorizations.matrices import (
    NUMBERS,
    adjoint,
    array_gaps,
    columns,
    conjugate,
    converging,
    diagonal_array,
    diagonal_of,
    identity,
    in_c_order,
    is_complex,
    off_diagonal,
    on_diagonal,
    real_type,
    refuse_matrix,
    rows,
    symmetric,
)
from tritensor.kernels.parts.gemm import blas
from tritensor.ops.lazy_array import settle
from tritensor.ops.table import Sample, Spec, op, ops


def _refuse_phase(name: str, diagonal: Any) -> None:
    """Complex eigenvectors are given up to a phase; what depends on it has no gradient."""
    array = settle(diagonal._array)
    if not isinstance(array, np.ndarray):  # inside a transform, which has no numbers to look at
        return
    if array.dtype.kind == "c" and array.size and not np.allclose(array.imag, 0.0, atol=1e-2):
        raise GradError(
            f"{name}: the loss depends on the phase of complex eigenvectors, which is not defined; make it of V diag(f(L)) V^-1 or of absolute values"
        )


def _gaps(values: Any) -> Any:
    """l_j - l_i, and 1 on the diagonal."""
    return ops.add(ops.sub(columns(values), rows(values)), identity(values.shape[-1], values))


def _between(x: Any, values: Any, g: Any) -> Any:
    """x / conj(l_j - l_i), g on the diagonal."""
    off = ops.div(off_diagonal(x), conjugate(_gaps(values)))
    return off if g is None else ops.add(off, on_diagonal(g))


# a v = v diag(l), a Hermitian
def _eigh(a: np.ndarray, *, upper: bool) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues from the smallest and orthonormal eigenvectors in columns; one triangle of a is read."""
    values, vectors = np.linalg.eigh(a, "U" if upper else "L")
    return values, vectors


_eigh_cpu = converging("eigh", _eigh)


def _eigh_shape(a: Any, *, upper: bool) -> tuple[Spec, Spec]:
    refuse_matrix("eigh", a, square=True)
    return Spec(tuple(a.shape[:-1]), real_type(a.dtype)), Spec(tuple(a.shape), a.dtype)


def _eigh_rule(g: Any, values: Any, vectors: Any) -> Any:
    """V [skew(V^H gV) / E + diag(gL)] V^H, skew(X) = (X - X^H) / 2, E_ij = l_j - l_i.

    Giles (2008), section 3.1; Boeddeker et al. (2017) for complex numbers.
    """
    g_values, g_vectors = g
    # eigenvalues alone have a gradient where they coincide, too: no gaps are divided by
    if g_vectors is None:
        return ops.matmul(ops.mul(vectors, columns(g_values)), adjoint(vectors))
    inner = ops.matmul(adjoint(vectors), g_vectors)
    if is_complex(inner):
        _refuse_phase("eigh", diagonal_of(inner))
    skew = ops.mul(ops.sub(inner, adjoint(inner)), 0.5)
    return ops.matmul(vectors, ops.matmul(_between(skew, values, g_values), adjoint(vectors)))


def _eigh_backward(g: Any, values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    g_values, g_vectors = g
    t = vectors.swapaxes(-1, -2)
    if g_vectors is None:
        return blas(vectors * g_values[..., None, :], t)
    inner = blas(t, g_vectors)
    core = (inner - inner.swapaxes(-1, -2)) / 2 / array_gaps(values)
    if g_values is not None:
        diagonal_array(core)[...] += g_values
    return blas(vectors, blas(core, t))


def _eigh_samples(rng: np.random.Generator) -> list[Sample]:
    # one triangle is read, and signs and phases are any; tests/kernels/factorizations asks for gradients of what does not depend on them
    shapes = ((3, 3), (2, 4, 4), (1, 1), (0, 0), (2, 0, 0))
    return [Sample(symmetric(rng, *s), upper=upper, in_c_order=True, smooth=s == (1, 1)) for s in shapes for upper in (False, True)]


op(
    "eigh", _eigh, cpu=_eigh_cpu, shape=_eigh_shape, rule=_eigh_rule,
    cpu_backward=_eigh_backward, outputs=("values", "vectors"), samples=_eigh_samples, host=True,
    holomorphic=False, dtypes=NUMBERS, doc="Eigenvalues and eigenvectors of Hermitian matrices.",
)  # fmt: skip


def _eigvalsh(a: np.ndarray, *, upper: bool) -> np.ndarray:
    """Eigenvalues of Hermitian matrices from the smallest."""
    return np.linalg.eigvalsh(a, "U" if upper else "L")


def _eigvalsh_rule(g: Any, a: Any, upper: bool) -> Any:
    vectors = ops.eigh(a, upper=upper)[1]
    return ops.matmul(ops.mul(vectors, columns(g)), adjoint(vectors))


def _eigvalsh_backward(g: np.ndarray, a: np.ndarray, upper: bool) -> np.ndarray:
    return _eigh_backward((g, None), *_eigh_cpu(a, upper=upper))


op(
    "eigvalsh", _eigvalsh, cpu=converging("eigvalsh", _eigvalsh), rule=_eigvalsh_rule, cpu_backward=_eigvalsh_backward, outputs=("values",),
    samples=_eigh_samples, host=True, holomorphic=False, dtypes=NUMBERS, doc="Eigenvalues of Hermitian matrices.",
    shape=lambda a, *, upper: _eigh_shape(a, upper=upper)[0],
)  # fmt: skip


# a v = v diag(l)
def _eig(a: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Complex eigenvalues in LAPACK's order and eigenvectors of length 1 in columns."""
    values, vectors = np.linalg.eig(a)
    return values + 0j, vectors + 0j  # numpy gives real ones where all are real


def _eig_shape(a: Any) -> tuple[Spec, Spec]:
    refuse_matrix("eig", a, square=True)
    whole = dtypes.of(a.dtype).to_complex().numpy
    return Spec(tuple(a.shape[:-1]), whole), Spec(tuple(a.shape), whole)


def _eig_rule(g: Any, values: Any, vectors: Any) -> Any:
    """V^-H [(V^H gV - V^H V diag(re(V^H gV))) / conj(E) + diag(gL)] V^H, E_ij = l_j - l_i.

    Boeddeker, Hanebrink, Drude, Heymann, Haeb-Umbach, "On the computation of complex-valued gradients with application to statistically
    optimum beamforming" (2017), section 4.7, for eigenvectors of length 1.
    """
    g_values, g_vectors = g
    if g_vectors is None:
        inner = on_diagonal(g_values)
    else:
        vg = ops.matmul(adjoint(vectors), g_vectors)
        diagonal = diagonal_of(vg)
        _refuse_phase("eig", diagonal)
        lengths = ops.matmul(adjoint(vectors), ops.mul(vectors, columns(ops.cast(ops.real(diagonal), dtype=vectors._array.dtype))))
        inner = _between(ops.sub(vg, lengths), values, g_values)
    return ops.solve(adjoint(vectors), ops.matmul(inner, adjoint(vectors)))[0]


def _eig_samples(rng: np.random.Generator) -> list[Sample]:
    x = rng.standard_normal
    return in_c_order(x((1, 1))) + in_c_order(*map(x, ((3, 3), (2, 4, 4), (0, 0))), smooth=False)


op(
    "eig", _eig, cpu=converging("eig", _eig), shape=_eig_shape, rule=_eig_rule, outputs=("values", "vectors"), samples=_eig_samples, host=True,
    holomorphic=False, dtypes=NUMBERS, doc="Eigenvalues and eigenvectors of square matrices.",
)  # fmt: skip


def _eigvals(a: np.ndarray) -> np.ndarray:
    """Complex eigenvalues in LAPACK's order."""
    return np.linalg.eigvals(a) + 0j


def _eigvals_rule(g: Any, a: Any) -> Any:
    """V^-H diag(g) V^H; with both by eig, whose order of eigenvalues is that of eigvals."""
    vectors = ops.eig(a)[1]
    found = ops.solve(adjoint(vectors), ops.matmul(on_diagonal(g), adjoint(vectors)))[0]
    return found if a._array.dtype.kind == "c" else ops.real(found)


op(
    "eigvals", _eigvals, cpu=converging("eigvals", _eigvals), rule=_eigvals_rule, outputs=("values",), samples=_eig_samples,
    host=True, holomorphic=False, dtypes=NUMBERS, doc="Eigenvalues of square matrices.",
    shape=lambda a: _eig_shape(a)[0],
)  # fmt: skip
