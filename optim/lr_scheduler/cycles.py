"""Cycles: rates that rise and fall, and momentum against them (Smith 2017; Smith and Topin 2018)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tritensor.optim.lr_scheduler.base import LRScheduler, expand_to_groups, init_momentum, read_attributes, refuse_other, set_momentum
from tritensor.optim.optimizer import Optimizer
from tritensor.optim.state import write_rate

_SCALES: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "triangular": ("cycle", lambda x, gamma: 1.0),
    "triangular2": ("cycle", lambda x, gamma: 1 / 2.0 ** (x - 1)),
    "exp_range": ("iterations", lambda x, gamma: gamma**x),
}


class CyclicLR(LRScheduler):
    """From base_lr up to max_lr in step_size_up steps and down again in step_size_down, over and over; momentum goes the other way.

    The height of a cycle is scaled: "triangular" not at all, "triangular2" by half each cycle, "exp_range" by gamma^step; or by
    scale_fn(x), x the cycle's number or the step as scale_mode says.

    Raises:
        ValueError: no such mode; lists of another length than the groups; cycle_momentum where there is none.
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float], step_size_up: int = 2000, step_size_down: int | None = None,
        mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[float], float] | None = None, scale_mode: str = "cycle",
        cycle_momentum: bool = True, base_momentum: float = 0.8, max_momentum: float = 0.9, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        refuse_other("CyclicLR", optimizer)
        base_lrs = expand_to_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                write_rate(group, lr)  # before the base's constructor, which notes the rate as the initial one
        self.max_lrs = expand_to_groups("max_lr", optimizer, max_lr)
        self.total_size = float(step_size_up) + float(step_size_up if step_size_down is None else step_size_down)
        self.step_ratio = float(step_size_up) / self.total_size
        if mode not in _SCALES and scale_fn is None:
            raise ValueError(
                f"CyclicLR: mode is invalid and scale_fn is None: mode is {mode!r}; give one of {', '.join(map(repr, _SCALES))}"
            )
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = _SCALES[mode][0] if scale_fn is None else scale_mode
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = init_momentum("CyclicLR", optimizer, base_momentum, max_momentum, last_epoch == -1)
            self.use_beta1 = "betas" in optimizer.defaults
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs  # the base took the groups' initial rates, which an earlier schedule may have set

    def scale_fn(self, x: float) -> float:
        """What a cycle's height is scaled by."""
        return _SCALES[self.mode][1](x, self.gamma) if self._scale_fn_custom is None else self._scale_fn_custom(x)

    def get_lr(self) -> list[float]:
        self._warn_outside()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle  # how far in the cycle, from 0 to 1
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)

        def rise(low: float, high: float) -> float:
            return (high - low) * height * self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)

        if self.cycle_momentum:
            for low, high, group in zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True):
                set_momentum(group, high - rise(low, high))
        return [low + rise(low, high) for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and a function; of a callable object its attributes."""
        return {**super().state_dict(), "_scale_fn_custom": read_attributes([self._scale_fn_custom])[0] or None}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over another schedule's state; the function stays, a callable object gets its attributes."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if state_dict.get("_scale_fn_custom") and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])  # attributes alone: the callable itself is the program's


class OneCycleLR(LRScheduler):
    """From max_lr / div_factor up to max_lr in the first pct_start of all steps, then down to the first rate / final_div_factor; momentum the
    other way. three_phase: down to the first rate in as many steps as up, and then on. step() is called after each batch.

    Give total_steps, or epochs and steps_per_epoch.

    Args:
        max_lr: the highest rate, one number or one for each group.
        anneal_strategy: the way from one rate to the next: "cos" or "linear".
        cycle_momentum: let momentum (betas[0] of Adam) go from max_momentum down to base_momentum while the rate rises, and back.

    Raises:
        ValueError: a setting that makes no sense; a step beyond the last; cycle_momentum where there is none.
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos", cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85, max_momentum: float | list[float] = 0.95, div_factor: float = 25.0, final_div_factor: float = 1e4,
        three_phase: bool = False, last_epoch: int = -1,
    ) -> None:  # fmt: skip
        refuse_other("OneCycleLR", optimizer)
        self.total_steps = _count_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:  # PyTorch refuses the ints 0 and 1 as well
            raise ValueError(f"OneCycleLR: Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"OneCycleLR: anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _make_phases(pct_start, self.total_steps, three_phase)
        self._anneal_func_type = anneal_strategy
        for group, most in zip(optimizer.param_groups, expand_to_groups("max_lr", optimizer, max_lr), strict=True):
            if last_epoch == -1:
                # set, not setdefault: this schedule begins at a rate of its own, whatever the optimizer was given
                group["initial_lr"] = most / div_factor
                group["max_lr"] = most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            init_momentum("OneCycleLR", optimizer, base_momentum, max_momentum, last_epoch == -1)
            self.use_beta1 = "betas" in optimizer.defaults
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: float, end: float, passed: float) -> float:
        if self._anneal_func_type == "linear":
            return (end - start) * passed + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * passed) + 1)

    def get_lr(self) -> list[float]:
        self._warn_outside()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"OneCycleLR: Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start, phase = 0.0, self._schedule_phases[0]
        for after in self._schedule_phases[1:]:
            if step <= phase["end_step"]:
                break
            start, phase = phase["end_step"], after
        passed = (step - start) / (phase["end_step"] - start)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], passed))
            if self.cycle_momentum:
                set_momentum(group, self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], passed))
        return rates


def _count_steps(total: int | None, epochs: int | None, each: int | None) -> int:
    if total is None and (epochs is None or each is None):
        raise ValueError("OneCycleLR: You must define either total_steps OR (epochs AND steps_per_epoch)")
    given = {"total_steps": total} if total is not None else {"epochs": epochs, "steps_per_epoch": each}
    made = 1
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"OneCycleLR: Expected positive integer {name}, but got {value}")
        made *= value
    return made


def _make_phases(up: float, steps: int, three: bool) -> list[dict[str, Any]]:
    """Up, down, and where there are three on to the least rate; by the names that groups hold the rates under."""
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    # steps count from 0, so each phase ends one before
    found: list[tuple[Any, ...]] = [(float(up * steps) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")]
    if three:
        found.append((float(2 * up * steps) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
        found.append((steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
    else:
        found.append((steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
    return [dict(zip(names, phase, strict=True)) for phase in found]
