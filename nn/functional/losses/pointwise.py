"""Losses of single elements: of differences, of probabilities, of counts."""

from __future__ import annotations

import math
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.ground.call_site import warn
from tritensor.ground.errors import ArgumentError, ShapeError
from tritensor.nn.functional.losses.checks import (
    broadcast_to_one,
    check_flags,
    check_reduction,
    reduce_loss,
    reduction_name,
    require_same_shape,
)
from tritensor.ops.array import all_values
from tritensor.ops.table import broadcast, ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.public_api.publish import checked


def _apply_weight(name: str, loss: Tensor, weight: Tensor) -> Tensor:
    if weight.shape != loss.shape:
        raise ShapeError(f"{name}: weight {tuple(weight.shape)} and input {tuple(loss.shape)} must have one shape; expand the weight")
    return ops.mul(loss, weight)


def _require_broadcast(name: str, input: Tensor, **weights: Tensor | None) -> None:
    """Raise ShapeError for weights that input would have to be expanded to."""
    for label, weight in weights.items():
        if (
            weight is not None
            and broadcast(name, shape := tuple(input.shape), own := tuple(weight.shape), labels=("input", label)) != shape
        ):
            raise ShapeError(
                f"{name}: {label} {own} does not broadcast to input {shape}, whose loss it weighs; reshape it, or expand the input"
            )


def _fused_loss(name: str, input: Tensor, target: Tensor, reduction: str, weight: Tensor | None, **number: float) -> Tensor:
    """The op of that name; of elements weighed each, and their weights' mean, the op without its reduction."""
    check_reduction(name, reduction)
    require_same_shape(name, input, target)
    if weight is None:
        return getattr(ops, name)(input, target, reduction=reduction, **number)
    return reduce_loss(name, _apply_weight(name, getattr(ops, name)(input, target, reduction="none", **number), weight), reduction, weight)


@checked
def mse_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """(input - target)^2, both of one shape, times weight where it is given; "mean" divides by the weights' sum then."""
    return _fused_loss("mse_loss", input, target, reduction_name(size_average, reduce, reduction), weight)


@checked
def l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", weight: Tensor | None = None
) -> Tensor:
    """|input - target|, both of one shape, times weight where it is given; "mean" divides by the weights' sum then."""
    reduction = reduction_name(size_average, reduce, reduction)
    kinds = {input.dtype.kind, target.dtype.kind}
    if "float" in kinds and "complex" not in kinds:  # the op is of real floats; PyTorch's takes complex numbers and integers, too
        return _fused_loss("l1_loss", input, target, reduction, weight)
    require_same_shape("l1_loss", input, target)
    loss = ops.abs(ops.sub(input, target))
    return reduce_loss("l1_loss", loss if weight is None else _apply_weight("l1_loss", loss, weight), reduction, weight)


@checked
def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", beta: float = 1.0
) -> Tensor:
    """d^2 / (2 beta) where d = |input - target| is below beta, else d - beta / 2 (Girshick 2015); beta=0 is l1_loss."""
    reduction = reduction_name(size_average, reduce, reduction)
    if not beta >= 0:
        raise ArgumentError(f"smooth_l1_loss: beta is {beta}; it must be at least 0")
    if beta == 0:
        # the formula would divide by 0
        return l1_loss(input, target, reduction=reduction)  # type: ignore[no-any-return]
    return _fused_loss("smooth_l1_loss", input, target, reduction, None, beta=float(beta))


@checked
def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None) -> Tensor:
    """d^2 / 2 where d = |input - target| is at most delta, else delta (d - delta / 2), times weight where it is given; "mean" divides by the elements."""
    if not delta > 0:
        raise ArgumentError(f"huber_loss: delta is {delta}; it must be above 0")
    if weight is None:
        return _fused_loss("huber_loss", input, target, reduction, None, delta=float(delta))
    check_reduction("huber_loss", reduction)
    loss = _apply_weight("huber_loss", _fused_loss("huber_loss", input, target, "none", None, delta=float(delta)), weight)
    return reduce_loss("huber_loss", loss, reduction)


@checked
def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean"
) -> Tensor:
    """-(t log x + (1 - t) log(1 - x)) of probabilities x, both of one shape, logarithms held above -100.

    Raises ArgumentError for x or t outside [0, 1] (on a GPU, where to look would be to wait, it gives NaN), ShapeError for two shapes and for
    a weight that does not broadcast to theirs.
    """
    reduction = reduction_name(size_average, reduce, reduction, "binary_cross_entropy")
    require_same_shape("binary_cross_entropy", input, target)
    _require_broadcast("binary_cross_entropy", input, weight=weight)
    if weight is None:
        return ops.binary_cross_entropy(input, target, reduction=reduction)
    return reduce_loss("binary_cross_entropy", ops.mul(ops.binary_cross_entropy(input, target, reduction="none"), weight), reduction)


