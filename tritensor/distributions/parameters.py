"""Parameters of distributions: common shape and type, conversions of probabilities and logits, matrices as vectors, base draws."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from numbers import Number
from typing import Any, NamedTuple

from tritensor.distributions import functions as T
from tritensor.distributions.constraints import flatten_last_dims
from tritensor.ground import dtypes
from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.creation.random import draw_exponential, smallest_positive
from tritensor.tensor.functions.types.limits import finfo
from tritensor.tensor.overriding.protocol import takes_over


class Limits(NamedTuple):
    """What a floating type can hold: the distance from 1 to the next number, the least normal positive number, the least of all numbers;
    what draws above 0 that would be rounded to 0 become."""

    eps: float
    tiny: float
    least: float
    above_zero: float


@functools.cache  # asked at every draw and every log_prob; finfo works its numbers out anew
def float_limits(dtype: Any) -> Limits:
    """The limits of a floating type."""
    info = finfo(dtype)
    return Limits(float(info.eps), float(info.tiny), float(info.min), smallest_positive(dtype.numpy))


def broadcast_all(*values: Any) -> tuple[Tensor, ...]:
    """Numbers and tensors as tensors of one shape. Numbers take the first tensor's type and device; without tensors the default type.

    A number with a fraction beside integer tensors takes the default floating type instead. Objects whose class has
    __torch_function__ are asked. Raises ValueError for anything else.
    """
    wrong = [v for v in values if not isinstance(v, Number | Tensor) and not takes_over(v)]
    if wrong:
        raise ArgumentError(f"broadcast_all: {wrong[0]!r} is of type {type(wrong[0]).__name__}; give numbers or tensors")
    first = next((v for v in values if isinstance(v, Tensor)), None)
    made = []
    for v in values:
        if not isinstance(v, Tensor) and not takes_over(v):
            # 0.5 beside an integer tensor would be cut to 0
            floating = first is None or (isinstance(v, float) and not v.is_integer() and first.dtype.kind != "float")
            v = T.tensor(
                v,
                dtype=dtypes.default_float() if floating or first is None else first.dtype,
                device=None if first is None else first.device,
            )
        made.append(v)
    # parameters mostly have one shape, and broadcast_tensors would make a view of each
    if len({tuple(v.shape) for v in made}) == 1:
        return tuple(made)
    return tuple(T.broadcast_tensors(*made))


def as_float_tensor(given: Any) -> Tensor:
    """A number or tensor as a tensor; integers, of which logits may be, become the default floating type."""
    (made,) = broadcast_all(given)
    return made if made.dtype.kind == "float" else made.to(dtypes.default_float())


def draw_standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Tensor:
    """Standard normal numbers of a shape."""
    return T.randn(tuple(shape), dtype=dtype, device=device)


def draw_standard_exponential(shape: Sequence[int], like: Tensor) -> Tensor:
    """Exponential numbers of rate 1, above 0, of like's type and device."""
    return draw_exponential(tuple(shape), like.dtype.numpy, like.device)


def clamp_positive(drawn: Tensor) -> Tensor:
    """Positive draws, of which none is 0 or infinite."""
    most = float_limits(drawn.dtype)
    return drawn.clamp(min=most.above_zero, max=-most.least)  # at 0 and at infinity log_prob is infinite or NaN


def clamp_finite(drawn: Tensor) -> Tensor:
    """Draws, of which those beyond the last number of their type are that number."""
    least = float_limits(drawn.dtype).least
    return drawn.clamp(min=least, max=-least)  # through an infinite draw no gradient comes back but NaN


def clamp_open_unit(drawn: Tensor) -> Tensor:
    """Draws of (0, 1), of which none is 0 or 1."""
    most = float_limits(drawn.dtype)
    return drawn.clamp(min=most.above_zero, max=1 - most.eps / 2)  # numbers below 1 stand half as far apart as eps says


