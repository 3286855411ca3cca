"""Fusion of batch normalisation in evaluation into the layer before it."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from tritensor.nn.parameter import Parameter
from tritensor.tensor.core import Tensor


class FusionError(AssertionError, RuntimeError):
    """Layers that cannot be folded into one: in training, without running statistics, or of other numbers of features."""


def _refuse(name: str, layer: Any, bn: Any) -> None:
    if layer.training or bn.training:
        raise FusionError(f"{name}: Fusion only for eval! The statistics of training are the batch's own; call .eval() on both layers")
    if bn.running_mean is None or bn.running_var is None:
        raise FusionError(f"{name}: bn.running_mean and bn.running_var must not be None; the layer tracks no running statistics")


def _fold_norm(
    w: Tensor, b: Tensor | None, rm: Tensor, rv: Tensor, eps: float, bn_w: Any, bn_b: Any, shape: tuple[int, ...]
) -> tuple[Parameter, Parameter]:
    """w scale, and (b - rm) scale + bn_b, scale = bn_w / sqrt(rv + eps), in the types of w and b."""
    scale = (rv + eps).rsqrt() if bn_w is None else bn_w * (rv + eps).rsqrt()  # a norm without weight only divides
    bias = -rm * scale if b is None else (b - rm) * scale
    bias = bias if bn_b is None else bias + bn_b
    kind = w.dtype if b is None else b.dtype  # of 16 bits the norm's vectors are float32, and the layer's must stay what they are
    return (
        Parameter((w * scale.reshape(shape)).detach().to(w.dtype), w.requires_grad),
        Parameter(bias.detach().to(kind), b is not None and b.requires_grad),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None, bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Weight and bias of a convolution that does what the two layers do; `transpose`: of a transposed one, whose outputs are dimension 1."""
    rest = (1,) * (conv_w.ndim - 2)
    return _fold_norm(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (1, -1, *rest) if transpose else (-1, 1, *rest))


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A copy of a convolution that does the batch normalisation behind it as well; both in evaluation."""
    _refuse("fuse_conv_bn_eval", conv, bn)
    fused = deepcopy(conv)  # the layers of training stay as they are
    fused.weight, fused.bias = fuse_conv_bn_weights(
        fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, transpose
    )
    return fused


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor, bn_b: Tensor
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer that does what the two layers do."""
    return _fold_norm(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, (-1, 1))


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A copy of a linear layer that does the batch normalisation behind it as well; both in evaluation, of as many features (or one)."""
    _refuse("fuse_linear_bn_eval", linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise FusionError(
            f"fuse_linear_bn_eval: To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got {linear.out_features} and "
            f"{bn.num_features}; give layers that follow one another"
        )
    fused = deepcopy(linear)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    return fused
