"""Schedules composed of others: in sequence, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from tritensor.optim.lr_scheduler.base import LRScheduler
from tritensor.optim.lr_scheduler.plateau import ReduceLROnPlateau
from tritensor.optim.optimizer import Optimizer
from tritensor.optim.state import copy_rates, write_rate


class _Composition(LRScheduler):
    """A schedule of `_schedulers`, whose states its own holds."""

    _schedulers: Sequence[Any]

    def _check(self, schedulers: Sequence[Any], optimizer: Optimizer | None) -> Optimizer:
        """The optimizer that all belong to."""
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(f"{name}: expects at least one scheduler, but got no scheduler; give some")
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"{name}: at index {i} should have `optimizer` as its attribute; {type(scheduler).__name__} is no scheduler"
                )
            # its step wants a metric, which this schedule's step has none of
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name}: does not support `ReduceLROnPlateau`, whose step takes a metric, but got one at index {i}; step that by itself"
                )
        own = schedulers[0].optimizer if optimizer is None else optimizer  # PyTorch's ChainedScheduler takes none, too
        for i, scheduler in enumerate(schedulers):
            if scheduler.optimizer is not own:
                raise ValueError(
                    f"{name}: expects all schedulers to belong to the same optimizer, but {type(scheduler).__name__} at index {i} has another; make them of one"
                )
        return own  # type: ignore[no-any-return]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; the schedules as their states."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over another such schedule's state."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for s, kept in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            s.load_state_dict(kept)


class SequentialLR(_Composition):
    """The first schedule up to the first milestone, there the second from its beginning, and so on.

    Raises:
        ValueError: not one milestone less than schedules; schedules of several optimizers; a ReduceLROnPlateau.
        TypeError: something else than a schedule.
    """

    def __init__(self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1) -> None:
        self._check(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "SequentialLR: Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone points, "
                f"but got number of schedulers {len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            write_rate(group, group["initial_lr"])  # the constructors of all schedules have set rates, one over the other
        # each schedule's constructor made its first step; only the first schedule's may count
        _undo_steps(self)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Go on by one epoch."""
        self.last_epoch += 1
        i = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[i]
        # a schedule begins at its own epoch 0, from the initial rates, whatever the one before left
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Take the constructors' steps of all schedules back."""
        _undo_steps(self if sched is None else sched)


def _undo_steps(scheduler: Any) -> None:
    if hasattr(scheduler, "_schedulers"):
        for s in scheduler._schedulers:
            _undo_steps(s)
    elif hasattr(scheduler, "last_epoch"):
        scheduler.last_epoch -= 1


class ChainedScheduler(_Composition):
    """Several schedules, each of which changes the rates at each step.

    Raises:
        ValueError: no schedules; schedules of several optimizers; a ReduceLROnPlateau.
        TypeError: something else than a schedule.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self.optimizer = self._check(schedulers, optimizer)
        self._schedulers = schedulers
        self._last_lr = copy_rates(self.optimizer.param_groups)

    def step(self) -> None:  # type: ignore[override]
        """Go on by one epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = copy_rates(self.optimizer.param_groups)
