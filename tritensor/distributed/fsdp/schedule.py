"""Schedule: the order in which a model's groups are gathered and reduced, the same on all processes whatever gradients come on each."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from tritensor.autograd.modes import no_grad, state
from tritensor.distributed.collectives import all_reduce
from tritensor.distributed.fsdp.flat import Member, Reduction
from tritensor.distributed.fsdp.group import ParameterGroup
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ops.array import from_host, to_host
from tritensor.tensor.core import Tensor

GATHER, REDUCE = "gather", "reduce"


def call_hooks(members: Iterable[Member]) -> None:
    """The shards' own hooks: their gradient was added to."""
    for m in members:
        extra = m.shard._extra
        for hook in list((extra.post_hooks or {}).values()) if extra is not None else ():
            with no_grad():
                hook(m.shard)


class Schedule:
    """The state that all groups under one root share.

    Forward: groups are gathered as they come, each with the next one of the iteration before. Backward follows a plan, made of the order of
    forward n, n-1, ...: gather n, gather n-1, reduce n, gather n-2, reduce n-1, and so on. A step of the plan is taken as soon as it is asked for or
    has all that it needs. A gather that is asked for takes the steps before it as well, with whatever gradients are there: so all processes
    communicate in one order even where one of them uses parameters that another does not. Gradients that come after their group's turn are
    reduced once more at the end, which the messages themselves say is needed.

    Hooks on shards (register_post_accumulate_grad_hook) are called once in a backward, when their gradient is all there: as soon as the group is
    reduced, or at the end where some processes may still have gradients of it.
    """

    def __init__(self) -> None:
        self.order: list[ParameterGroup] = []  # as forward came to them since the last backward
        self._before: list[ParameterGroup] = []
        self._plan: deque[tuple[str, ParameterGroup]] = deque()
        self._open: deque[tuple[ParameterGroup, list[Reduction]]] = deque()
        self._missing: dict[int, bool] = {}
        self._unhooked: dict[int, Member] = {}  # whose hooks wait for the end
        self._reduced: list[ParameterGroup] = []
        self._task: Any = None
        self._ended = False

    # forward
    def enter(self, group: ParameterGroup) -> None:
        """A module's forward begins. Inside of a backward, where a checkpoint computes again, its parameters are only gathered."""
        if state.task is not None:
            self.backward(group)
            if group not in self.order:  # its first forward recorded nothing
                self.order.append(group)
                if group.has_trainable and group.syncs:
                    self._plan.append((REDUCE, group))
            return
        if group.summoned:
            if state.enabled and group.has_trainable:
                raise RuntimeError(
                    f"forward of {group.name} inside summon_full_params: gradients would be those of parameters that are gone after it; call it under "
                    "no_grad(), or after the `with`"
                )
            return
        if self._ended:
            self._before, self.order, self._ended = self.order, [], False
        if (group.is_whole or group.is_coming) and group.has_changed():
            group.reshard()
        group.gather()
        if state.enabled and group not in self.order:
            self.order.append(group)
        for following in self._following(group):
            following.begin_gather()

    def _following(self, group: ParameterGroup) -> list[ParameterGroup]:
        """The groups to gather while one is used in forward: those it was told, else the next one of the iteration before."""
        if group.ahead is not None:
            return group.ahead
        return self._before[self._before.index(group) + 1 :][:1] if group in self._before else []

    def leave_root(self) -> None:
        """The root's forward ends: what was asked for and not used is dropped."""
        if state.task is None:
            for group in {*self._before, *self.order, *(g for used in self.order for g in used.ahead or ())}:
                if group.is_coming:
                    group.reshard()

    # backward
    def backward(self, group: ParameterGroup) -> None:
        """Backward comes to a group: its whole parameters are needed."""
        self._begin()
        if not group.is_whole:
            group.refuse_changed()
            while (GATHER, group) in self._plan:
                self._run_step()
            group.gather()
        self._advance()

    def came(self, group: ParameterGroup, number: int) -> None:
        """A gradient of a whole parameter has been accumulated."""
        self._begin()
        group.came.add(number)
        if group.is_complete():
            self.finish_group(group)
            self._advance()

    def input_came(self, group: ParameterGroup) -> None:
        """The gradient of an input of a group with frozen parameters has come."""
        group.inputs_left -= 1
        if group.is_complete():
            self.finish_group(group)

    def finish_group(self, group: ParameterGroup) -> None:
        """Backward is through with a group, unless gradients of its inputs are yet to be computed with frozen parameters."""
        if group.reshards_after_backward and not (group.is_frozen_in_part and group.inputs_left > 0):
            group.reshard()

    def _begin(self) -> None:
        assert state.task is not None
        task = state.task.outermost()
        # Checkpoints run backwards within the outermost one, to which all gradients belong.
        if task is self._task:
            return
        if self._task is not None:
            self._forget()
        self._task = task
        task.at_end(self._end)
        self._missing, self._reduced, self._unhooked = {}, [], {}
        for group in self.order:
            group.came.clear()
        turns = list(reversed(self.order))
        gathers = [g for g in turns if g.members and not g.is_whole]
        self._plan = deque()
        for i, group in enumerate(turns):
            for ahead in (group, *(turns[i + 1 : i + 2] if group.ahead_in_backward is None else group.ahead_in_backward)):
                if ahead in gathers:
                    gathers.remove(ahead)
                    self._plan.append((GATHER, ahead))
            if group.has_trainable and group.syncs:
                self._plan.append((REDUCE, group))

    def _forget(self) -> None:
        """The last backward failed: what it had brought is dropped."""
        while self._open:
            for reduction in self._open.popleft()[1]:
                reduction.work.wait()
        for group in self.order:
            if group.syncs:
                group.forget_gradients()

    def _run_step(self) -> None:
        what, group = self._plan.popleft()
        if what == GATHER:
            group.begin_gather()
            return
        while self._open:  # one at a time is on its way, so that its memory is bounded
            self._finish()
        self._open.append((group, group.begin_reduce()))
        self._reduced.append(group)

    def _advance(self) -> None:
        """Take the steps that have all that they need."""
        while self._plan and (self._plan[0][0] == GATHER or self._plan[0][1].is_complete()):
            self._run_step()

    def _finish(self) -> None:
        group, reductions = self._open.popleft()
        for reduction in reductions:
            reduction.finish(group.ranks.replicas)
        self._missing[id(group)] = any(r.missing for r in reductions)
        reached = [m for r in reductions for m in r.reached]
        if self._missing[id(group)]:
            self._unhooked.update({id(m): m for m in reached})
        else:
            call_hooks(reached)

    def _end(self) -> None:
        """Backward has ended on this process: the rest of the plan, and gradients that were late."""
        while self._plan:
            self._run_step()
        while self._open:
            self._finish()
        if any(self._missing.values()) or any(g.has_gradients() for g in self._reduced):
            self._reduce_late()
        call_hooks(self._unhooked.values())
        self._unhooked = {}
        for group in self.order:
            group.inputs_left = 0
            if group.reshards_after_backward:
                group.reshard()
        self._task, self._ended = None, True

    def _reduce_late(self) -> None:
        late = np.array([g.has_gradients() for g in self._reduced], np.int32)
        ranks = self._reduced[0].ranks
        on = ranks.shard.get_control_device(self._reduced[0].flats[0].device)
        told = Tensor.wrap(from_host(late, on))
        for group in (ranks.shard, ranks.replicas):
            if group is not None:
                all_reduce(told, ReduceOp.MAX, group)
        for g, anywhere in zip(self._reduced, to_host(told._array), strict=True):
            if anywhere:
                self._open.append((g, g.begin_reduce()))
                self._finish()
