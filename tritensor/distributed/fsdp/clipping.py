"""Clipping by the norm of all gradients where each process holds a part of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tritensor.autograd.modes import no_grad
from tritensor.distributed.collectives import all_reduce
from tritensor.distributed.fsdp.sharded_parameter import Sharded
from tritensor.distributed.process_group import ProcessGroup
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.nn.utils.clip_grad import clip_grads_with_norm_, get_total_norm, refuse_nonfinite
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
    grads = [one.grad for one in listed if one.grad is not None]
    norm = _total("clip_grad_norm_", [(one, one.grad) for one in listed], norm_type, error_if_nonfinite)
    norm = norm.to(grads[0].dtype) if grads else norm.float()
    clip_grads_with_norm_(listed, max_norm, norm)
    return norm


@no_grad()
def total_norm(tensors: Sequence[Tensor], norm_type: float, error_if_nonfinite: bool) -> Tensor:
    """nn.utils.get_total_norm where shards are among the tensors: the norm over all processes, which must all call it."""
    return _total("get_total_norm", [(t, t) for t in tensors], norm_type, error_if_nonfinite).to(tensors[0].dtype)


def _total(name: str, given: Sequence[tuple[Tensor, Tensor | None]], norm_type: float, error_if_nonfinite: bool) -> Tensor:
    """The norm, in float64, of what belongs to some tensors (None: of this process nothing), over the processes of those that are shards."""
    p = float(norm_type)
    groups: dict[int, tuple[ProcessGroup, list[tuple[Tensor, Tensor | None]]]] = {}
    alike: list[Tensor] = []
    for one, its in given:
        group = one.process_group if isinstance(one, Sharded) else None
        if group is not None:
            groups.setdefault(id(group), (group, []))[1].append((one, its))
        elif its is not None:
            alike.append(its)
    total = _powered(alike, p)
    for group, shards in groups.values():
        part = _powered([its for _, its in shards if its is not None], p).to(shards[0][0].device)
        all_reduce(part, ReduceOp.MAX if math.isinf(p) else ReduceOp.SUM, group)
        total = ops.maximum(total.to(part.device), part) if math.isinf(p) else ops.add(total.to(part.device), part)
    norm = total if math.isinf(p) else ops.pow(total, 1 / p)
    if error_if_nonfinite:
        refuse_nonfinite(name, norm, norm_type)
    return norm


def _powered(tensors: list[Tensor], p: float) -> Tensor:
    """The sum of |x|^p, or the largest |x|, as a float64 of its own."""
    given = [t for t in tensors if t.numel()]
    found: Any = get_total_norm([Tensor.wrap(t.array) for t in given], p) if given else as_tensor(0.0)
    found = found.double()
    return found if math.isinf(p) else ops.pow(found, p)


Sharded.clips, Sharded.norms = staticmethod(clip_grad_norm_), staticmethod(total_norm)
