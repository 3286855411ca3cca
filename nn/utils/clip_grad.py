"""Gradients kept small: clipping by their common norm, or by value."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tritensor.autograd.modes import no_grad
from tritensor.table import ops
from tritensor.tensor.core import Tensor, as_tensor
from tritensor.tensor.publishing.publish import checked


def _grads(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [p.grad for p in listed if p.grad is not None]


@checked
@no_grad()
def get_total_norm(
    tensors: Tensor | Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all tensors taken as one vector: (sum |x|^p)^(1/p), or the largest |x| for inf. A 0-d tensor. `foreach` changes nothing."""
    p = float(norm_type)
    if not p > 0:
        raise ValueError(f"get_total_norm: norm_type is {norm_type!r}; give a positive number or inf")
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not listed:
        return as_tensor(0.0)
    total: Tensor | None = None
    for t in listed:
        every = tuple(range(t.ndim))
        if math.isinf(p):
            part = ops.amax(ops.abs(t), dim=every, keepdim=False)
            total = part if total is None else ops.maximum(total, part.to(total.device))
        else:
            part = ops.sum(ops.mul(t, t) if p == 2 else ops.pow(ops.abs(t), p), dim=every, keepdim=False)
            total = part if total is None else ops.add(total, part.to(total.device))
    assert total is not None
    norm = total if math.isinf(p) else ops.sqrt(total) if p == 2 else ops.pow(total, 1 / p)
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise RuntimeError(
            f"clip_grad_norm_: the total norm of order {norm_type} is {norm.item()}; pass error_if_nonfinite=False to scale by it all the same"
        )
    return norm


@checked
@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor],
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> Tensor:
    """Scale all gradients by min(1, max_norm / (their common norm + 1e-6)), in place; returns the norm before. `foreach` changes nothing."""
    grads = _grads(parameters)
    norm = get_total_norm(grads, norm_type, error_if_nonfinite)
    scale = ops.clamp(ops.div(float(max_norm), ops.add(norm, 1e-6)), None, 1.0)  # stays on the device: no wait
    for g in grads:
        g.mul_(scale.to(g.device, g.dtype))
    return norm


@checked
@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float, foreach: bool | None = None) -> None:
    """Bring every element of every gradient into [-clip_value, clip_value], in place. `foreach` changes nothing."""
    for g in _grads(parameters):
        g.clamp_(-float(clip_value), float(clip_value))
