"""Replicas that begin alike: parameters are compared, and the first process' values are broadcast."""

from __future__ import annotations

from collections.abc import Sequence

from tritensor.autograd.node import version_of
from tritensor.distributed.backends.one_process import copy_into
from tritensor.distributed.collectives import broadcast
from tritensor.distributed.data_parallel.buckets import fill_groups
from tritensor.distributed.objects import all_gather_object
from tritensor.distributed.process_group import ProcessGroup
from tritensor.ground.errors import DistError
from tritensor.nn.module import Module
from tritensor.ops.array import device_of, empty
from tritensor.tensor.core import Tensor

PIECE = 64 << 20  # bytes that are sent at once: bounded, since a piece is a second copy of the parameters in it


def compare_parameters(names: Sequence[str], params: Sequence[Tensor], group: ProcessGroup) -> None:
    """Raise DistError on all processes where their parameters differ in number, name, shape or type."""
    mine = [f"{name} {p.dtype.name} {p._array.shape}" for name, p in zip(names, params, strict=True)]
    found: list[list[str]] = [[] for _ in range(group.size())]
    all_gather_object(found, mine, group)
    for rank, theirs in enumerate(found):
        # All ranks compare with rank 0's, so that all raise the same error.
        if theirs == found[0]:
            continue
        pair = next(((a, b) for a, b in zip(found[0], theirs, strict=False) if a != b), None)
        what = f"{len(theirs)} parameters, rank 0 {len(found[0])}" if pair is None else f"parameter {pair[1]}, rank 0 {pair[0]}"
        raise DistError(
            f"DistributedDataParallel: the modules differ: rank {rank} of the group has {what}; make the same module on all ranks"
        )


def get_ignored_names(module: Module) -> frozenset[str]:
    """Names that the module asks to be left out, by PyTorch's private attribute, which libraries set."""
    return frozenset(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))


def get_synced(module: Module, what: str) -> list[Tensor]:
    """The module's "parameters" or "buffers" that are the same on all processes."""
    named = module.named_parameters() if what == "parameters" else module.named_buffers()
    left_out = get_ignored_names(module)
    return [t for name, t in named if name not in left_out]


def broadcast_all(tensors: Sequence[Tensor], group: ProcessGroup, root: int = 0) -> None:
    """Give all processes root's values, several tensors of one type in one message."""
    for numbers in fill_groups(tensors, range(len(tensors)), [PIECE]):
        _broadcast([tensors[n] for n in numbers], group, root)


def _broadcast(tensors: Sequence[Tensor], group: ProcessGroup, root: int) -> None:
    # Large parameters are sent from their own memory, without the copy.
    if len(tensors) == 1:
        broadcast(tensors[0], group=group, group_src=root)
        return
    first = tensors[0]._array
    flat = empty((sum(t.numel() for t in tensors),), first.dtype, device_of(first))
    parts, start = [], 0
    for t in tensors:
        parts.append(flat[start : start + t.numel()].reshape(t._array.shape))
        start += t.numel()
    if group.rank() == root:
        for part, t in zip(parts, tensors, strict=True):
            copy_into(part, t._array)
    broadcast(Tensor.wrap(flat), group=group, group_src=root)
    if group.rank() != root:
        for part, t in zip(parts, tensors, strict=True):
            copy_into(t._array, part)
            version_of(t).bump("broadcast")
