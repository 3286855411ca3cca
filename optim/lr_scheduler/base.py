"""LRScheduler: the base of schedules, and what all of them share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from tritensor.optim.optimizer import Optimizer
from tritensor.optim.state import copy_rate, copy_rates, write_rate

EPOCH_DEPRECATION_WARNING = "the epoch parameter of scheduler.step() is deprecated; call step() once an epoch"


class LRScheduler:
    """Base of schedules. A subclass computes the groups' rates for `self.last_epoch` in `get_lr()`.

    `get_lr` multiplies the present rate rather than setting it, so that schedules can be chained. A rate that is a tensor is
    written into, which the replays of a CUDA graph see if it is on the GPU; `base_lrs` and `get_last_lr()` have copies of it. To go on from epoch n pass
    last_epoch=n with an optimizer whose groups hold "initial_lr".

    Raises:
        TypeError: something else than an optimizer.
        KeyError: last_epoch is given, and a group has no "initial_lr".
    """

    _get_lr_called_within_step = False  # subclasses written for PyTorch ask for both in their get_lr
    _last_lr: list[Any]
    _is_initial = False  # whether this is the constructor's step: a schedule that goes on finds the rates of its epoch already set

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        refuse_other(type(self).__name__, optimizer)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                # kept from an earlier schedule where there was one: several schedules share the first rate
                group.setdefault("initial_lr", copy_rate(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer: load its state_dict first"
                )
        self.optimizer = optimizer
        self.base_lrs: list[Any] = [copy_rate(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        """The constructor's step, to the first epoch."""
        self._step_count = 0  # PyTorch's attribute, which state dicts hold
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False  # also after an error: the next step is no first one

    def get_lr(self) -> list[float]:
        """The rates of the present epoch, one for each group; a subclass defines it. Read them with get_last_lr()."""
        raise NotImplementedError(f"{type(self).__name__}: define get_lr()")

    def _warn_outside(self) -> None:
        """What a program wants that calls get_lr itself are the rates in use."""
        if not self._get_lr_called_within_step:
            warnings.warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.", stacklevel=3)

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step() set, one per group: a tensor's as a tensor of its own."""
        return self._last_lr  # copies: a rate that is a tensor is written into by the next step

    def step(self, epoch: int | None = None) -> None:
        """Go on by one epoch and set the rates; `epoch`, deprecated, jumps to that one."""
        # asked once: the first step behind the constructor's is where the order of the two shows
        if self._step_count == 1 and self.optimizer._steps == 0:
            if "step" in self.optimizer.__dict__:
                said = "Seems like `optimizer.step()` has been overridden, so that nobody can tell whether it was called before `lr_scheduler.step()`"
            else:
                said = "Detected call of `lr_scheduler.step()` before `optimizer.step()`: the first rate of the schedule was never used"
            warnings.warn(f"{said}; call optimizer.step() first", stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            rates = self.get_lr() if epoch is None else self._get_closed_form_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set_rates(rates)

    def _set_rates(self, rates: Sequence[Any]) -> None:
        for group, lr in zip(self.optimizer.param_groups, rates, strict=True):
            write_rate(group, lr)
        self._last_lr = copy_rates(self.optimizer.param_groups)

    def _get_closed_form_lr(self) -> list[float]:
        """The rates of `self.last_epoch` from the initial ones; here those that one step leads to, for schedules without such a formula."""
        return self.get_lr()

    def _scale_base_rates(self, factor: float) -> list[float]:
        return [base * factor for base in self.base_lrs]

    def _multiply_rates(self, factor: float) -> list[float]:
        self._warn_outside()
        return [group["lr"] * factor for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}  # which has a state_dict of its own

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over another schedule's state."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The base's name in older programs."""


def refuse_other(name: str, optimizer: Any) -> None:
    """Refuse what is given in place of an optimizer."""
    if not isinstance(optimizer, Optimizer):
        what = optimizer.__name__ + ", a class," if isinstance(optimizer, type) else type(optimizer).__name__
        raise TypeError(f"{name}: {what} is not an Optimizer; make the optimizer first and give it")


def expand_to_groups(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A setting for each group: one for all, or a list of as many; of tensors copies."""
    if not isinstance(value, list | tuple):
        return [copy_rate(value) for _ in optimizer.param_groups]
    if len(value) != len(optimizer.param_groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups: {name} has {len(value)} values, param_groups has {len(optimizer.param_groups)}"
        )
    return [copy_rate(x) for x in value]


def read_attributes(functions: Sequence[Any]) -> list[Any]:
    """What a state dict holds of functions: of callable objects their attributes, of plain functions nothing."""
    # no file can hold a function: PyTorch leaves None in its place
    return [None if type(f).__name__ == "function" else dict(getattr(f, "__dict__", {})) for f in functions]


def set_momentum(group: dict[str, Any], momentum: float) -> None:
    """Set a group's momentum, or the first of its betas."""
    if "betas" in group:  # Adam's first beta is what momentum is elsewhere
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def init_momentum(name: str, optimizer: Optimizer, base: Any, most: Any, fresh: bool) -> tuple[list[float], list[float]]:
    """(base, largest) momentum of each group, in which they are noted, and which begin with the largest unless they go on.

    Raises ValueError for an optimizer without momentum or betas.
    """
    if not {"momentum", "betas"} & optimizer.defaults.keys():
        raise ValueError(
            f"{name}: optimizer must support momentum or beta1 with `cycle_momentum` option enabled; give cycle_momentum=False"
        )
    largest, lowest = expand_to_groups("max_momentum", optimizer, most), expand_to_groups("base_momentum", optimizer, base)
    if fresh:  # a schedule that goes on finds them in the groups, and does not begin anew
        for high, low, group in zip(largest, lowest, optimizer.param_groups, strict=True):
            set_momentum(group, high)
            group["max_momentum"], group["base_momentum"] = high, low
    return lowest, largest
