"""Schedules along a cosine: once, and with restarts."""

from __future__ import annotations

import math

from tritensor.optim.lr_scheduler.base import LRScheduler
from tritensor.optim.optimizer import Optimizer


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
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        self._warn_outside()
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Go on by one epoch, or to the one given, which may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
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
