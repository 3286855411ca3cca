"""Normalization: of layers, and of vectors to length 1."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.errors import ShapeError
from tritensor.table import ops
from tritensor.tensor.aliasing.inplace import write_out
from tritensor.tensor.core import Tensor
from tritensor.tensor.publishing.publish import checked


@checked
def layer_norm(
    input: Tensor, normalized_shape: int | Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """(x - mean) / sqrt(var + eps) * weight + bias over the trailing dimensions `normalized_shape`; var without Bessel's correction."""
    over = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not over or tuple(input.shape[-len(over) :]) != over:
        raise ShapeError(f"layer_norm: normalized_shape {over} is not the end of input's shape {tuple(input.shape)}; give its last sizes")
    return ops.layer_norm(input, weight, bias, eps=float(eps), axes=len(over))


@checked
def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12, out: Tensor | None = None) -> Tensor:
    """x / max(|x|_p, eps) along dim; written into `out` where it is given."""
    length = input.norm(p, dim, keepdim=True)
    y = ops.div(input, ops.clamp(length, eps, None))
    return y if out is None else write_out(out, y, "normalize")
