"""The extension linalg of the array API standard, and the products of its main namespace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor.array_api.manipulation import matrix_transpose
from tritensor.array_api.operands import Axes, common_type, functions, normal_axes, promote_operands, require_array, to_dtype
from tritensor.array_api.statistical import sum as _sum
from tritensor.ground.dtypes import DType
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import rename_function


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The matrix product; a vector is a row on the left and a column on the right."""
    return functions.matmul(*promote_operands("matmul", x1, x2))


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Sums of products over axes: so many last ones of x1 with first ones of x2, or those named."""
    return functions.tensordot(*promote_operands("tensordot", x1, x2), axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sums of conj(x1) * x2 along an axis counted from the end. Raises ValueError where its sizes differ."""
    a, b = promote_operands("vecdot", x1, x2)
    # Counted from the end, an axis means the same in both operands, however many others broadcast.
    if axis >= 0 or -axis > min(a.ndim, b.ndim):
        raise ArgumentError(f"vecdot: axis is {axis}; it counts from the end, from -{min(a.ndim, b.ndim)} to -1")
    if a.shape[axis] != b.shape[axis]:
        raise ShapeError(f"vecdot: axis {axis} of {tuple(a.shape)} and of {tuple(b.shape)} differ in size")
    return functions.sum((functions.conj(a) if a.is_complex() else a) * b, axis, dtype=a.dtype)


def _make_of_matrices(name: str, doc: str) -> Callable[[Tensor], Any]:
    def call(x: Tensor, /) -> Any:
        return getattr(functions.linalg, name)(require_array(name, x))

    return rename_function(call, name, doc)


det = _make_of_matrices("det", "Determinants.")
eigh = _make_of_matrices("eigh", "Eigenvalues, ascending, and eigenvectors of symmetric or Hermitian matrices.")
eigvalsh = _make_of_matrices("eigvalsh", "Eigenvalues, ascending, of symmetric or Hermitian matrices.")
inv = _make_of_matrices("inv", "Inverse matrices.")
slogdet = _make_of_matrices("slogdet", "The sign and the logarithm of the absolute value of determinants.")
svdvals = _make_of_matrices("svdvals", "Singular values, descending.")


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """The triangular L with L L^H = x, or U with U^H U = x."""
    return functions.linalg.cholesky(require_array("cholesky", x), upper=upper)


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The cross products of vectors of three along an axis; the other axes broadcast."""
    a, b = promote_operands("cross", x1, x2)
    # PyTorch broadcasts this axis, too; the standard does not.
    sizes = [x._array.shape[normal_axes("cross", x, axis)[0]] for x in (a, b)]
    if sizes != [3, 3]:
        raise ShapeError(f"cross: axis {axis} of {tuple(a._array.shape)} and of {tuple(b._array.shape)} has sizes {sizes}; both must be 3")
    return functions.linalg.cross(*functions.broadcast_tensors(a, b), dim=axis)


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Diagonals of matrices."""
    return functions.diagonal(require_array("diagonal", x), offset, -2, -1)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: int | float | str | None = "fro") -> Tensor:
    """Norms of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf."""
    return functions.linalg.matrix_norm(require_array("matrix_norm", x), "fro" if ord is None else ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Square matrices to a whole power."""
    return functions.linalg.matrix_power(require_array("matrix_power", x), n)


def matrix_rank(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """How many singular values exceed rtol times the largest."""
    return functions.linalg.matrix_rank(require_array("matrix_rank", x), rtol=rtol)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The products of the elements of two vectors."""
    a, b = promote_operands("outer", x1, x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ShapeError(f"outer: x1 has shape {tuple(a.shape)}, x2 {tuple(b.shape)}; both are vectors")
    return a.reshape(-1, 1) * b


def pinv(x: Tensor, /, *, rtol: float | Tensor | None = None) -> Tensor:
    """Pseudo-inverses, singular values below rtol times the largest taken for 0."""
    return functions.linalg.pinv(require_array("pinv", x), rtol=rtol)


def qr(x: Tensor, /, *, mode: str = "reduced") -> Any:
    """Q with orthonormal columns and R upper triangular with Q R = x; Q is square for "complete"."""
    # PyTorch has a third mode, "r", whose Q is empty.
    if mode not in ("reduced", "complete"):
        raise ArgumentError(f"qr: mode is {mode!r}; it is 'reduced' or 'complete'")
    return functions.linalg.qr(require_array("qr", x), mode)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The y with x1 y = x2: x2 is one vector where it has one axis, else matrices."""
    a, b = promote_operands("solve", x1, x2)
    if b.ndim == 1:
        # As a matrix of one column, so that no batch of vectors is seen in it.
        return functions.squeeze(functions.linalg.solve(a, b.reshape((1,) * (a.ndim - 2) + (-1, 1))), -1)
    # As many axes: PyTorch might see stacked vectors.
    return functions.linalg.solve(a, b.reshape((1,) * (a.ndim - b.ndim) + tuple(b.shape)))


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """U, S and Vh with U diag(S) Vh = x, singular values descending."""
    return functions.linalg.svd(require_array("svd", x), full_matrices)


def trace(x: Tensor, /, *, offset: int = 0, dtype: DType | None = None) -> Tensor:
    """Sums of diagonals, in the type that `sum` gives."""
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def vector_norm(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False, ord: int | float = 2) -> Tensor:
    """Norms along axes taken as one vector: (sum |x|^ord)^(1/ord), the largest or smallest |x|, how many are not 0."""
    dims = normal_axes("vector_norm", require_array("vector_norm", x), axis)
    # Integers have norms here, and PyTorch refuses them.
    kind = common_type("vector_norm", x, 1.0) if x.dtype.kind in ("bool", "int", "uint") else x._array.dtype
    x = to_dtype(x, kind)
    return functions.linalg.vector_norm(x, ord, dims, keepdims) if dims else functions.linalg.vector_norm(x.unsqueeze(-1), ord, (-1,))


__all__ = [
    "cholesky", "cross", "det", "diagonal", "eigh", "eigvalsh", "inv", "matmul", "matrix_norm", "matrix_power", "matrix_rank",
    "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