@checked
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: Any = None, reduce: Any = None, reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """-(p t log s(x) + (1 - t) log(1 - s(x))), s the sigmoid and p = pos_weight, in the form that does not overflow:
    (1 - t) x + (1 + (p - 1) t) softplus(-x)."""
    name = "binary_cross_entropy_with_logits"
    reduction = reduction_name(size_average, reduce, reduction, name)
    require_same_shape(name, input, target)
    _require_broadcast(name, input, weight=weight, pos_weight=pos_weight)
    if pos_weight is None:
        if weight is None:
            return ops.bce_with_logits(input, target, reduction=reduction)
        return reduce_loss(name, ops.mul(ops.bce_with_logits(input, target, reduction="none"), weight), reduction)
    missed = ops.mul(ops.softplus(-input, beta=1.0, threshold=math.inf), ops.add(ops.mul(ops.sub(pos_weight, 1), target), 1))
    loss = (1 - target) * input + missed  # not by the op, which has no pos_weight
    return reduce_loss(name, loss if weight is None else ops.mul(loss, weight), reduction)


@checked
def kl_div(
    input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean", log_target: bool = False
) -> Tensor:
    """t (log t - input), input a log-probability and t the target (log_target: its logarithm is given). "batchmean" divides the sum by the batch, which
    is what the divergence means; "mean" by all elements."""
    if reduction == "mean" and size_average is None and reduce is None:
        warn("kl_div: reduction='mean' divides by all elements; 'batchmean' gives the divergence, by the batch alone")
    reduction = reduction if reduction == "batchmean" else reduction_name(size_average, reduce, reduction)
    check_reduction("kl_div", "sum" if reduction == "batchmean" else reduction)
    input, target = broadcast_to_one("kl_div", ("input", input), ("target", target))
    how = "sum" if reduction == "batchmean" else reduction
    loss = (ops.kl_div_of_logs if log_target else ops.kl_div)(input, target, reduction=how)
    return ops.div(loss, float(input.shape[0])) if reduction == "batchmean" and input.ndim else loss


@checked
def soft_margin_loss(input: Tensor, target: Tensor, size_average: Any = None, reduce: Any = None, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-t x)), targets t of 1 and -1."""
    reduction = reduction_name(size_average, reduce, reduction, "soft_margin_loss")
    input, target = broadcast_to_one("soft_margin_loss", ("input", input), ("target", target))
    return ops.soft_margin_loss(input, target, reduction=reduction)


@checked
def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: Any = None, eps: float = 1e-8, reduce: Any = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """exp(x) - t x for counts t and x the logarithm of their mean; log_input=False: x - t log(x + eps). full adds Stirling's approximation of log t!,
    t log t - t + log(2 pi t) / 2, where t is above 1."""
    reduction = reduction_name(size_average, reduce, reduction, "poisson_nll_loss")
    check_flags("poisson_nll_loss", log_input=log_input, full=full)
    input, target = broadcast_to_one("poisson_nll_loss", ("input", input), ("target", target))
    how = "none" if full else reduction  # Stirling's part is added to each element before they are reduced
    given, is_half = input.dtype, full and input.dtype.is_floating_point and input.dtype.itemsize == 2
    if is_half:  # of three terms, which one rounding ends
        input, target = input.float(), target.float()
    if not (input.dtype.is_floating_point or target.dtype.is_floating_point):
        made = reduce_loss("poisson_nll_loss", input.exp() - target * input if log_input else input - target * (input + eps).log(), how)
    elif log_input:
        made = ops.poisson_nll_of_log(input, target, reduction=how)
    else:
        made = ops.poisson_nll(input, target, reduction=how, eps=float(eps))
    if not full:
        return made
    stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
    made = reduce_loss("poisson_nll_loss", made + ops.where(ops.gt(target, 1), stirling, 0.0), reduction)
    return made.to(given) if is_half else made


def _expand_variance(input: Tensor, var: Tensor) -> Tensor:
    """var with the dimensions of input."""
    own, wanted = tuple(var.shape), tuple(input.shape)
    if own == wanted:
        return var
    if wanted[:-1] == own:
        return var.unsqueeze(-1)
    if len(own) == len(wanted) and all(a in (1, b) for a, b in zip(own, wanted, strict=True)):
        return var
    raise ShapeError(
        f"gaussian_nll_loss: var {own} does not go with input {wanted}; give input's shape, without its last size, or 1 where it is the same"
    )


@checked
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Tensor | float, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """(log var + (input - target)^2 / var) / 2, var held above eps (which has no gradient); full adds log(2 pi) / 2.

    Raises ValueError for a negative variance, ShapeError for one that does not go with the input.
    """
    check_reduction("gaussian_nll_loss", reduction)
    if isinstance(var, Tensor):
        spread: Tensor = _expand_variance(input, var)
        low = bool(all_values((spread.detach() < 0).any()._array).any())  # reads one number: PyTorch waits for the device here, too
    else:
        low = var < 0
        spread = ops.full(shape=tuple(input.shape), value=float(var), dtype=input._array.dtype, device=input.device)
    if low:
        raise ValueError("gaussian_nll_loss: var has a negative entry; variances are at least 0: give its square, or exp of a logarithm")
    input, target = broadcast_to_one("gaussian_nll_loss", ("input", input), ("target", target))
    with no_grad():
        short = ops.clamp(ops.sub(eps, spread), 0.0, None)  # 0 but where var is below eps
    spread = ops.add(spread, short)
    loss = 0.5 * (spread.log() + (input - target).square() / spread)
    return reduce_loss("gaussian_nll_loss", loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)
