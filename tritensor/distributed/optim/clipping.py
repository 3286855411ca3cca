"""Clipping by the norm of all gradients where each process holds some of them whole."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.autograd.modes import no_grad
from tritensor.distributed.collectives import all_reduce
from tritensor.distributed.process_group import ProcessGroup
from tritensor.distributed.reduce_op import get_norm_op
from tritensor.nn.utils.clip_grad import (
    clip_grads_with_norm_,
    empty_part,
    get_total_norm,
    norm_from_part,
    part_from_norm,
    read_order,
    refuse_nonfinite,
)
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor


@no_grad()
def clip_shares(
    params: Sequence[Tensor], max_norm: float, norm_type: float, error_if_nonfinite: bool, group: ProcessGroup | None
) -> Tensor:
    """nn.utils.clip_grad_norm_ where the processes of `group` hold different gradients; None: the same ones. Returns the norm before."""
    p = read_order("clip_grad_norm_", norm_type)
    grads = [one.grad for one in params if one.grad is not None and one.grad.numel()]
    norm = get_total_norm(grads, p).double().to(params[0].device)
    if group is not None:
        part = part_from_norm(norm, p) if grads else ops.full(shape=(), value=empty_part(p), dtype=norm.array.dtype, device=norm.device)
        all_reduce(part, get_norm_op(p), group)
        norm = norm_from_part(part, p)
    if error_if_nonfinite:
        refuse_nonfinite("clip_grad_norm_", norm, norm_type)
    norm = norm.to(params[0].dtype)
    clip_grads_with_norm_(params, max_norm, norm)
    return norm
