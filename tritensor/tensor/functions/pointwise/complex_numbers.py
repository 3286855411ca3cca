"""Complex numbers under PyTorch's names: parts, conjugates, angles, views as pairs of real numbers. They live on the CPU."""

from __future__ import annotations

from typing import Any

from tritensor.autograd.saved import borrow_saved
from tritensor.ground import dtypes
from tritensor.ground.errors import DTypeError
from tritensor.ops.table import ops
from tritensor.tensor.aliasing.inplace import write_out
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import function, rename_function, twin


@function
def conj(x: Tensor) -> Tensor:
    """The complex conjugate, computed at once (no lazy view, as PyTorch's is); a real x itself."""
    return ops.conj(x) if x.is_complex() else x


@function(inplace=True, out=True)
def conj_physical(x: Tensor) -> Tensor:
    """The complex conjugate in memory of its own; a real x itself."""
    return ops.conj(x) if x.is_complex() else x


def _publish_resolved(name: str, doc: str) -> None:
    def call(x: Tensor) -> Tensor:
        _ = x._array  # which only a tensor has: other arguments are refused
        return x

    function(rename_function(call, name, doc))


def _publish_never(name: str, doc: str) -> None:
    def call(x: Tensor) -> bool:
        return x._array is None  # never

    function(rename_function(call, name, doc))


for _suffix, _word in (("conj", "conjugated"), ("neg", "negated")):
    _publish_resolved(f"resolve_{_suffix}", f"x itself: no tensor here is {_word} lazily.")
    _publish_never(f"is_{_suffix}", f"Whether x is {_word} lazily: never, here.")


@function(method=False)
def real(x: Tensor) -> Tensor:
    """The real parts: of complex numbers a view, of real ones x itself."""
    return ops.real(x) if x.is_complex() else x


@function(method=False)
def imag(x: Tensor) -> Tensor:
    """The imaginary parts, a view. Raises DTypeError for real numbers, which have none to look at."""
    return ops.imag(x)


def _set_real(self: Tensor, value: Any) -> None:
    real(self)[...] = value


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self)[...] = value


Tensor.real = property(twin(real, "Tensor.real"), _set_real)  # type: ignore[assignment, method-assign]
Tensor.imag = property(twin(imag, "Tensor.imag"), _set_imag)  # type: ignore[assignment, method-assign]


@function
def view_as_real(x: Tensor) -> Tensor:
    """Complex numbers (...) as pairs of real ones (..., 2), a view."""
    return ops.view_as_real(x)


@function
def view_as_complex(x: Tensor) -> Tensor:
    """Pairs (..., 2) of float32 or float64 as complex numbers (...), a view. Raises ShapeError where the strides allow none."""
    return ops.view_as_complex(x)


@function(method=False)
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + i imag, of two tensors of float32, or of float64, that broadcast. Raises DTypeError for other types, and an `out` of another one."""
    made = ops.complex(real, imag)
    if out is None:
        return made
    # PyTorch does not cast here, unlike in other functions.
    if out.dtype is not made.dtype:
        raise DTypeError(f"complex: out is {out.dtype.name}, the result {made.dtype.name}; give an out of that type")
    return write_out(out, made, "complex")


@function(method=False, out=True)
@borrow_saved
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """abs (cos angle + i sin angle), of two tensors of float32, or of float64, that broadcast."""
    if abs._array.dtype != angle._array.dtype:
        raise DTypeError(f"polar: abs is {abs.dtype.name}, angle {angle.dtype.name}; both must be float32, or both float64")
    return ops.complex(ops.mul(abs, ops.cos(angle)), ops.mul(abs, ops.sin(angle)))


@function(out=True)
def angle(x: Tensor) -> Tensor:
    """The angle of complex numbers in (-pi, pi]; of real ones 0, pi below 0, NaN of NaN. The gradient of a real x is 0."""
    if x.is_complex():
        return ops.atan2(ops.imag(x), ops.real(x))
    if not x.is_floating_point():
        x = ops.cast(x, dtype=dtypes.default_float().numpy)
    return ops.real_angle(x)


@function(inplace=True, out=True)
def sgn(x: Tensor) -> Tensor:
    """x / |x| of complex numbers, 0 at 0; the sign of real ones."""
    return ops.sign(x)
