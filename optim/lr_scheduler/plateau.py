"""ReduceLROnPlateau: a smaller rate where a metric stops to improve."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import Any

from tritensor.optim.lr_scheduler.base import EPOCH_DEPRECATION_WARNING, LRScheduler, refuse_other
from tritensor.optim.optimizer import Optimizer
from tritensor.optim.state import copy_rates, read_rate, write_rate


class ReduceLROnPlateau(LRScheduler):
    """Times `factor` when a metric, given to step(metric), has not become better for `patience` epochs.

    Better means: below best * (1 - threshold) (threshold_mode="rel") or best - threshold ("abs"); in mode "max" above best * (1 + threshold)
    or best + threshold. After a reduction it waits `cooldown` epochs. Rates stop at min_lr.
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10, threshold: float = 1e-4, threshold_mode: str = "rel",
        cooldown: int = 0, min_lr: float | Sequence[float] = 0, eps: float = 1e-8,
    ) -> None:  # fmt: skip
        if factor >= 1.0:
            raise ValueError(f"ReduceLROnPlateau: factor {factor} must be less than 1")
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            raise ValueError(
                f"ReduceLROnPlateau: mode is 'min' or 'max' and threshold_mode 'rel' or 'abs', not {mode!r} and {threshold_mode!r}"
            )
        refuse_other(type(self).__name__, optimizer)
        groups = len(optimizer.param_groups)
        self.optimizer = optimizer
        self.default_min_lr = None if isinstance(min_lr, Sequence) else min_lr
        # a copy: _reduce_lr may replace it when groups are added
        self.min_lrs = list(min_lr) if isinstance(min_lr, Sequence) else [min_lr] * groups
        if len(self.min_lrs) != groups:
            raise ValueError(f"ReduceLROnPlateau: expected {groups} min_lrs, one per parameter group, but got {len(self.min_lrs)}")
        self.mode, self.factor, self.patience, self.cooldown, self.eps = mode, factor, patience, cooldown, eps
        self.threshold, self.threshold_mode = threshold, threshold_mode
        self.mode_worse = math.inf if mode == "min" else -math.inf  # what every metric beats
        self.last_epoch = 0
        self._reset()
        self._last_lr = copy_rates(optimizer.param_groups)

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs are not counted yet, after the rate has been lowered."""
        return self.cooldown_counter > 0

    def _reset(self) -> None:
        self.best = self.mode_worse
        self.num_bad_epochs = self.cooldown_counter = 0

    def _is_better(self, value: float, best: float) -> bool:
        sign = 1.0 if self.mode == "max" else -1.0
        bound = best * (1.0 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return value > bound if self.mode == "max" else value < bound

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Go on by one epoch whose metric was `metrics` (a number or a tensor of one element)."""
        value = float(metrics)  # read once: a tensor on a GPU is waited for
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(value, self.best):
            self.best, self.num_bad_epochs = value, 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = copy_rates(self.optimizer.param_groups)

    def _reduce_lr(self, epoch: int) -> None:  # a library sets one of its own in its place
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
            if now - lower > self.eps:  # eps: changes that are too small to matter are left out, as in PyTorch
                write_rate(group, lower)
