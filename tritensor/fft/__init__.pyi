# Written by `python -m tritensor.tools.stubs`; edit the functions themselves.
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

def fft(input: Tensor, n: _builtins.int | None = None, dim: _builtins.int = -1, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform along dim, complex: y_k = sum_j x_j exp(-2 pi i j k / n)."""

def fft2(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = (-2, -1), norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`fftn` over the last two dims."""

def fftfreq(n: _builtins.int, d: _builtins.float = 1.0, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """The frequencies of `fft` of n points `d` apart, in cycles per unit of d: 0, 1, ..., then the negative ones, over n d."""

def fftn(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = None, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The discrete Fourier transform over several dims, all unless dim names them (or s, counted from the last)."""

def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """x with the zero frequency in the middle of dim (of all, or several)."""

def hfft(input: Tensor, n: _builtins.int | None = None, dim: _builtins.int = -1, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`fft` of a signal that is the conjugate of itself reversed, given by its first half: real."""

def hfft2(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = (-2, -1), norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`hfftn` over the last two dims."""

def hfftn(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = None, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`hfft` along the last dim, `fft` along the others: real."""

def ifft(input: Tensor, n: _builtins.int | None = None, dim: _builtins.int = -1, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `fft`."""

def ifft2(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = (-2, -1), norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `fft2`."""

def ifftn(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = None, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `fftn`."""

def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`."""

def ihfft(input: Tensor, n: _builtins.int | None = None, dim: _builtins.int = -1, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `hfft`."""

def ihfft2(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = (-2, -1), norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `hfft2`."""

def ihfftn(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = None, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `hfftn`."""

def irfft(input: Tensor, n: _builtins.int | None = None, dim: _builtins.int = -1, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `rfft`, real; n is the length of the result, 2 (m - 1) of m values unless given."""

def irfft2(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = (-2, -1), norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `rfft2`, real."""

def irfftn(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = None, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The inverse of `rfftn`, real."""

def rfft(input: Tensor, n: _builtins.int | None = None, dim: _builtins.int = -1, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`fft` of real numbers: the first n // 2 + 1 values, of which the others are the conjugates."""

def rfft2(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = (-2, -1), norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`rfftn` over the last two dims."""

def rfftfreq(n: _builtins.int, d: _builtins.float = 1.0, *, dtype: Any = None, device: Any = None, out: Tensor | None = None, layout: Any = None, pin_memory: _builtins.bool = False, requires_grad: _builtins.bool = False) -> Tensor:
    """The frequencies of `rfft` of n points `d` apart: 0, 1, ..., n // 2, over n d."""

def rfftn(input: Tensor, s: Sequence[_builtins.int] | _builtins.int | None = None, dim: Any = None, norm: _builtins.str | None = None, *, out: Tensor | None = None) -> Tensor:
    """`fftn` of real numbers, half of it along the last dim."""
