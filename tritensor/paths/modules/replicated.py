"""torch.distributed.nn: collectives that gradients go through; among one process each is the identity."""

from __future__ import annotations

from typing import Any

from tritensor.distributed import ReduceOp
from tritensor.distributed import all_reduce as _check
from tritensor.tensor.core import Tensor


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """All processes' tensors put together by `op`. Raises where no process group has been initialised."""
    _check(tensor.detach(), op, group)
    return tensor.clone()


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """Every process's tensor."""
    return (all_reduce(tensor, group=group),)
