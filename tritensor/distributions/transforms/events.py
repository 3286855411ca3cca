"""Transforms of whole events: more event dimensions, other shapes, softmax and stick breaking to the simplex."""

from __future__ import annotations

import math
from typing import Any

from tritensor.distributions import constraints
from tritensor.distributions import functions as T
from tritensor.distributions.lazy import delegate
from tritensor.distributions.parameters import float_limits, log_sigmoid, sum_rightmost
from tritensor.distributions.transforms.base import Transform
from tritensor.distributions.transforms.pointwise import keep_off_ends
from tritensor.ground.errors import ArgumentError
from tritensor.nn import functional as F
from tritensor.tensor.core import Tensor
from tritensor.tensor.size import Size


def require_event_dims(transform: Transform, given: int, wanted: int) -> None:
    """Refuse shapes of too few dimensions."""
    if given < wanted:
        raise ArgumentError(f"{type(transform).__name__}: {given} dimensions given; its events have {wanted}, give at least these")


class IndependentTransform(Transform):
    """A transform whose last batch dimensions belong to the event: log_abs_det_jacobian is summed over them."""

    _arguments = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)  # its own pair is what `inv` finds
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        """The base transform's with these dimensions."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        """The base transform's with these dimensions."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = delegate("base_transform.bijective")
    sign = delegate("base_transform.sign")

    def _call(self, x: Tensor) -> Tensor:
        require_event_dims(self, x.dim(), self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        require_event_dims(self, y.dim(), self.codomain.event_dim)
        return self.base_transform.inv(y)  # type: ignore[no-any-return]

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)  # type: ignore[no-any-return]

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class ReshapeTransform(Transform):
    """Events of `in_shape` as events of `out_shape`, which holds as many elements."""

    bijective = True
    _arguments = ("in_shape", "out_shape")

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ArgumentError(
                f"ReshapeTransform: in_shape {tuple(self.in_shape)} holds {self.in_shape.numel()} elements, out_shape {tuple(self.out_shape)} "
                f"{self.out_shape.numel()}; give shapes that hold as many"
            )
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        """Real tensors of in_shape."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        """Real tensors of out_shape."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape((*x.shape[: x.dim() - len(self.in_shape)], *self.out_shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape((*y.shape[: y.dim() - len(self.out_shape)], *self.in_shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return T.zeros(tuple(x.shape[: x.dim() - len(self.in_shape)]), dtype=x.dtype, device=x.device)

    def _swap_event_shape(self, shape: Any, old: Size, new: Size) -> Size:
        shape = tuple(shape)
        require_event_dims(self, len(shape), len(old))
        cut = len(shape) - len(old)
        if shape[cut:] != tuple(old):
            raise ArgumentError(f"ReshapeTransform: a shape that ends in {shape[cut:]} is not {tuple(old)}; reshape it")
        return Size((*shape[:cut], *new))

    def forward_shape(self, shape: Any) -> Any:
        return self._swap_event_shape(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._swap_event_shape(shape, self.out_shape, self.in_shape)


class SoftmaxTransform(Transform):
    """y = softmax(x) over the last dimension. Not a bijection: `inv` gives log y, one x of many."""

    domain, codomain = constraints.real_vector, constraints.simplex

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SoftmaxTransform)

    def _call(self, x: Tensor) -> Tensor:
        return F.softmax(x, dim=-1)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()  # softmax of it is y; x itself is lost by a constant

    def forward_shape(self, shape: Any) -> Any:
        require_event_dims(self, len(shape), 1)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Vectors of n numbers to the simplex of n + 1: each takes its part, sigmoid(x_k - log(n + 1 - k)), of what those before it have left.

    The shift makes x = 0 the middle of the simplex (Stan Reference Manual, "Unit simplex").
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StickBreakingTransform)

    @staticmethod
    def _log_remaining_counts(n: int, like: Tensor) -> Tensor:
        """log(n), ..., log(1)."""
        return T.arange(n, 0, -1, dtype=like.dtype, device=like.device).log()

    def _call(self, x: Tensor) -> Tensor:
        part = keep_off_ends((x - self._log_remaining_counts(x.shape[-1], x)).sigmoid())
        left = (1 - part).cumprod(-1)
        one = T.ones((*x.shape[:-1], 1), dtype=x.dtype, device=x.device)
        return T.cat([part, one], -1) * T.cat([one, left], -1)

    def _inverse(self, y: Tensor) -> Tensor:
        head = y[..., :-1]
        # rounding may take the sum past 1, whose logarithm would be NaN
        left = (1 - head.cumsum(-1)).clamp(min=float_limits(y.dtype).tiny)
        return head.log() - left.log() + self._log_remaining_counts(head.shape[-1], head)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # the Jacobian is triangular: dy_k/dx_k = y_k (1 - part_k), and 1 - sigmoid(x) = exp(-x) sigmoid(x)
        x = x - self._log_remaining_counts(x.shape[-1], x)
        return (-x + log_sigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        require_event_dims(self, len(shape), 1)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape: Any) -> Any:
        require_event_dims(self, len(shape), 1)
        return Size((*shape[:-1], shape[-1] - 1))


