"""Functions that reduce: sums, means, extrema, norms, quantifiers, softmax. dim may be an int, a tuple, or None for all; axis= is another name."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.autograd.engine import is_followed
from tritensor.ground import dtypes, shortcuts
from tritensor.ground.errors import ArgumentError, DTypeError, EmptyError
from tritensor.ground.thread_state import here
from tritensor.ops.lazy_array import LazyArray, settle
from tritensor.ops.table import normal_dim, normal_dims, ops
from tritensor.tensor.casting import cast, to_accumulator, to_dtype
from tritensor.tensor.core import Tensor
from tritensor.tensor.functions.linear.products import nuclear_norm
from tritensor.tensor.functions.shaping.reshaping import forget_base
from tritensor.tensor.public_api.publish import function, rename_function
from tritensor.tensor.return_types import return_type

Dims = int | Sequence[int] | None


class ValuesIndices(NamedTuple):
    """What max(x, dim) and min(x, dim) return."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """What aminmax returns."""

    min: Tensor
    max: Tensor


def parse_dims(name: str, x: Tensor, dim: Any, axis: Any = None) -> tuple[int, ...]:
    """The reduced dims, sorted, counted from the front."""
    dim = choose_argument(name, "dim", dim, "axis", axis)
    # PyTorch reads an empty tuple as all dims, in every reduction but any and all.
    if dim is None or (isinstance(dim, tuple | list) and not dim):
        return tuple(range(x.ndim))
    return normal_dims(name, dim, x.ndim)


def choose_argument(name: str, a: str, x: Any, b: str, y: Any) -> Any:
    """The one of two names of an argument that was given. Raises TypeError where both were."""
    if x is not None and y is not None:
        raise TypeError(f"{name}: {a}={x} and {b}={y} are two names for one argument; give one")
    return y if x is None else x


def _keeps_dims(keepdim: bool, keepdims: bool | None) -> bool:
    return bool(keepdim if keepdims is None else keepdims)


def cast_if_given(x: Tensor, dtype: Any) -> Tensor:
    """x in the type in which a result was asked for."""
    if dtype is None:
        return x
    return cast(x, dtypes.as_dtype(dtype).numpy)


# Sums
@function(out="dtype")
def sum(
    x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, axis: Dims = None, keepdims: bool | None = None
) -> Tensor:
    """Sum over dims. Integers and bools give int64, unless dtype says another type; 16-bit floats accumulate in float32.

    >>> x = tt.tensor([[1, 2], [3, 4]])
    >>> x.sum(), x.sum(dim=0), x.sum(dim=1, keepdim=True).shape
    (tensor(10), tensor([4, 6]), tritensor.Size([2, 1]))
    """
    dims, kept = parse_dims("sum", x, dim, axis), _keeps_dims(keepdim, keepdims)
    return cast_if_given(ops.sum(cast_if_given(x, dtype), dim=dims, keepdim=kept), dtype)


@function(out="dtype")
def nansum(
    x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, axis: Dims = None, keepdims: bool | None = None
) -> Tensor:
    """Sum over dims of what is not NaN."""
    dims, kept = parse_dims("nansum", x, dim, axis), _keeps_dims(keepdim, keepdims)
    if x.is_floating_point():
        floating = dtype is None or dtypes.as_dtype(dtype).kind == "float"
        shortcuts.note_values_read()
        if floating and not x.is_cuda:  # often there is no NaN: one look at the sum tells, where no wait is paid for it
            plain = ops.sum(cast_if_given(x, dtype), dim=dims, keepdim=kept)
            if np.isfinite(settle(plain._array).astype(np.float32)).all():
                return cast_if_given(plain, dtype)
        x = ops.where(ops.ne(x, x), 0.0, x)
    return cast_if_given(ops.sum(cast_if_given(x, dtype), dim=dims, keepdim=kept), dtype)


@function(out="float dtype")
def mean(
    x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, axis: Dims = None, keepdims: bool | None = None
) -> Tensor:
    """Mean over dims, of floating types (DTypeError for others; cast them or give dtype). NaN over no elements."""
    return ops.mean(cast_if_given(x, dtype), dim=parse_dims("mean", x, dim, axis), keepdim=_keeps_dims(keepdim, keepdims))


@function(out="float dtype")
def nanmean(
    x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, axis: Dims = None, keepdims: bool | None = None
) -> Tensor:
    """Mean over dims of what is not NaN."""
    x, dims, kept = cast_if_given(x, dtype), parse_dims("nanmean", x, dim, axis), _keeps_dims(keepdim, keepdims)
    y = to_accumulator(x)
    count = ops.cast(ops.sum(ops.eq(y, y), dim=dims, keepdim=kept), dtype=y._array.dtype)
    return to_dtype(ops.div(ops.sum(ops.where(ops.ne(y, y), 0.0, y), dim=dims, keepdim=kept), count), x._array.dtype)


@function(out="dtype")
def prod(
    x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: Any = None, axis: Dims = None, keepdims: bool | None = None
) -> Tensor:
    """Product over dims; integers and bools in int64. The gradient is exact where elements are zero."""
    dims, kept = parse_dims("prod", x, dim, axis), _keeps_dims(keepdim, keepdims)
    return cast_if_given(ops.prod(cast_if_given(x, dtype), dim=dims, keepdim=kept), dtype)


@function
def count_nonzero(x: Tensor, dim: Dims = None, *, axis: Dims = None, keepdims: bool = False) -> Tensor:
    """How many elements over dims are not zero, int64."""
    return ops.sum(ops.ne(x, 0), dim=parse_dims("count_nonzero", x, dim, axis), keepdim=bool(keepdims))


# Spread
def _parse_variance_arguments(name: str, x: Tensor, dim: Any, unbiased: Any, correction: Any, axis: Any) -> tuple[tuple[int, ...], float]:
    """Dims and correction from both of PyTorch's signatures: (dim, correction=1) and (dim, unbiased), (unbiased)."""
    if isinstance(dim, bool):  # x.std(False)
        dim, unbiased = None, dim
    if unbiased is not None:
        if correction is not None:
            raise TypeError(f"{name}: unbiased={unbiased} and correction={correction} say the same thing; give correction")
        correction = 1 if unbiased else 0
    return parse_dims(name, x, dim, axis), 1 if correction is None else correction


