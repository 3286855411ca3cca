"""Parts of all factorizations: refusals of shapes and types, transposes for rules, and numpy over a batch of which some matrices fail."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError, LinAlgError, ShapeError
from tritensor.ops.table import Sample, ops, refuse_kind

MANY = 32  # matrices of a batch from which on they are worked side by side
NUMBERS = ("float64", "float32")  # LAPACK has no 16-bit numbers


def refuse_type(name: str, x: Any, label: str = "A") -> None:
    """Raise DTypeError for what LAPACK does not factor: integers and 16-bit floats."""
    refuse_kind(name, x.dtype, ("float", "complex"), label)
    if np.dtype(x.dtype).itemsize < 4:
        raise DTypeError(f"{name}: {label} is {dtypes.of(x.dtype).name}; 16-bit floats are not factored; cast it with .float()")


def refuse_shape(name: str, x: Any, square: bool = False, label: str = "A") -> None:
    """Raise ShapeError for what is no matrix, or no square one."""
    if len(x.shape) < 2:
        raise ShapeError(f"{name}: {label} {tuple(x.shape)} has {len(x.shape)} dimensions; give a matrix, or a batch of them")
    if square and x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: {label} {tuple(x.shape)} is {x.shape[-2]} x {x.shape[-1]}; the matrices must be square")


def refuse_matrix(name: str, x: Any, square: bool = False, label: str = "A") -> None:
    """Raise ShapeError or DTypeError for what LAPACK does not factor."""
    refuse_shape(name, x, square, label)
    refuse_type(name, x, label)


def real_type(dtype: np.dtype) -> np.dtype:
    """The type of absolute values."""
    return dtypes.of(dtype).to_real().numpy


# ---------------------------------------------------------------- for rules, which compute on tensors


def transposed(x: Any) -> Any:
    """x^T of the last two dims."""
    n = x.ndim
    return ops.permute(x, dims=(*range(n - 2), n - 1, n - 2))


def is_complex(x: Any) -> bool:
    """Whether a tensor holds complex numbers."""
    return bool(x._array.dtype.kind == "c")


def conjugate(x: Any) -> Any:
    """conj(x), x itself where it is real."""
    return ops.conj(x) if is_complex(x) else x


def adjoint(x: Any) -> Any:
    """x^H."""
    return transposed(conjugate(x))


def columns(v: Any) -> Any:
    """A vector (..., n) as a factor of columns, (..., 1, n)."""
    return ops.reshape(v, shape=(*v.shape[:-1], 1, v.shape[-1]))


def rows(v: Any) -> Any:
    """A vector (..., n) as a factor of rows, (..., n, 1)."""
    return ops.reshape(v, shape=(*v.shape, 1))


def on_diagonal(v: Any) -> Any:
    """Square matrices with v (..., n) on the diagonal."""
    n = v.ndim
    return ops.pad_diagonal(v, shape=(*v.shape, v.shape[-1]), offset=0, dim1=n - 1, dim2=n)


def diagonal_of(x: Any) -> Any:
    """The main diagonals of the last two dims."""
    return ops.diagonal(x, offset=0, dim1=x.ndim - 2, dim2=x.ndim - 1)


def off_diagonal(x: Any) -> Any:
    """x with zeros on the diagonal."""
    return ops.sub(x, on_diagonal(diagonal_of(x)))


def part(x: Any, rows: slice = slice(None), columns: slice = slice(None)) -> Any:
    """x[..., rows, columns], a view."""
    return ops.index_view(x, index=(slice(None),) * (x.ndim - 2) + (rows, columns))


def identity(n: int, of: Any) -> Any:
    """The identity of size n in a tensor's type, on its device."""
    return ops.eye(rows=n, columns=n, dtype=of._array.dtype, device=of.device)


# ---------------------------------------------------------------- for the CPU, which computes on numpy's arrays


def converging(name: str, reference: Callable[..., Any]) -> Callable[..., Any]:
    """The CPU's side of an op whose steps need not end: LinAlgError in our words where they do not, which is of matrices that hold a NaN."""

    def cpu(*arrays: np.ndarray, **attrs: Any) -> Any:
        try:
            return reference(*arrays, **attrs)
        except np.linalg.LinAlgError:
            raise LinAlgError(f"{name}: no convergence; A holds a NaN, or an infinity; look with A.isfinite().all()") from None

    return cpu


def batched(a: np.ndarray) -> np.ndarray:
    """a (..., m, n) as (batch, m, n)."""
    return a.reshape(math.prod(a.shape[:-2]), *a.shape[-2:])


def runs(count: int, elements: int) -> list[slice]:
    """A batch in runs that fit the cache, `elements` to a matrix."""
    step = max(MANY, 65536 // max(elements, 1))
    return [slice(i, min(i + step, count)) for i in range(0, count, step)]


def solve_batch_or_each(
    function: Callable[..., np.ndarray], info_of: Callable[[np.ndarray], int], a: np.ndarray, *more: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """function(a, *more) over a batch, and an int32 for each matrix: 0, or info_of(matrix) where numpy finds that it fails; its result is NaN."""
    info = np.zeros(a.shape[:-2], np.int32)
    # as a rule no matrix fails: one call for the batch
    try:
        return function(a, *more), info
    except np.linalg.LinAlgError:
        pass
    # numpy's error does not say which of them failed: one after the other
    results, codes = [], info.reshape(-1)
    for i, parts in enumerate(zip(batched(a), *map(batched, more), strict=True)):
        try:
            results.append(function(*parts))
        except np.linalg.LinAlgError:
            codes[i] = info_of(parts[0])
            results.append(np.full((more[0] if more else a).shape[-2:], np.nan, a.dtype))
    y = np.stack(results)
    return y.reshape(*a.shape[:-2], *y.shape[1:]), info


def diagonal_array(x: np.ndarray) -> np.ndarray:
    """The main diagonals of the last two dims, a view to write to."""
    return np.einsum("...ii->...i", x)


def array_gaps(v: np.ndarray) -> np.ndarray:
    """v_j - v_i of vectors (..., n), and 1 on the diagonal."""
    return v[..., None, :] - v[..., None] + np.eye(v.shape[-1], dtype=v.dtype)


def size_of(x: Any) -> Any:
    """LAPACK's |re| + |im|, by which pivots are chosen."""
    return np.abs(x.real) + np.abs(x.imag) if x.dtype.kind == "c" else np.abs(x)


def in_c_order(*inputs: Any, smooth: bool = True, **attrs: Any) -> list[Sample]:
    """A sample of each of `inputs`, a matrix or a tuple of them, in the order of memory that LAPACK's results have."""
    return [Sample(*(x if isinstance(x, tuple) else (x,)), in_c_order=True, smooth=smooth, **attrs) for x in inputs]


def symmetric(rng: np.random.Generator, *size: int) -> np.ndarray:
    """Symmetric matrices, for samples."""
    x = rng.standard_normal(size)
    return np.asarray(x + x.swapaxes(-1, -2))
