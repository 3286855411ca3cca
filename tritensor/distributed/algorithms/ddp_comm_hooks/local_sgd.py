"""Communication hook of post-local SGD (Lin et al. 2020): gradients are averaged over all processes at first, then within subgroups, or not at all."""

from __future__ import annotations

from typing import Any

from tritensor.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from tritensor.distributed.initialisation import new_subgroups
from tritensor.ground.process.future import Future


class PostLocalSGDState:
    """The hook's state.

    Args:
        process_group: of the first averages; None is all processes.
        subgroup: of those from `start_localSGD_iter` on; None makes one for each machine.
        start_localSGD_iter: the number of backward passes that are averaged over all.
        post_local_gradient_allreduce: average within the subgroup from then on; False leaves gradients as each process has them.
    """

    def __init__(self, process_group: Any, subgroup: Any, start_localSGD_iter: int, post_local_gradient_allreduce: bool = True) -> None:
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter, self.post_local_gradient_allreduce = start_localSGD_iter, post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count a backward pass, at its last bucket."""
        self.iter += bool(bucket.is_last())


def post_localSGD_hook(state: PostLocalSGDState, bucket: Any) -> Future[Any]:
    """The gradients of a bucket, averaged as the state says. Parameters are to be averaged by the program, behind the optimizer's step."""
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(state.process_group, bucket)
    if not state.post_local_gradient_allreduce:
        done: Future[Any] = Future()
        done.set_result(bucket.buffer())
        return done
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return allreduce_hook(state.subgroup, bucket)