def _find_variance(x: Tensor, dims: tuple[int, ...], correction: float, keepdim: bool) -> Tensor:
    """The variance; of complex numbers that of their real parts and that of their imaginary parts together."""
    if not x.is_complex():
        return ops.var(x, dim=dims, correction=correction, keepdim=keepdim)
    # Var(z) = Var(re) + Var(im).
    parts = (ops.var(part, dim=dims, correction=correction, keepdim=keepdim) for part in (x.real, x.imag))
    return ops.add(*parts)


def _publish_spread(name: str, find: Callable[..., Tensor], doc: str) -> None:
    """A spread by itself, and beside the mean."""

    def alone(
        x: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float | None = None, axis: Dims = None,
        keepdims: bool | None = None,
    ) -> Tensor:  # fmt: skip
        dims, correction = _parse_variance_arguments(name, x, dim, unbiased, correction, axis)
        return find(x, dims, correction, _keeps_dims(keepdim, keepdims))

    def with_mean(
        x: Tensor,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
        axis: Dims = None,
    ) -> tuple[Tensor, Tensor]:
        dims, correction = _parse_variance_arguments(f"{name}_mean", x, dim, unbiased, correction, axis)
        return find(x, dims, correction, keepdim), ops.mean(x, dim=dims, keepdim=keepdim)

    function(rename_function(alone, name, doc), out=True)
    function(rename_function(with_mean, f"{name}_mean", f"({'variance' if name == 'var' else 'standard deviation'}, mean) over dims."))


def _find_deviation(x: Tensor, dims: tuple[int, ...], correction: float, keepdim: bool) -> Tensor:
    """The root of the variance, in x's type, or the real one of a complex x; on the CPU in float64 where float32 does not hold the squares."""
    y = _safe_sqrt(_find_variance(to_accumulator(x), dims, correction, keepdim))
    if x.is_complex():
        return y
    if type(y._array) in (np.ndarray, LazyArray) and y._array.dtype == np.float32 and not y.is_cuda and not _squares_fit(settle(y._array)):
        y = _safe_sqrt(_find_variance(ops.cast(x, dtype=np.dtype(np.float64)), dims, correction, keepdim))
    return to_dtype(y, x._array.dtype)


