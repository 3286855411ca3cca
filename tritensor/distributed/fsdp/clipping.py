"""Clipping by the norm of all gradients where each process holds a part of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tritensor.autograd.modes import no_grad
from tritensor.distributed.collectives import all_reduce
from tritensor.distributed.fsdp.sharded_parameter import Sharded
from tritensor.distributed.process_group import ProcessGroup
from tritensor.distributed.reduce_op import ReduceOp, get_norm_op
from tritensor.ground.device import device
from tritensor.nn.utils.clip_grad import (
    clip_grads_with_norm_,
    empty_part,
    get_total_norm,
    join_parts,
    norm_from_part,
    part_from_norm,
    read_order,
    refuse_nonfinite,
)
from tritensor.ops.table import ops
from tritensor.tensor.core import Tensor
from tritensor.tensor.parsing.data import as_tensor
from tritensor.tensor.public_api.publish import public


@no_grad()
def clip_grad_norm_(
    parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:  # fmt: skip
    """nn.utils.clip_grad_norm_ for shards: the norm is that of the whole gradients, over all processes, which must all call it.

    Parameters that are not sharded count once. Returns the norm before. Raises RuntimeError, on all processes, where it is NaN or infinite and
    error_if_nonfinite says so; ValueError for a norm_type of NaN.
    """
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    grads = [one.grad for one in listed if one.grad is not None]
    norm = _compute_norm("clip_grad_norm_", [(one, one.grad) for one in listed], norm_type, error_if_nonfinite)
    norm = norm.to(grads[0].dtype) if grads else norm.float()
    clip_grads_with_norm_(listed, max_norm, norm)
    return norm


@no_grad()
def total_norm(tensors: Sequence[Tensor], norm_type: float, error_if_nonfinite: bool) -> Tensor:
    """nn.utils.get_total_norm where shards are among the tensors: the norm over all processes, which must all call it."""
    return _compute_norm("get_total_norm", [(t, t) for t in tensors], norm_type, error_if_nonfinite).to(tensors[0].dtype)


def _compute_norm(name: str, given: Sequence[tuple[Tensor, Tensor | None]], norm_type: float, error_if_nonfinite: bool) -> Tensor:
    """The norm, in float64, of what belongs to some tensors (None: of this process nothing), over the processes of those that are shards."""
    p = read_order(name, norm_type)
    groups: dict[int, tuple[ProcessGroup, list[tuple[Tensor, Tensor | None]]]] = {}
    alike: list[Tensor] = []
    for one, its in given:
        group = one.process_group if isinstance(one, Sharded) else None
        # A shard's norm needs its processes' sum; a plain tensor is alike on all of them and counts once.
        if group is not None:
            groups.setdefault(id(group), (group, []))[1].append((one, its))
        elif its is not None:
            alike.append(its)
    total = _compute_part(alike, p)
    for group, shards in groups.values():
        total = join_parts(_compute_part_of_shards([its for _, its in shards], p, shards[0][0].device, group), total, p)
    norm = norm_from_part(total, p)
    # After the sum, so that all processes raise or none.
    if error_if_nonfinite:
        refuse_nonfinite(name, norm, norm_type)
    return norm


def _compute_part(tensors: Sequence[Tensor | None], p: float) -> Tensor:
    """The share of some tensors in a norm, as a float64 of its own."""
    given = [Tensor.wrap(t._array) for t in tensors if t is not None and t.numel()]
    return part_from_norm(get_total_norm(given, p).double(), p) if given else as_tensor(empty_part(p)).double()


def _compute_part_of_shards(shards: Sequence[Tensor | None], p: float, on: device, group: ProcessGroup) -> Tensor:
    """The share in a norm of tensors of which each process of a group holds a part. For the order 0 one counts where any process has something of it."""
    part = _compute_part(shards, p).to(on) if p else public["stack"]([_compute_part([x], p).to(on) for x in shards])
    all_reduce(part, get_norm_op(p) if p else ReduceOp.MAX, group)
    return part if p else ops.sum(part, dim=(0,), keepdim=False)  # type: ignore[no-any-return]


Sharded.clips, Sharded.norms = staticmethod(clip_grad_norm_), staticmethod(total_norm)