def sum_rightmost(value: Any, dim: int) -> Any:
    """The sum over the last `dim` dimensions."""
    if dim == 0:
        return value  # mostly so, and without an op
    return flatten_last_dims(value, value.dim() - dim).sum(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities kept a rounding away from 0 and 1."""
    eps = float_limits(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)  # PyTorch's bound: its logits are these, to the last digit


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of logits: of one event each (binary), or over the last dimension."""
    return logits.sigmoid() if is_binary else F.softmax(logits, dim=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Logits of probabilities: log p, less log(1 - p) where each is of an event of its own (binary)."""
    inside = clamp_probs(probs)
    return inside.log() - (-inside).log1p() if is_binary else inside.log()  # log1p: 1 - p would drop small p


def log_odds(probs: Tensor) -> Tensor:
    """log p - log(1 - p) of what was given, finite for 0 and 1: of these the numbers next to them."""
    inside = clamp_open_unit(probs)  # nearer to the ends than clamp_probs, whose bound a density would show
    return inside.log() - (-inside).log1p()


def log1p_exp(x: Tensor) -> Tensor:
    """log(1 + exp(x)), without the linear part that softplus has above 20."""
    return F.softplus(x, 1.0, 1e9)  # at 20 the part that softplus leaves out is 2e-9, which float64 holds


def log_sigmoid(x: Tensor) -> Tensor:
    """log(1 / (1 + exp(-x)))."""
    return -log1p_exp(-x)


def log1m_exp(x: Tensor) -> Tensor:
    """log(1 - exp(x)), x <= 0, by the form that keeps its digits."""
    # log1p cancels near 0 and log(-expm1) far from it (Maechler, "Accurately computing log(1 - exp(-|a|))", 2012)
    # -1 stands where the other form serves: its NaN would reach the gradient, 0 times NaN
    near = x > -math.log(2.0)
    return T.where(near, (-T.where(near, x, -1.0).expm1()).log(), (-T.where(near, -1.0, x).exp()).log1p())


def log1p_square(x: Tensor) -> Tensor:
    """log(1 + x^2), also where the square overflows."""
    # from here on the 1 is lost in rounding, so that 2 log |x| is the same number
    far = x.abs() > float_limits(x.dtype).eps ** -1
    return T.where(far, 2 * T.where(far, x, 1.0).abs().log(), T.where(far, 0.0, x).square().log1p())


def fill_like(value: float, like: Tensor, shape: Sequence[int]) -> Tensor:
    """A tensor of one value, of like's type and device."""
    return T.full(tuple(shape), value, dtype=like.dtype, device=like.device)


def require_exactly_one(name: str, **given: Any) -> str:
    """The one name of which a value is given. Raises ValueError for none or several."""
    named = [k for k, v in given.items() if v is not None]
    if len(named) != 1:
        what = " or ".join(given) if len(given) == 2 else f"{', '.join(list(given)[:-1])} or {list(given)[-1]}"
        raise ArgumentError(f"{name}: {' and '.join(named) or 'nothing'} given; give exactly one of {what}")
    return named[0]


def require_dims(name: str, parameter: str, value: Tensor, dims: int) -> None:
    """Refuse a parameter of fewer dimensions."""
    if value.dim() < dims:
        raise ArgumentError(f"{name}: {parameter} has {value.dim()} dimensions; give at least {dims}, batches before them")


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles of matrices (..., n, n), up to the diagonal `diag`, row by row as vectors."""
    n = mat.shape[-1]
    if not -n < diag < n:
        raise ArgumentError(f"tril_matrix_to_vec: diag is {diag}; for matrices of size {n} it lies between {1 - n} and {n - 1}")
    rows, columns = T.tril_indices(n, n, diag, device=mat.device)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """Lower triangular matrices of vectors that hold their triangles, up to the diagonal `diag`, row by row. Raises ValueError for lengths that none has."""
    length = vec.shape[-1]
    n = (-(1 + 2 * diag) + math.sqrt((1 + 2 * diag) ** 2 + 8 * length + 4 * abs(diag) * (diag + 1))) / 2
    if round(n) - n > float_limits(vec.dtype).eps or not float(n).is_integer():
        raise ArgumentError(f"vec_to_tril_matrix: {length} elements fill no triangle up to diagonal {diag}")
    size = round(n)
    rows, columns = T.tril_indices(size, size, diag, device=vec.device)
    return T.zeros((*vec.shape[:-1], size, size), dtype=vec.dtype, device=vec.device).index_put((..., rows, columns), vec)