def _squares_fit(deviations: np.ndarray) -> bool:
    """Whether float32 held the squares that these are the roots of."""
    shortcuts.note_values_read()
    if deviations.size == 1:
        return 1e-17 < deviations.item() < math.inf
    return not deviations.size or bool(deviations.min() > 1e-17 and deviations.max() < math.inf)


def _safe_sqrt(x: Tensor, hides: bool = True) -> Tensor:
    """sqrt(x) for x >= 0 with gradient 0 at 0, where sqrt's own is infinite; differentiable to any order elsewhere.

    hides: whether a NaN that arrives at 0 is hidden, too, as in PyTorch's deviations, and not in its norms.
    """
    if not is_followed(x):
        return ops.sqrt(x)
    if type(x._array) is np.ndarray and here.noting is None and x._array.all():  # few numbers: to look costs less than to choose
        return ops.sqrt(x)
    at_zero = ops.eq(x, 0.0)
    return ops.where(at_zero, 0.0 if hides else ops.mul(x, 0.0), ops.sqrt(ops.where(at_zero, 1.0, x)))


_publish_spread(
    "var",
    _find_variance,
    "Variance over dims, sum((x - mean)^2) / max(0, n - correction); correction is 1 unless given (unbiased=False: 0).",
)
_publish_spread("std", _find_deviation, "Standard deviation over dims: the square root of `var`, with gradient 0 where it is 0.")


# Extrema
def _find_extremum(name: str, x: Tensor, dim: Any, keepdim: Any, axis: Any, keepdims: Any, other: Any) -> Any:
    """max and min in all of PyTorch's forms."""
    dim = choose_argument(name, "dim", dim, "axis", axis)
    # max(x, y) is PyTorch's elementwise overload.
    if isinstance(dim, Tensor) or other is not None:
        if not isinstance(x, Tensor) or not isinstance(choose_argument(name, "dim", dim, "other", other), Tensor):
            raise TypeError(f"{name}: a number beside a tensor; give two tensors, or clamp")
        return getattr(ops, name + "imum")(x, choose_argument(name, "dim", dim, "other", other))
    reduce = getattr(ops, "a" + name)
    if dim is None:
        return reduce(x, dim=tuple(range(x.ndim)), keepdim=_keeps_dims(keepdim, keepdims))
    if isinstance(dim, float):
        raise TypeError(f"{name}: dim {dim} is not an integer; for the larger or smaller of x and a number there is clamp")
    # Several dims: numpy's form, without indices.
    if not isinstance(dim, int | np.integer):
        return reduce(x, dim=parse_dims(name, x, dim), keepdim=_keeps_dims(keepdim, keepdims))
    found = getattr(ops, name + "_dim")(x, dim=normal_dim(name, int(dim), x.ndim), keepdim=_keeps_dims(keepdim, keepdims))
    return return_type(name, ValuesIndices)(*found)


@function(out=True)
def max(
    x: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Dims = None, keepdims: bool | None = None, other: Tensor | None = None
) -> Any:
    """max(x): the largest element. max(x, dim): (values, indices). max(x, other): the larger of each pair.

    NaN counts as largest. The gradient of max(x) is shared evenly among equals, that of max(x, dim) goes to the index.

    >>> x = tt.tensor([[1.0, 5.0], [7.0, 2.0]])
    >>> x.max()
    tensor(7.)
    >>> values, indices = x.max(dim=1)
    >>> values, indices
    (tensor([5., 7.]), tensor([1, 0]))
    """
    return _find_extremum("max", x, dim, keepdim, axis, keepdims, other)


@function(out=True)
def min(
    x: Tensor, dim: Any = None, keepdim: bool = False, *, axis: Dims = None, keepdims: bool | None = None, other: Tensor | None = None
) -> Any:
    """min(x): the smallest element. min(x, dim): (values, indices). min(x, other): the smaller of each pair. NaN counts as smallest."""
    return _find_extremum("min", x, dim, keepdim, axis, keepdims, other)


@function(out=True)
def amax(x: Tensor, dim: Dims = None, keepdim: bool = False, *, axis: Dims = None, keepdims: bool | None = None) -> Tensor:
    """Largest over dims; the gradient is shared evenly among equals. ShapeError over no elements."""
    return ops.amax(x, dim=parse_dims("amax", x, dim, axis), keepdim=_keeps_dims(keepdim, keepdims))


