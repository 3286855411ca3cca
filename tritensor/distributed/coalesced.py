"""Collectives of several tensors at once, and of one tensor under their newer names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from tritensor.distributed.arguments import check_tensors
from tritensor.distributed.collectives import all_gather, all_gather_into_tensor, all_reduce, reduce_scatter_tensor
from tritensor.distributed.process_group import is_outside, require_group
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.distributed.work import Future, Work
from tritensor.ground.errors import ArgumentError
from tritensor.tensor.core import Tensor


def all_gather_single(output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """all_gather_into_tensor."""
    return all_gather_into_tensor(output_tensor, input_tensor, group, async_op)


def reduce_scatter_single(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """reduce_scatter_tensor."""
    return reduce_scatter_tensor(output, input, op, group, async_op)


def all_reduce_coalesced(
    tensors: Sequence[Tensor] | Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Future | None:
    """all_reduce of each tensor. With async_op a Future of them all."""
    given = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    check_tensors("all_reduce_coalesced", "tensors", given)
    return _begin_all("all_reduce_coalesced", group, async_op, [partial(all_reduce, t, op, group, True) for t in given], given)


def all_gather_coalesced(
    output_tensor_lists: Sequence[list[Tensor]], input_tensor_list: Sequence[Tensor], group: Any = None, async_op: bool = False
) -> Future | None:
    """all_gather of each tensor: output_tensor_lists has, for each process, a list of its tensors."""
    name = "all_gather_coalesced"
    check_tensors(name, "input_tensor_list", list(input_tensor_list))
    for outs in output_tensor_lists:
        check_tensors(name, "output_tensor_lists", outs)
        if len(outs) != len(input_tensor_list):
            raise ArgumentError(f"{name}: a list of output_tensor_lists holds {len(outs)} tensors for {len(input_tensor_list)} inputs")
    calls = [partial(all_gather, [outs[i] for outs in output_tensor_lists], t, group, True) for i, t in enumerate(input_tensor_list)]
    return _begin_all(name, group, async_op, calls, list(output_tensor_lists))


def _begin_all(name: str, group: Any, async_op: bool, calls: Sequence[Callable[[], Work | None]], results: Any) -> Future | None:
    if is_outside(group):
        return None
    # Also for an empty list: without a group every call raises.
    require_group(name, group)
    # All begin before the first is waited for, so that they overlap.
    works = [w for w in [call() for call in calls] if w is not None]
    made = _CombinedFuture(works, results)
    if async_op:
        return made
    made.wait()
    return None


class _CombinedFuture(Future):
    """A Future of several Works."""

    def __init__(self, works: Sequence[Work], results: Any) -> None:
        super().__init__()
        self._works, self._results = works, results

    def _refuse_nothing(self) -> None:
        """The works compute its value."""

    def _compute(self) -> Any:
        for work in self._works:
            work.wait()
        return self._results

    def _follow(self) -> None:
        self._works[-1].when_settled(self._await)

    def done(self) -> bool:
        return super().done() or all(work.is_completed() for work in self._works)
