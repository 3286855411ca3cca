"""Schedules of factors: of each epoch, of some, by functions; straight lines and powers."""

from __future__ import annotations

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
        return self._multiply_rates(self.gamma ** self.milestones[self.last_epoch])

    def _get_closed_form_lr(self) -> list[float]:
        return self._scale_base_rates(self.gamma ** sum(count for epoch, count in self.milestones.items() if epoch <= self.last_epoch))


class ExponentialLR(LRScheduler):
    """Times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
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
        return self._scale_base_rates((1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power)


class _OfFunctions(LRScheduler):
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
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, kept in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ()), strict=False):
            if kept:
                f.__dict__.update(kept)


class LambdaLR(_OfFunctions):
    """The initial rate times lr_lambda(epoch); one function, or one per group."""

    def get_lr(self) -> list[float]:
        self._warn_outside()
        return [base * f(self.last_epoch) for base, f in zip(self.base_lrs, self.lr_lambdas, strict=True)]


class MultiplicativeLR(_OfFunctions):
    """Each epoch the rate before times lr_lambda(epoch); one function, or one per group."""

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._multiply_rates(1.0)
        self._warn_outside()
        return [group["lr"] * f(self.last_epoch) for group, f in zip(self.optimizer.param_groups, self.lr_lambdas, strict=True)]
