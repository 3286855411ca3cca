"""Join: processes with uneven numbers of steps train together; those that are through shadow what the others communicate."""

from __future__ import annotations

import warnings
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np

from tritensor.distributed.collectives import all_reduce
from tritensor.distributed.process_group import ProcessGroup
from tritensor.ground.errors import ArgumentError
from tritensor.ops.array import from_host, to_host
from tritensor.tensor.core import Tensor

WARN_AFTER = 1000  # steps that the others go on alone


class JoinHook:
    """The part of a Joinable whose process is through: `main_hook` at each step of the others, `post_hook` when all are through."""

    def main_hook(self) -> None:
        """Take part in what the others communicate in one step."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """All are through; `is_last_joiner` says whether this process was so among the last."""


class Joinable:
    """A base class for use in a Join. A subclass defines join_hook, join_device and join_process_group, and calls `Join.notify_join_context(self)`
    before what it communicates in a step."""

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """The hook that runs once this process is through."""
        raise NotImplementedError(f"{type(self).__name__}: define join_hook(self, **kwargs), which returns a JoinHook")

    @property
    def join_device(self) -> Any:
        """The device of the tensors that it communicates."""
        raise NotImplementedError(f"{type(self).__name__}: define the property join_device")

    @property
    def join_process_group(self) -> Any:
        """The processes that it communicates with."""
        raise NotImplementedError(f"{type(self).__name__}: define the property join_process_group")

    @property
    def join_syncs(self) -> bool:
        """Whether the step that begins now communicates gradients."""
        return True

    def joined_early(self, step: JoinStep) -> None:
        """A step begins, on all processes, in which not all may have something to give."""


class JoinStep(NamedTuple):
    """A step within a Join: how many processes have batches, the first of them, whether they average gradients, and whether the divisor stays."""

    active: int
    root: int
    syncs: bool


class Join:
    """`with Join([model]):` around a training loop. Processes that leave the loop earlier than others take part in their steps with nothing.

    Args:
        joinables: what communicates in a step, the first of which tells of it.
        enable: False for a `with` that does nothing, where batches are known to be even.
        throw_on_early_termination: raise RuntimeError on all processes as soon as one is through, and shadow nothing.

    Raises ValueError for no joinables, and for some of different groups.
    """

    def __init__(self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any) -> None:
        if not joinables:
            raise ArgumentError("Join: the join context manager requires at least one joinable; give a list of them")
        groups = {id(j.join_process_group) for j in joinables}
        # All joinables of a step share one exchange, over one group.
        if len(groups) > 1:
            raise ArgumentError("Join: using join context manager with multiple process groups; give joinables of one group")
        self._joinables, self._enable, self._throws = list(joinables), enable, throw_on_early_termination
        self._hooks = [j.join_hook(**kwargs) for j in joinables]
        self._group: ProcessGroup = joinables[0].join_process_group

    def __enter__(self) -> None:
        for i, joinable in enumerate(self._joinables):
            joinable.__dict__["_join_config"] = (self, i == 0)

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for joinable in self._joinables:
            joinable.__dict__.pop("_join_config", None)
        # An error leaves the loop early on this rank alone: shadowing the others would hide it.
        if not self._enable or kind is not None:
            return
        steps, last = 0, True
        while (step := self._exchange(False)).active:
            last = False
            if self._throws:
                raise RuntimeError(f"Join: rank {self._group.rank()} exhausted all inputs")
            for joinable, hook in zip(self._joinables, self._hooks, strict=True):
                joinable.joined_early(step)
                hook.main_hook()
            steps += 1
            # Once: more often than not such a gap is a mistake in how data are divided.
            if steps == WARN_AFTER:
                warnings.warn(
                    f"Join: uneven inputs: the others have gone on for {WARN_AFTER} steps since rank {self._group.rank()} was through; give all ranks "
                    "about as many batches",
                    stacklevel=2,
                )
        for hook in self._hooks:
            hook.post_hook(last)

    def _exchange(self, active: bool, syncs: bool = False) -> JoinStep:
        """Tell all processes whether this one begins a step, and learn which others do."""
        size = self._group.size()
        told = np.zeros(size + 1, np.int32)
        if active:
            told[self._group.rank()], told[size] = 1, syncs
        on = self._group.get_control_device(self._joinables[0].join_device)
        flags = Tensor.wrap(from_host(told, on))
        all_reduce(flags, group=self._group)
        seen = to_host(flags._array)
        root = int(np.argmax(seen[:size]))
        return JoinStep(int(seen[:size].sum()), root, bool(seen[size]))

    @staticmethod
    def notify_join_context(joinable: Joinable) -> None:
        """A joinable begins a step: told to the processes that are through. Raises RuntimeError where one is, and the Join was told to."""
        config = joinable.__dict__.get("_join_config")
        # Only the first joinable tells of the step, or each step would be exchanged several times.
        if config is None or not config[1] or not config[0]._enable:
            return
        join: Join = config[0]
        step = join._exchange(True, joinable.join_syncs)
        if step.active < join._group.size() and join._throws:
            raise RuntimeError(f"Join: another rank than {join._group.rank()} exhausted all inputs; throw_on_early_termination ends all")
        for one in join._joinables:
            one.joined_early(step)
