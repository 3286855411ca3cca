# Written by `python -m tritensor.tools.stubs`; edit the functions themselves.
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

def fft(x: Tensor, /, *, n: _builtins.int | None = None, axis: _builtins.int = -1, norm: _builtins.str = 'backward') -> Tensor:
    """The Fourier transform along an axis."""

def fftfreq(n: _builtins.int, /, *, d: _builtins.float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of fft's terms for samples at distance d."""

def fftn(x: Tensor, /, *, s: Sequence[_builtins.int] | None = None, axes: Sequence[_builtins.int] | None = None, norm: _builtins.str = 'backward') -> Tensor:
    """The Fourier transform along several axes."""

def fftshift(x: Tensor, /, *, axes: _builtins.int | Sequence[_builtins.int] | None = None) -> Tensor:
    """Terms with frequency 0 in the middle of axes."""

def hfft(x: Tensor, /, *, n: _builtins.int | None = None, axis: _builtins.int = -1, norm: _builtins.str = 'backward') -> Tensor:
    """The real Fourier transform of a signal that is conjugate-symmetric along an axis, from its first half."""

def ifft(x: Tensor, /, *, n: _builtins.int | None = None, axis: _builtins.int = -1, norm: _builtins.str = 'backward') -> Tensor:
    """The inverse Fourier transform along an axis."""

def ifftn(x: Tensor, /, *, s: Sequence[_builtins.int] | None = None, axes: Sequence[_builtins.int] | None = None, norm: _builtins.str = 'backward') -> Tensor:
    """The inverse Fourier transform along several axes."""

def ifftshift(x: Tensor, /, *, axes: _builtins.int | Sequence[_builtins.int] | None = None) -> Tensor:
    """The inverse of fftshift."""

def ihfft(x: Tensor, /, *, n: _builtins.int | None = None, axis: _builtins.int = -1, norm: _builtins.str = 'backward') -> Tensor:
    """The inverse of hfft."""

def irfft(x: Tensor, /, *, n: _builtins.int | None = None, axis: _builtins.int = -1, norm: _builtins.str = 'backward') -> Tensor:
    """Real numbers from the first n // 2 + 1 terms of their Fourier transform along an axis."""

def irfftn(x: Tensor, /, *, s: Sequence[_builtins.int] | None = None, axes: Sequence[_builtins.int] | None = None, norm: _builtins.str = 'backward') -> Tensor:
    """Real numbers from the half of their Fourier transform along several axes."""

def rfft(x: Tensor, /, *, n: _builtins.int | None = None, axis: _builtins.int = -1, norm: _builtins.str = 'backward') -> Tensor:
    """The Fourier transform of real numbers along an axis: its first n // 2 + 1 terms."""

def rfftfreq(n: _builtins.int, /, *, d: _builtins.float = 1.0, dtype: Any = None, device: Any = None) -> Tensor:
    """The frequencies of rfft's terms for samples at distance d."""

def rfftn(x: Tensor, /, *, s: Sequence[_builtins.int] | None = None, axes: Sequence[_builtins.int] | None = None, norm: _builtins.str = 'backward') -> Tensor:
    """The Fourier transform of real numbers along several axes: half of the last one."""
