"""Early stopping: a run ends when a metric has not become better for some time."""

from __future__ import annotations

from typing import Any

from tritensor.ground.errors import ArgumentError
from tritensor.training.callbacks.base import MetricCallback


class EarlyStopping(MetricCallback):
    """Stops the run when a metric has not become better for `patience` looks at it: after each validation, or epoch where it is the training's.

    Args:
        monitor: "val_loss", "val_<metric>", or "loss" (of training).
        patience: so many looks without an improvement end the run; at least 1.
        min_delta: a value must be better by more than this.
        mode: "min" or "max", which is better.

    NaN is no improvement. Raises ValueError for settings that make no sense, KeyError where the run has no such metric.
    """

    def __init__(self, monitor: str = "val_loss", patience: int = 3, min_delta: float = 0.0, mode: str = "min") -> None:
        super().__init__(monitor, mode)
        if not isinstance(patience, int) or patience < 1:
            raise ArgumentError(f"EarlyStopping: patience is {patience!r}; give an integer of at least 1")
        if not min_delta >= 0:
            raise ArgumentError(f"EarlyStopping: min_delta is {min_delta!r}; give 0 or more")
        self.patience, self.min_delta = patience, min_delta
        self.best = self.worst
        self.bad = 0  # looks without an improvement, one after another

    def _check_metric(self, trainer: Any, value: float) -> None:
        better = self._is_better(value, self.best, self.min_delta)
        self.best, self.bad = (value, 0) if better else (self.best, self.bad + 1)
        if self.bad >= self.patience:
            trainer.should_stop = True

    def state_dict(self) -> dict[str, Any]:
        """The best value, and how many looks ago it was."""
        return {"best": self.best, "bad": self.bad}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on counting."""
        self.best, self.bad = state_dict["best"], state_dict["bad"]