@function(out=True)
def amin(x: Tensor, dim: Dims = None, keepdim: bool = False, *, axis: Dims = None, keepdims: bool | None = None) -> Tensor:
    """Smallest over dims; the gradient is shared evenly among equals. ShapeError over no elements."""
    return ops.amin(x, dim=parse_dims("amin", x, dim, axis), keepdim=_keeps_dims(keepdim, keepdims))


@function(out="exact")
def aminmax(x: Tensor, *, dim: Dims = None, keepdim: bool = False) -> MinMax:
    """(min, max): smallest and largest over dims; gradients as those of amin and amax."""
    return return_type("aminmax", MinMax)(amin(x, dim, keepdim), amax(x, dim, keepdim))


def _publish_index(name: str, doc: str) -> None:
    def call(x: Tensor, dim: int | None = None, keepdim: bool = False, *, axis: int | None = None, keepdims: bool | None = None) -> Tensor:
        dim = choose_argument(name, "dim", dim, "axis", axis)
        return getattr(ops, name)(x, dim=None if dim is None else normal_dim(name, dim, x.ndim), keepdim=_keeps_dims(keepdim, keepdims))

    function(rename_function(call, name, doc), out=True)


_publish_index("argmax", "Index (int64) of the first largest along dim, or in the flattened tensor.")
_publish_index("argmin", "Index (int64) of the first smallest along dim, or in the flattened tensor.")


# Quantifiers
def _publish_quantifier(name: str, doc: str) -> None:
    def call(x: Tensor, dim: Dims = None, keepdim: bool = False, *, axis: Dims = None, keepdims: bool | None = None) -> Tensor:
        dim = choose_argument(name, "dim", dim, "axis", axis)
        dims = tuple(range(x.ndim)) if dim is None else normal_dims(name, dim, x.ndim)  # of all functions, these two take () for no dim
        y = getattr(ops, name)(x, dim=dims, keepdim=_keeps_dims(keepdim, keepdims))
        return ops.cast(y, dtype=x._array.dtype) if x._array.dtype == np.uint8 else y

    function(rename_function(call, name, doc), out=True)


_publish_quantifier(
    "any", "Whether any element over dims is not zero (NaN is not); over dim=() each element's own truth. uint8 stays uint8."
)
_publish_quantifier(
    "all", "Whether all elements over dims are not zero; True over none; over dim=() each element's own truth. uint8 stays uint8."
)


# Norms
@function(out=True)
def norm(
    x: Tensor, p: float | str | None = "fro", dim: Dims = None, keepdim: bool = False, dtype: Any = None, *, axis: Dims = None,
    keepdims: bool | None = None,
) -> Tensor:  # fmt: skip
    """The p-norm over dims, (sum |x|^p)^(1/p): p = 2 (or "fro", None), 1, 0 (how many are not zero), inf, -inf, or any number.

    "nuc" is the sum of the singular values of the matrices that two dims name (of x itself, if it is a matrix).
    The gradient of the norm at 0, and to an element that is 0, is 0. Differentiable to any order.

    Raises:
        DTypeError: x is not floating. ValueError: p is no number and no name. ShapeError: "nuc" of anything but matrices.
    """
    if dtype is not None and x.is_complex() and not dtypes.as_dtype(dtype).is_complex:
        raise DTypeError(f"norm: x is {x.dtype.name}, dtype {dtypes.as_dtype(dtype).name}; give a complex type")
    x, kept = cast_if_given(x, dtype), _keeps_dims(keepdim, keepdims)
    if not x.is_floating_point() and not x.is_complex():
        raise DTypeError(f"norm: x is {x.dtype.name}; norm takes floating types; cast it with .to(float32) or give dtype")
    # The only order that is no function of absolute values.
    if p == "nuc":
        return nuclear_norm(x, choose_argument("norm", "dim", dim, "axis", axis), kept)
    dims = parse_dims("norm", x, dim, axis)
    if p is None or p == "fro":
        p = 2
    if isinstance(p, str):
        raise ArgumentError(f"norm: p {p!r} is no number, and neither 'fro' nor 'nuc'; give one of these")
    return p_norm(x, p, dims, kept)


