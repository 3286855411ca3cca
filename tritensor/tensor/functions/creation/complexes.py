"""Complex tensors made of two real ones: by their parts, or by length and angle. They live on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from tritensor.autograd.function import Function
from tritensor.errors import DeviceError, DTypeError
from tritensor.table import ops
from tritensor.table.shape_rules import broadcast
from tritensor.tensor.aliasing.inplace import write_out
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.publishing.publish import function


def _joined(name: str, x: Tensor, other: Tensor, labels: tuple[str, str]) -> tuple[Tensor, Tensor]:
    """Both broadcast to one shape. Raises DTypeError unless both are of one type that has a complex one, DeviceError on a GPU."""
    a, b = x.dtype, other.dtype
    if a is not b or a.name not in ("float32", "float64"):
        raise DTypeError(f"{name}: {labels[0]} is {a.name}, {labels[1]} {b.name}; both must be float32, or both float64")
    for label, y in zip(labels, (x, other), strict=True):
        if y.is_cuda:
            raise DeviceError(f"{name}: {label} is on {y.device}; complex tensors live on the CPU, use .cpu() first")
    shape = broadcast(name, tuple(x.array.shape), tuple(other.array.shape), labels=labels)
    return ops.expand(x, shape=shape), ops.expand(other, shape=shape)


class _Complex(Function):
    """real + i imag; of a gradient g the real part gets the real part, the imaginary part the imaginary part."""

    @staticmethod
    def forward(ctx: Any, real: Tensor, imag: Tensor) -> Tensor:  # type: ignore[override]
        made = np.empty(real.array.shape, real.dtype.to_complex().numpy)
        made.real, made.imag = real.array, imag.array
        return new_tensor(made)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        return _Part.apply(g, False), _Part.apply(g, True)


class _Part(Function):
    """The real or the imaginary part of a complex tensor, as a copy."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, imaginary: bool) -> Tensor:  # type: ignore[override]
        ctx.imaginary = imaginary
        return new_tensor(np.array(x.array.imag if imaginary else x.array.real, order="C"))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        zero = ops.full(shape=tuple(g.array.shape), value=0, dtype=g.array.dtype, device=g.device)
        return _Complex.apply(zero, g) if ctx.imaginary else _Complex.apply(g, zero), None


@function(method=False)
def complex(real: Tensor, imag: Tensor, *, out: Tensor | None = None) -> Tensor:
    """real + i imag: complex64 of float32, complex128 of float64. Raises DTypeError for other types, or two of them."""
    return _stored("complex", _Complex.apply(*_joined("complex", real, imag, ("real", "imag"))), out)


def _stored(name: str, made: Tensor, out: Tensor | None) -> Tensor:
    """The result, in `out` where one is given, which must be of its type."""
    if out is None:
        return made
    if out.dtype is not made.dtype:
        raise DTypeError(f"{name}: out is {out.dtype.name}, the result {made.dtype.name}; give an out of that type")
    return write_out(out, made, name)


@function(method=False)
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Tensor:
    """abs cos(angle) + i abs sin(angle); types as in `complex`."""
    length, turned = _joined("polar", abs, angle, ("abs", "angle"))
    made = _Complex.apply(ops.mul(length, ops.cos(turned)), ops.mul(length, ops.sin(turned)))
    return _stored("polar", made, out)
