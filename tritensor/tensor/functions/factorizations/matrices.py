"""Helpers of functions of matrices: transposes, batches that broadcast, vectors as columns, errors that name the matrix that failed."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.ground.errors import DTypeError, LinAlgError, ShapeError
from tritensor.ground.thread_state import here
from tritensor.ops.array import all_values
from tritensor.ops.table import broadcast, ops
from tritensor.tensor.casting import to_dtype
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.shaping.reshaping import reshape_to


def transpose_matrices(x: Tensor) -> Tensor:
    """x^T of the last two dims."""
    n = x.ndim
    return ops.permute(x, dims=(*range(n - 2), n - 1, n - 2))


def adjoint(x: Tensor) -> Tensor:
    """x^H of the last two dims."""
    return transpose_matrices(ops.conj(x) if x.is_complex() else x)


def submatrix(x: Tensor, rows: slice = slice(None), columns: slice = slice(None)) -> Tensor:
    """x[..., rows, columns]."""
    return ops.index_view(x, index=(slice(None),) * (x.ndim - 2) + (rows, columns))


def identity(x: Tensor, rows: int, columns: int | None = None) -> Tensor:
    """The identity in x's type, on its device."""
    return ops.eye(rows=rows, columns=rows if columns is None else columns, dtype=x._array.dtype, device=x.device)


def real_type(x: Tensor) -> np.dtype:
    """The type of x's absolute values."""
    return np.dtype(x._array.real.dtype) if x.is_complex() else x._array.dtype


def is_floating(x: Tensor) -> bool:
    """Whether x holds real or complex floating numbers."""
    return x.is_floating_point() or x.is_complex()


def require_inexact(name: str, x: Tensor, label: str = "A") -> None:
    """Raise DTypeError for integers and bools."""
    if not is_floating(x):
        raise DTypeError(f"{name}: {label} is {x.dtype.name}; {name} takes floating and complex types; cast it with .to(float32)")


def require_matrices(name: str, x: Tensor, label: str = "A", square: bool = False) -> None:
    """Raise ShapeError for what is no matrix."""
    if x.ndim < 2 or (square and x.shape[-1] != x.shape[-2]):
        raise ShapeError(
            f"{name}: {label} {tuple(x.shape)} is no {'square ' if square else ''}matrix, and no batch of them; give such a one"
        )


def expand_batch(x: Tensor, batch: tuple[int, ...], keep: int = 2) -> Tensor:
    """x with its batch expanded; the last `keep` dims stay."""
    full = (*batch, *x.shape[x.ndim - keep :])
    return x if tuple(x.shape) == full else ops.expand(x, shape=full)


def broadcast_batches(name: str, a: Tensor, b: Tensor, labels: tuple[str, str] = ("A", "B")) -> tuple[Tensor, Tensor]:
    """Two batches of matrices, broadcast to one batch."""
    batch = broadcast(name, tuple(a.shape[:-2]), tuple(b.shape[:-2]), labels=(f"{labels[0]}'s batch", f"{labels[1]}'s batch"))
    return expand_batch(a, batch), expand_batch(b, batch)


def is_vector(a: Tensor, b: Tensor) -> bool:
    """Whether b holds a vector for each of a's matrices, by PyTorch's rule."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and tuple(b.shape) == tuple(a.shape[:-1]))


def to_column(b: Tensor) -> Tensor:
    """Vectors (..., n) as matrices of one column."""
    return reshape_to(b, (*b.shape, 1))


def drop_column(x: Tensor) -> Tensor:
    """Matrices of one column as vectors."""
    return reshape_to(x, tuple(x.shape[:-1]))


def raise_if_failed(name: str, info: Tensor, why: str) -> None:
    """Raise LinAlgError where a factorization says that it failed; `why` says how, of number {0}."""
    if here.noting is not None:
        here.noting.note_call(_raise_if_failed, (info,), name, why)
    _raise_if_failed((info,), name, why)


def _raise_if_failed(infos: tuple[Tensor], name: str, why: str) -> None:
    (info,) = infos
    if info.is_meta:
        return
    codes = info._array if type(info._array) is np.ndarray else all_values(info._array)
    # One look for the usual case: all matrices were factored.
    if not codes.any():
        return
    first = tuple(int(i) for i in np.argwhere(codes)[0])
    where = f"matrix {first if len(first) > 1 else first[0]} of the batch: " if first else ""
    raise LinAlgError(f"{name}: {where}{why.format(int(codes[first]))}")


def number_like(value: Any, x: Tensor) -> Tensor:
    """A number or tensor as a tensor in the type of x's absolute values."""
    wanted = real_type(x)
    if isinstance(value, Tensor):
        return to_dtype(value, wanted)
    return ops.full(shape=(), value=float(value), dtype=wanted, device=x.device)
