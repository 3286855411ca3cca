# Written by `python -m tritensor.tools.stubs`; edit the functions themselves.
import builtins as _builtins
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tritensor.random import Generator
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size

def amax(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, *, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Largest over dims of what the mask shows; the lowest number of nothing."""

def amin(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, *, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Smallest over dims of what the mask shows; the highest number of nothing."""

def argmax(input: Tensor, dim: _builtins.int | None = None, *, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Index along dim, or in the flattened tensor, of the largest that the mask shows; in x's own type, as in PyTorch."""

def argmin(input: Tensor, dim: _builtins.int | None = None, *, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Index along dim, or in the flattened tensor, of the smallest that the mask shows; in x's own type, as in PyTorch."""

def cumprod(input: Tensor, dim: _builtins.int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running product along dim of what the mask shows."""

def cumsum(input: Tensor, dim: _builtins.int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Running sum along dim of what the mask shows."""

def log_softmax(input: Tensor, dim: _builtins.int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """x - log sum e^x along dim of what the mask shows, -inf elsewhere; NaN where it shows nothing."""

def logaddexp(input: Tensor, other: Tensor, *, dtype: Any = None, input_mask: Tensor | None = None, other_mask: Tensor | None = None) -> Tensor:
    """log(e^x + e^other) of what the masks show; -inf of nothing."""

def logsumexp(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, *, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """log sum e^x over dims of what the mask shows; -inf of nothing. Of integers a whole number, as in PyTorch."""

def mean(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, *, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Mean over dims of what the mask shows, of floating types (ArgumentError for others; give dtype); NaN of nothing."""

def median(input: Tensor, dim: _builtins.int = -1, *, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The middle element along dim, the lower one of two, of what the mask shows and is not NaN; NaN of nothing."""

def norm(input: Tensor, ord: _builtins.float | None = 2.0, dim: _builtins.int | Sequence[_builtins.int] | None = None, *, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The norm of order `ord` over dims (see linalg.vector_norm) of what the mask shows."""

def normalize(input: Tensor, ord: _builtins.float, dim: _builtins.int, *, eps: _builtins.float = 1e-12, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """x divided by its norm along dim (by eps where that is smaller), of what the mask shows; 0 elsewhere."""

def prod(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, *, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Product over dims of what the mask shows; 1 of nothing."""

def softmax(input: Tensor, dim: _builtins.int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """e^x / sum e^x along dim of what the mask shows, 0 elsewhere; NaN where it shows nothing."""

def softmin(input: Tensor, dim: _builtins.int, *, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """The softmax of -x."""

def std(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, unbiased: _builtins.bool | None = None, *, correction: _builtins.float | None = None, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Standard deviation over dims of what the mask shows."""

def sum(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, *, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Sum over dims of what the mask shows; 0 of nothing."""

def var(input: Tensor, dim: _builtins.int | Sequence[_builtins.int] | None = None, unbiased: _builtins.bool | None = None, *, correction: _builtins.float | None = None, keepdim: _builtins.bool = False, dtype: Any = None, mask: Tensor | None = None) -> Tensor:
    """Variance over dims of what the mask shows."""
