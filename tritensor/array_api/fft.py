"""The extension fft of the array API standard: torch.fft's transforms under the standard's signatures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tritensor.array_api.operands import functions, require_array
from tritensor.ground.dtypes import DType
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import rename_function

_ONE_AXIS = {
    "fft": "The Fourier transform along an axis.",
    "ifft": "The inverse Fourier transform along an axis.",
    "rfft": "The Fourier transform of real numbers along an axis: its first n // 2 + 1 terms.",
    "irfft": "Real numbers from the first n // 2 + 1 terms of their Fourier transform along an axis.",
    "hfft": "The real Fourier transform of a signal that is conjugate-symmetric along an axis, from its first half.",
    "ihfft": "The inverse of hfft.",
}
_SEVERAL_AXES = {
    "fftn": "The Fourier transform along several axes.",
    "ifftn": "The inverse Fourier transform along several axes.",
    "rfftn": "The Fourier transform of real numbers along several axes: half of the last one.",
    "irfftn": "Real numbers from the half of their Fourier transform along several axes.",
}


def _make_one_axis(name: str, doc: str) -> Callable[..., Tensor]:
    def call(x: Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Tensor:
        return getattr(functions.fft, name)(require_array(name, x), n, axis, norm)

    return rename_function(call, name, doc)


def _make_several_axes(name: str, doc: str) -> Callable[..., Tensor]:
    def call(x: Tensor, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward") -> Tensor:
        return getattr(functions.fft, name)(require_array(name, x), s, axes, norm)

    return rename_function(call, name, doc)


# The standard's parameters are keyword-only and named axis, PyTorch's n and dim go by place.
made = {n: _make_one_axis(n, doc) for n, doc in _ONE_AXIS.items()} | {n: _make_several_axes(n, doc) for n, doc in _SEVERAL_AXES.items()}
globals().update(made)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """The frequencies of fft's terms for samples at distance d."""
    return functions.fft.fftfreq(n, d, dtype=dtype, device=device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DType | None = None, device: Any = None) -> Tensor:
    """The frequencies of rfft's terms for samples at distance d."""
    return functions.fft.rfftfreq(n, d, dtype=dtype, device=device)


def fftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """Terms with frequency 0 in the middle of axes."""
    return functions.fft.fftshift(require_array("fftshift", x), axes)


def ifftshift(x: Tensor, /, *, axes: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of fftshift."""
    return functions.fft.ifftshift(require_array("ifftshift", x), axes)


__all__ = sorted([*made, "fftfreq", "fftshift", "ifftshift", "rfftfreq"])
