"""Learning-rate schedules: after each epoch (or step) `scheduler.step()` sets every group's "lr"."""

from __future__ import annotations

import math
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tritensor.optim.optimizer import Optimizer, read_rate, write_rate


class LRScheduler:
    """Base of schedules. A subclass computes the groups' rates for `self.last_epoch` in `get_lr()`.

    `get_lr` multiplies the present rate rather than setting it, so that schedules can be chained. A rate that is a tensor is
    written into, which the replays of a CUDA graph see if it is on the GPU. To go on from epoch n pass
    last_epoch=n with an optimizer whose groups hold "initial_lr".
    """

    _get_lr_called_within_step = False  # subclasses written for PyTorch ask for it in their get_lr

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: {type(optimizer).__name__} is not an Optimizer; give the optimizer itself")
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", read_rate(group))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming an optimizer: load its state_dict first"
                )
        self.optimizer = optimizer
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self.step()

    def get_lr(self) -> list[float]:
        raise NotImplementedError(f"{type(self).__name__}: define get_lr()")

    def get_last_lr(self) -> list[float]:
        """The rates that the last step() set, one per group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Go on by one epoch and set the rates; `epoch`, deprecated, jumps to that one."""
        optimizer = self.optimizer
        if self._step_count == 1 and optimizer._steps == 0:
            warnings.warn(
                "lr_scheduler.step() was called before optimizer.step(), so the first rate of the schedule was never used; call optimizer.step() first",
                stacklevel=2,
            )
        self._step_count += 1
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                rates = self.get_lr()
            else:
                warnings.warn("lr_scheduler.step(epoch) is deprecated; call step() once an epoch", stacklevel=2)
                self.last_epoch = epoch
                rates = self._get_closed_form_lr()
        finally:
            self._get_lr_called_within_step = False
        for group, lr in zip(optimizer.param_groups, rates, strict=True):
            write_rate(group, lr)
        self._last_lr: list[float] = [read_rate(group) for group in optimizer.param_groups]

    @property
    def _is_initial(self) -> bool:
        """Whether this is the constructor's step: a schedule that goes on finds the rates of its epoch already set."""
        return not hasattr(self, "_last_lr")

    def _get_closed_form_lr(self) -> list[float]:
        """The rates of `self.last_epoch` from the initial ones; here those that one step leads to, for schedules without such a formula."""
        return self.get_lr()

    def _scaled(self, factor: float) -> list[float]:
        return [base * factor for base in self.base_lrs]

    def _times(self, factor: float) -> list[float]:
        return [read_rate(group) * factor for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over another schedule's state."""
        self.__dict__.update(state_dict)


class _LRScheduler(LRScheduler):
    """The base's name in older programs."""


class StepLR(LRScheduler):
    """Times gamma after every step_size epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if step_size < 1:
            raise ValueError(f"StepLR: step_size {step_size} must be 1 or more")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._times(self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1.0)

    def _get_closed_form_lr(self) -> list[float]:
        return self._scaled(self.gamma ** (self.last_epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """Times gamma at each epoch in milestones."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._times(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[float]:
        return self._scaled(self.gamma ** sum(count for epoch, count in self.milestones.items() if epoch <= self.last_epoch))


class ExponentialLR(LRScheduler):
    """Times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._times(1.0 if self._is_initial else self.gamma)

    def _get_closed_form_lr(self) -> list[float]:
        return self._scaled(self.gamma**self.last_epoch)


class LinearLR(LRScheduler):
    """From start_factor to end_factor of the rate in total_iters epochs, in a straight line: a warm-up."""

    def __init__(
        self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError(f"LinearLR: start_factor {start_factor} must be in (0, 1] and end_factor {end_factor} in [0, 1]")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._times(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._times(1.0)
        rise = self.end_factor - self.start_factor
        return self._times(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self) -> list[float]:
        passed = min(self.total_iters, self.last_epoch) / self.total_iters
        return self._scaled(self.start_factor + (self.end_factor - self.start_factor) * passed)


class LambdaLR(LRScheduler):
    """The initial rate times lr_lambda(epoch); one function, or one per group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], last_epoch: int = -1
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"LambdaLR: expected {groups} lr_lambdas, one per parameter group, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the functions; of callable objects their attributes."""
        kept = [None if isinstance(f, types.FunctionType) else dict(getattr(f, "__dict__", {})) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over another schedule's state; the functions stay, callable objects among them get their attributes."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, kept in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ()), strict=False):
            if kept:
                f.__dict__.update(kept)


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to eta_min in T_max epochs along half a cosine, and back: eta_min + (base - eta_min)(1 + cos(pi t / T_max)) / 2
    (Loshchilov and Hutter 2017, without restarts)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_max < 1:
            raise ValueError(f"CosineAnnealingLR: T_max {T_max} must be 1 or more")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        t, groups, low = self.last_epoch, self.optimizer.param_groups, self.eta_min
        if self._is_initial:
            return self._times(1.0)
        if self._step_count == 1 and t > 0:
            return self._get_closed_form_lr()
        if (t - 1 - self.T_max) % (2 * self.T_max) == 0:  # the rate is at eta_min, and no factor leads away from there
            return [
                read_rate(g) + (base - low) * (1 - math.cos(math.pi / self.T_max)) / 2
                for base, g in zip(self.base_lrs, groups, strict=True)
            ]
        factor = (1 + math.cos(math.pi * t / self.T_max)) / (1 + math.cos(math.pi * (t - 1) / self.T_max))
        return [factor * (read_rate(g) - low) + low for g in groups]

    def _get_closed_form_lr(self) -> list[float]:
        t, low = self.last_epoch, self.eta_min
        return [low + (base - low) * (1 + math.cos(math.pi * t / self.T_max)) / 2 for base in self.base_lrs]


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a metric, given to step(metric), has not become better for `patience` epochs.

    Better means: below best * (1 - threshold) (threshold_mode="rel") or best - threshold ("abs"); in mode "max" above best * (1 + threshold)
    or best + threshold. After a reduction it waits `cooldown` epochs. Rates stop at min_lr.
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4, threshold_mode: str = "rel",
        cooldown: int = 0, min_lr: float | Sequence[float] = 0.0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor {factor} must be less than 1")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau: mode is 'min' or 'max' and threshold_mode 'rel' or 'abs', not {mode!r} and {threshold_mode!r}"
            )
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(self).__name__}: {type(optimizer).__name__} is not an Optimizer; give the optimizer itself")
        groups = len(optimizer.param_groups)
        self.optimizer = optimizer
        self.default_min_lr = None if isinstance(min_lr, Sequence) else min_lr
        self.min_lrs = list(min_lr) if isinstance(min_lr, Sequence) else [min_lr] * groups
        if len(self.min_lrs) != groups:
            raise ValueError(f"ReduceLROnPlateau: expected {groups} min_lrs, one per parameter group, but got {len(self.min_lrs)}")
        self.mode, self.factor, self.patience, self.cooldown, self.eps = mode, factor, patience, cooldown, eps
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf  # what every metric beats
        self.last_epoch = 0
        self._reset()
        self._last_lr = [read_rate(group) for group in optimizer.param_groups]

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def _reset(self) -> None:
        """Forget the best metric, and what was counted."""
        self.best = self.mode_worse
        self.num_bad_epochs = self.cooldown_counter = 0

    def _is_better(self, value: float, best: float) -> bool:
        """Whether value beats best by the threshold."""
        sign = 1.0 if self.mode == "max" else -1.0
        bound = best * (1.0 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return value > bound if self.mode == "max" else value < bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Go on by one epoch whose metric was `metrics` (a number or a tensor of one element)."""
        value = float(metrics)
        if epoch is not None:
            warnings.warn("lr_scheduler.step(metrics, epoch) is deprecated; call step(metrics) once an epoch", stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = [read_rate(group) for group in self.optimizer.param_groups]

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"ReduceLROnPlateau: the optimizer has {len(groups)} parameter groups and min_lrs {len(self.min_lrs)}: set min_lrs anew"
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, low in zip(groups, self.min_lrs, strict=True):
            now = read_rate(group)
            lower = max(now * self.factor, low)
            if now - lower > self.eps:
                write_rate(group, lower)