def p_norm(x: Tensor, p: float, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """(sum |x|^p)^(1/p) over sorted dims, of floating or complex x, for any number p."""
    if (p < 0 or p == math.inf) and 0 in [x._array.shape[d] for d in dims]:
        raise EmptyError(f"norm: x {tuple(x.shape)} has no element along dim {dims}, and p {p} needs one")
    if x.is_complex():
        x = ops.abs(x)
    if p and math.prod([x._array.shape[d] for d in dims]) == 1:
        p = 1  # of one element its size, whose square a type may not hold
    if p == 2:
        return to_dtype(_safe_sqrt(ops.sum_of_squares(to_accumulator(x), dim=dims, keepdim=keepdim), hides=False), x._array.dtype)
    if p == 0:
        if not is_followed(x):
            return ops.cast(ops.sum(ops.ne(x, 0.0), dim=dims, keepdim=keepdim), dtype=x._array.dtype)
        return ops.sum(ops.abs(ops.sign(ops.where(ops.isnan(x), 1.0, x))), dim=dims, keepdim=keepdim)  # in the graph: its gradient is 0
    if math.isinf(p):
        return (ops.amax if p > 0 else ops.amin)(ops.abs(x), dim=dims, keepdim=keepdim)
    if p == 1:
        return ops.sum(ops.abs(x), dim=dims, keepdim=keepdim)
    powers = ops.sum(_safe_power(ops.abs(to_accumulator(x)), float(p)), dim=dims, keepdim=keepdim)
    return to_dtype(_safe_power(powers, 1.0 / p), x._array.dtype)


def _safe_power(x: Tensor, exponent: float) -> Tensor:
    """x^exponent of x >= 0 with gradient 0 at 0, where its own may be infinite; differentiable to any order elsewhere."""
    at_zero = ops.eq(x, 0.0)
    return ops.where(at_zero, 0.0 if exponent > 0 else math.inf, ops.pow(ops.where(at_zero, 1.0, x), exponent))


@function
def dist(x: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of x - other."""
    return norm(ops.sub(x, other), p)


# Exponentials
@function(out=True)
def logsumexp(x: Tensor, dim: Dims = None, keepdim: bool = False, *, axis: Dims = None, keepdims: bool | None = None) -> Tensor:
    """log sum e^x over dims, from the largest element down, so that nothing overflows; -inf over no elements."""
    dims = parse_dims("logsumexp", x, dim, axis)
    if not x.is_floating_point() and not x.is_complex():
        x = ops.cast(x, dtype=dtypes.default_float().numpy)
    y = to_accumulator(x)
    if 0 in [x.shape[d] for d in dims]:  # there is no largest of nothing, but a sum: 0
        out = ops.log(ops.sum(ops.exp(y), dim=dims, keepdim=True))
    else:
        top = ops.amax(y.detach().real if x.is_complex() else y.detach(), dim=dims, keepdim=True)
        # -inf - -inf would be NaN where a whole row is -inf.
        top = ops.where(ops.isfinite(top), top, 0.0)
        out = ops.add(ops.log(ops.sum(ops.exp(ops.sub(y, top)), dim=dims, keepdim=True)), top)
    out = to_dtype(out, x._array.dtype)
    if _keeps_dims(keepdim, keepdims):
        return out
    return forget_base(ops.reshape(out, shape=tuple(n for a, n in enumerate(x.shape) if a not in dims)))


@function(out=True)
def softmax(x: Tensor, dim: int | None = None, dtype: Any = None, *, axis: int | None = None) -> Tensor:
    """e^x / sum e^x along dim; `dtype`: cast x first."""
    return ops.softmax(cast_if_given(x, dtype), dim=_require_dim("softmax", x, dim, axis))


@function(out=True)
def log_softmax(x: Tensor, dim: int | None = None, dtype: Any = None, *, axis: int | None = None) -> Tensor:
    """x - log sum e^x along dim; `dtype`: cast x first."""
    return ops.log_softmax(cast_if_given(x, dtype), dim=_require_dim("log_softmax", x, dim, axis))


def _require_dim(name: str, x: Tensor, dim: int | None, axis: int | None) -> int:
    dim = choose_argument(name, "dim", dim, "axis", axis)
    if dim is None:
        raise TypeError(f"{name}: dim is missing; for scores in the last dim give dim=-1")
    return normal_dim(name, dim, x.ndim)
