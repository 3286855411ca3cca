"""Clipping by the norm of all gradients where each process holds a part of them."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.distributed.collectives import all_reduce
from tritensor.distributed.fsdp.sharded_parameter import Sharded
from tritensor.distributed.process_group import ProcessGroup
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.nn.utils.clip_grad import clip_grads_with_norm_, get_total_norm
from tritensor.table import ops
from tritensor.tensor.core import Tensor, as_tensor


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:  # fmt: skip
    """nn.utils.clip_grad_norm_ for shards: the norm is that of the whole gradients, over all processes, which must all call it.

    Parameters that are not sharded count once. Returns the norm before. Raises RuntimeError, on all processes, where it is NaN or infinite and
    error_if_nonfinite says so; ValueError for a norm_type of 0 or less.
    """
    p = float(norm_type)
    if not p > 0:  # asked here, as a process without elements would not get to where it is asked else
        raise ValueError(f"clip_grad_norm_: norm_type is {norm_type!r}; give a positive number or inf")
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    groups: dict[int, tuple[ProcessGroup, list[Tensor]]] = {}
    alike: list[Tensor] = []
    for one in listed:
        group = one.process_group if isinstance(one, Sharded) else None
        if group is not None:
            groups.setdefault(id(group), (group, []))[1].append(one)
        elif one.grad is not None:
            alike.append(one.grad)
    total = _powered(alike, p)
    for group, shards in groups.values():
        part = _powered([s.grad for s in shards if s.grad is not None], p).to(shards[0].device)
        all_reduce(part, ReduceOp.MAX if math.isinf(p) else ReduceOp.SUM, group)
        total = ops.maximum(total.to(part.device), part) if math.isinf(p) else ops.add(total.to(part.device), part)
    norm = total if math.isinf(p) else ops.pow(total, 1 / p)
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise RuntimeError(
            f"clip_grad_norm_: the total norm of order {norm_type} is {norm.item()}; pass error_if_nonfinite=False to scale by it all the same"
        )
    grads = [one.grad for one in listed if one.grad is not None]
    norm = norm.to(grads[0].dtype) if grads else norm.float()
    clip_grads_with_norm_(listed, max_norm, norm)
    return norm


def _powered(tensors: list[Tensor], p: float) -> Tensor:
    """The sum of |x|^p, or the largest |x|, as a float64 of its own."""
    given = [t for t in tensors if t.numel()]
    found: Any = get_total_norm([Tensor.wrap(t.array) for t in given], p) if given else as_tensor(0.0)
    found = found.double()
    return found if math.isinf(p) else ops.pow(found, p)


Sharded.clips = staticmethod(clip_grad_norm_)
