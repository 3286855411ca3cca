"""Progress bar of a training run."""

from __future__ import annotations

from typing import Any

from tritensor.training.callbacks.base import StepCallback
from tritensor.utils.progress import Bar


class ProgressBar(StepCallback):
    """tqdm's bar on a terminal where tqdm is installed, else a line now and then; and a line for every validation and epoch."""

    _bar: Bar | None = None

    def on_fit_start(self, trainer: Any) -> None:
        self._bar = Bar("training", "steps", trainer.total_steps, trainer.step)
        self._shown = len(trainer.history)
        super().on_fit_start(trainer)

    def _after_step(self, trainer: Any) -> None:
        epochs = "" if trainer.epochs is None else f"/{trainer.epochs}"
        assert self._bar is not None
        self._bar.step(f"epoch {trainer.epoch + 1}{epochs}, loss {trainer.last_loss:.4f}")

    def on_validation_end(self, trainer: Any, metrics: dict[str, float]) -> None:
        self._show_history(trainer)

    def on_epoch_end(self, trainer: Any) -> None:
        self._show_history(trainer)

    def _show_history(self, trainer: Any) -> None:
        assert self._bar is not None
        for known in trainer.history[self._shown :]:
            numbers = ", ".join(f"{name} {value:.4f}" for name, value in known.items() if isinstance(value, float) and name != "lr")
            self._bar.say(f"epoch {known['epoch'] + 1}, step {known['step']}: {numbers}")
        self._shown = len(trainer.history)

    def on_fit_end(self, trainer: Any) -> None:
        if self._bar is not None:
            self._bar.close()
