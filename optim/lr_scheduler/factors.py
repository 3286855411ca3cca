"""Schedules of factors: of each epoch, of some, by functions; straight lines, powers, cosines."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tritensor.optim.lr_scheduler.base import LRScheduler, read_attributes, refuse_other
from tritensor.optim.optimizer import Optimizer


class StepLR(LRScheduler):
    """Times gamma after every step_size epochs.

    >>> optimizer = tt.optim.SGD([nn.Parameter(tt.zeros(1))], lr=1.0)
    >>> scheduler = tt.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for _ in range(4):
    ...     print(scheduler.get_last_lr())
    ...     optimizer.step()
    ...     scheduler.step()
    [1.0]
    [1.0]
    [0.5]
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        if step_size < 1:
            raise ValueError(f"StepLR: step_size {step_size} must be 1 or more")
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return self._multiply_rates(self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1.0)

    def _get_closed_form_lr(self) -> list[float]:
        return self._scale_base_rates(self.gamma ** (self.last_epoch // self.step_size))


class MultiStepLR(LRScheduler):
    """Times gamma at each epoch in milestones."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        # a milestone given twice counts twice; of a Counter others are 0
        return self._multiply_rates(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[float]:
        return self._scale_base_rates(self.gamma ** sum(count for epoch, count in self.milestones.items() if epoch <= self.last_epoch))


class ExponentialLR(LRScheduler):
    """Times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        # a schedule that goes on finds the rate of its epoch in the group
        return self._multiply_rates(1.0 if self._is_initial else self.gamma)

    def _get_closed_form_lr(self) -> list[float]:
        return self._scale_base_rates(self.gamma**self.last_epoch)


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
            return self._multiply_rates(self.start_factor)
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._multiply_rates(1.0)
        rise = self.end_factor - self.start_factor
        # the quotient of two neighbouring rates: other schedules may have changed the rate as well
        return self._multiply_rates(1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _get_closed_form_lr(self) -> list[float]:
        passed = min(self.total_iters, self.last_epoch) / self.total_iters
        return self._scale_base_rates(self.start_factor + (self.end_factor - self.start_factor) * passed)


class ConstantLR(LRScheduler):
    """Times factor for the first total_iters epochs."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        if not 0 <= factor <= 1:
            raise ValueError(f"ConstantLR: Constant multiplicative factor expected to be between 0 and 1, not {factor}")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self._multiply_rates(self.factor)
        # undone by division, so that what others did to the rate stays
        return self._multiply_rates(1.0 / self.factor if self.last_epoch == self.total_iters else 1.0)

    def _get_closed_form_lr(self) -> list[float]:
        return self._scale_base_rates(self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor))


class PolynomialLR(LRScheduler):
    """Down to 0 in total_iters epochs: the initial rate times (1 - t / total_iters)^power."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._multiply_rates(1.0)
        left, before = 1.0 - self.last_epoch / self.total_iters, 1.0 - (self.last_epoch - 1) / self.total_iters
        return self._multiply_rates((left / before) ** self.power)

    def _get_closed_form_lr(self) -> list[float]:
        # behind the end the rate stays 0
        return self._scale_base_rates((1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power)


class _FunctionSchedule(LRScheduler):
    """A schedule by a function of the epoch, or one for each group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]], last_epoch: int = -1
    ) -> None:
        name = type(self).__name__
        refuse_other(name, optimizer)
        groups = len(optimizer.param_groups)
        given: list[Any] = list(lr_lambda) if isinstance(lr_lambda, list | tuple) else [lr_lambda] * groups
        self.lr_lambdas: list[Callable[[int], float]] = given
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"{name}: Expected {groups} lr_lambdas, one per parameter group, but got {len(self.lr_lambdas)}")
        for f in self.lr_lambdas:
            if not callable(f):
                raise TypeError(f"{name}: lr_lambda should be a function, but got {type(f).__name__}; give one of the epoch")
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer and the functions; of callable objects their attributes."""
        return {**super().state_dict(), "lr_lambdas": read_attributes(self.lr_lambdas)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over another schedule's state; the functions stay, callable objects among them get their attributes."""
        # functions are the program's: a file cannot hold them
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, kept in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ()), strict=False):
            if kept:
                f.__dict__.update(kept)


class LambdaLR(_FunctionSchedule):
    """The initial rate times lr_lambda(epoch); one function, or one per group."""

    def get_lr(self) -> list[float]:
        self._warn_outside()
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_FunctionSchedule):
    """Each epoch the rate before times lr_lambda(epoch); one function, or one per group."""

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._multiply_rates(1.0)
        self._warn_outside()
        return [group["lr"] * f(self.last_epoch) for group, f in zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)]


class CosineAnnealingLR(LRScheduler):
    """From the initial rate to eta_min in T_max epochs along half a cosine, and back: eta_min + (base - eta_min)(1 + cos(pi t / T_max)) / 2
    (Loshchilov and Hutter 2017, without restarts)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if T_max < 1:
            raise ValueError(f"CosineAnnealingLR: T_max {T_max} must be 1 or more")
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside()
        t, groups, low = self.last_epoch, self.optimizer.param_groups, self.eta_min
        if self._is_initial:
            return self._multiply_rates(1.0)
        if self._step_count == 1 and t > 0:
            return self._get_closed_form_lr()
        if (t - 1 - self.T_max) % (2 * self.T_max) == 0:  # the rate is at eta_min, and no factor leads away from there
            return [
                g["lr"] + (base - low) * (1 - math.cos(math.pi / self.T_max)) / 2 for base, g in zip(self.base_lrs, groups, strict=True)
            ]
        factor = (1 + math.cos(math.pi * t / self.T_max)) / (1 + math.cos(math.pi * (t - 1) / self.T_max))
        return [factor * (g["lr"] - low) + low for g in groups]

    def _get_closed_form_lr(self) -> list[float]:
        t, low = self.last_epoch, self.eta_min
        return [low + (base - low) * (1 + math.cos(math.pi * t / self.T_max)) / 2 for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the initial rate to eta_min in T_0 epochs, then again, each T_mult times as long as the one before
    (Loshchilov and Hutter 2017). step(epoch) may be called with parts of epochs.

    Raises:
        ValueError: T_0 is no positive integer, T_mult no integer from 1 on, eta_min no number; step to an epoch below 0.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"CosineAnnealingWarmRestarts: Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"CosineAnnealingWarmRestarts: Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, float | int):
            raise ValueError(
                f"CosineAnnealingWarmRestarts: Expected float or int eta_min, but got {eta_min} of type {type(eta_min).__name__}"
            )
        self.T_0, self.T_i, self.T_mult, self.eta_min = T_0, T_0, T_mult, eta_min
        self.T_cur: float = last_epoch  # fractions of epochs are allowed
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Go on by one epoch, or to the one given, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:  # the constructor's step, to epoch 0
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult  # the next run is longer
        elif epoch < 0:
            raise ValueError(f"CosineAnnealingWarmRestarts.step: Expected non-negative epoch, but got {epoch}")
        else:
            self._set_epoch(epoch)
        self.last_epoch = math.floor(epoch)
        self._get_lr_called_within_step = True
        try:
            rates = self.get_lr()
        finally:
            self._get_lr_called_within_step = False
        self._set_rates(rates)

    def _set_epoch(self, epoch: float) -> None:
        """The run that an epoch is in, and how far."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:  # n runs are T_0 (T_mult^n - 1) / (T_mult - 1) epochs
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
