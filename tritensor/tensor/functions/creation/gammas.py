"""Draws from the gamma and the Dirichlet distribution with gradients by implicit differentiation.

Drawn on the host in float64, by Philox numbers, so that they are the same on every device: Marsaglia and Tsang's method ("A simple method for
generating gamma variables", 2000). Below concentration 1 the number is that of concentration + 1 times u^(1 / concentration).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tritensor.autograd.function import Function
from tritensor.ground.errors import ArgumentError, DTypeError, GradError
from tritensor.ground.transforms import VMAP, WrappedArray, running, transform
from tritensor.ops.array import empty_like, from_host, to_host
from tritensor.ops.table import ops
from tritensor.random import Generator
from tritensor.tensor.core import Tensor, new_tensor
from tritensor.tensor.functions.creation.random import draw_normal, draw_on_host, draw_uniform
from tritensor.tensor.public_api.publish import checked

CHUNK = 16384  # numbers drawn at a time, in the cache


def _draw_log_gammas(a: np.ndarray, generator: Generator | None) -> np.ndarray:
    """Logarithms of gamma numbers, which do not underflow where concentrations are small."""
    # The method needs a concentration of 1 at least; smaller ones are corrected below.
    d = np.where(a < 1, a + 1, a) - 1 / 3
    c = 1 / np.sqrt(9 * d)
    found, open_ = np.zeros(a.size), np.arange(a.size)
    while open_.size:
        z, u = (draw_on_host(draw, (open_.size,), generator) for draw in (draw_normal, draw_uniform))
        dd = d[open_]
        with np.errstate(invalid="ignore"):
            log_v = 3 * np.log1p(c[open_] * z)  # NaN, and so refused, where 1 + c z < 0
            fine = np.log(1 - u) < 0.5 * z * z + dd * (1 - np.exp(log_v) + log_v)
        found[open_[fine]] = np.log(dd[fine]) + log_v[fine]
        open_ = open_[~fine]
    small = np.flatnonzero(a < 1)
    found[small] += np.log(1 - draw_on_host(draw_uniform, (small.size,), generator)) / a[small]
    return found


def _draw_logs(name: str, alpha: Tensor, generator: Generator | None) -> np.ndarray:
    """Logarithms of gamma numbers of alpha's shape. Raises DTypeError for types that are not floating, ValueError for what is not positive."""
    if alpha.dtype.kind != "float":
        raise DTypeError(f"{name}: the concentration is {alpha.dtype.name}; give a floating type")
    a = to_host(alpha._array).astype(np.float64).reshape(-1)
    # not >, so that NaN is refused too.
    if not (a > 0).all():
        raise ArgumentError(f"{name}: concentrations must be above 0; the least is {a.min()}")
    found = np.empty(a.size)
    for first in range(0, a.size, CHUNK):
        found[first : first + CHUNK] = _draw_log_gammas(a[first : first + CHUNK], generator)
    return found.reshape(alpha._array.shape)


def _tensor_like(values: np.ndarray, like: Tensor) -> Tensor:
    return new_tensor(from_host(values.astype(like._array.dtype), like.device))


class Slope(Function):
    """How draws move with their concentrations, by one of the ops of that. It has no derivative: asking for one raises, here and in PyTorch."""

    generate_vmap_rule = True

    @staticmethod
    def forward(name: str, *tensors: Tensor) -> Tensor:  # type: ignore[override]
        return getattr(ops, name)(*tensors)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """It keeps nothing."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        raise GradError(
            "backward: the gradient through draws of gamma or Dirichlet numbers has no gradient of its own; use log_prob of the draws for a second one"
        )


class _DrawFunction(Function):
    """What was drawn for concentrations, as their function."""

    generate_vmap_rule = True

    @staticmethod
    def forward(drawn: Tensor, alpha: Tensor) -> Tensor:  # type: ignore[override]
        return new_tensor(drawn._array)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1], output)


class StandardGamma(_DrawFunction):
    """Gamma numbers of rate 1."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        return None, g * Slope.apply("standard_gamma_grad", *ctx.saved_tensors)


class SampledDirichlet(_DrawFunction):
    """Dirichlet vectors."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:  # type: ignore[override]
        alpha, x = ctx.saved_tensors
        slope = Slope.apply("dirichlet_grad", x, alpha, alpha.sum(-1, keepdim=True))
        return None, slope * (g - (g * x).sum(-1, keepdim=True))


@checked
def draw_gammas(alpha: Tensor, generator: Generator | None) -> Tensor:
    """Gamma numbers that know nothing of where they came from."""
    if alpha.is_meta:
        return new_tensor(empty_like(alpha._array))
    return _tensor_like(np.exp(_draw_logs("standard_gamma", alpha, generator)), alpha)


@checked
def draw_dirichlets(alpha: Tensor, generator: Generator | None) -> Tensor:
    """Dirichlet vectors that know nothing of where they came from."""
    if alpha.is_meta:
        return new_tensor(empty_like(alpha._array))
    logs = _draw_logs("sample_dirichlet", alpha, generator)
    # Ratios of gammas through logarithms: small concentrations underflow otherwise.
    parts = np.exp(logs - logs.max(-1, keepdims=True, initial=-np.inf))
    return _tensor_like(parts / parts.sum(-1, keepdims=True), alpha)


def _apply_draw(cls: type[Function], draw: Callable[..., Tensor], alpha: Tensor, generator: Generator | None) -> Tensor:
    """What is drawn for alpha, as its function. Derivatives that look at alpha do not look at the draw: under them may be a vmap's examples."""
    if running.levels:
        # Inside vmap each example draws numbers of its own.
        alpha = transform.current.spread(alpha)
    value = alpha
    while type(value._array) is WrappedArray and value._array.level.kind != VMAP:
        value = value._array.value
    return cls.apply(draw(value, generator), alpha)  # type: ignore[no-any-return]


def standard_gamma(alpha: Tensor, generator: Generator | None = None) -> Tensor:
    """A gamma number of rate 1 for each concentration in alpha, of alpha's type; differentiable once. Waits for the device.

    Raises DTypeError for types that are not floating, ValueError for concentrations that are not positive.
    """
    return _apply_draw(StandardGamma, draw_gammas, alpha, generator)


def sample_dirichlet(alpha: Tensor, generator: Generator | None = None) -> Tensor:
    """A point of the simplex for each vector of concentrations along alpha's last dimension; differentiable once. Waits for the device.

    Raises DTypeError for types that are not floating, ValueError for concentrations that are not positive.
    """
    return _apply_draw(SampledDirichlet, draw_dirichlets, alpha, generator)