class CorrCholeskyTransform(Transform):
    """Vectors of n (n - 1) / 2 numbers to Cholesky factors of n x n correlation matrices.

    tanh(x) are partial correlations r; row i of the factor is r_ij sqrt(prod_{k<j} (1 - r_ik^2)), with r_ii = 1
    (Lewandowski, Kurowicka, Joe, "Generating random correlation matrices based on vines and extended onion method", 2009).
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    @staticmethod
    def _matrix_size(length: int) -> int:
        n = round((0.25 + 2 * length) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != length:
            raise ArgumentError(f"CorrCholeskyTransform: {length} numbers fill no triangle below a diagonal; give n (n - 1) / 2 for n rows")
        return n

    def _call(self, x: Tensor) -> Tensor:
        n, eps = self._matrix_size(x.shape[-1]), float_limits(x.dtype).eps
        rows, columns = T.tril_indices(n, n, -1, device=x.device)
        # tanh rounds to 1 from about 9 in float32, where the row would have no length left
        r = x.tanh().clamp(min=-1 + eps, max=1 - eps)
        r = T.zeros((*x.shape[:-1], n, n), dtype=x.dtype, device=x.device).index_put((..., rows, columns), r)
        left = (1 - r * r).sqrt().cumprod(-1)[..., :-1]  # what the columns so far leave of the row's length
        one = T.ones((*x.shape[:-1], n, 1), dtype=x.dtype, device=x.device)
        return (r + T.eye(n, dtype=x.dtype, device=x.device)) * T.cat([one, left], -1)

    @staticmethod
    def _remaining_length(y: Tensor) -> Tensor:
        """1 - sum_{k<j} y_ik^2 for each element below the diagonal."""
        n = y.shape[-1]
        rows, columns = T.tril_indices(n, n, -1, device=y.device)
        one = T.ones((*y.shape[:-1], 1), dtype=y.dtype, device=y.device)
        left = T.cat([one, 1 - (y * y).cumsum(-1)[..., :-1]], -1)
        return left[..., rows, columns]

    def _inverse(self, y: Tensor) -> Tensor:
        n = y.shape[-1]
        rows, columns = T.tril_indices(n, n, -1, device=y.device)
        r = y[..., rows, columns] / self._remaining_length(y).sqrt()
        return (r.log1p() - (-r).log1p()) / 2  # atanh, with its digits near 0

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        stretch = 0.5 * self._remaining_length(y).log().sum(-1)
        return stretch - 2 * (x - log_sigmoid(2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        require_event_dims(self, len(shape), 1)
        n = self._matrix_size(shape[-1])
        return Size((*shape[:-1], n, n))

    def inverse_shape(self, shape: Any) -> Any:
        require_event_dims(self, len(shape), 2)
        if shape[-2] != shape[-1]:
            raise ArgumentError(f"CorrCholeskyTransform: {tuple(shape[-2:])} is not square; give factors of n x n")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))
