"""Callbacks: what a training loop tells, and what it lets others change; early stopping and the progress bar are two."""

from __future__ import annotations

import difflib
import math
from typing import Any

from tritensor.errors import ArgumentError
from tritensor.utils.progress import Bar


class Callback:
    """Base of callbacks. A subclass gives the hooks that it wants; each gets the trainer, whose attributes say all that is known:

    `model`, `optimizer`, `scheduler`, `epoch` (from 0), `step` (optimizer steps done), `batch_index` (batches of this epoch done), `batch`,
    `outputs`, `loss` (the last ones), `losses` (of every step), `history` (a dict for every validation and epoch). A hook may set
    `trainer.should_stop = True`: the run ends after the present step.

    In the order in which they are called:

    on_fit_start(trainer): before anything is read; a run that goes on has taken up its state.
    on_epoch_start(trainer): not again for an epoch that a run goes on in.
    on_batch_start(trainer, batch): the batch, on the model's device. What it returns, unless None, takes the batch's place.
    on_after_forward(trainer, outputs, loss): what the model and the loss gave. A returned loss, unless None, takes the loss's place.
    on_after_backward(trainer): gradients of this batch have been added, under a GradScaler in its scale.
    on_before_optimizer_step(trainer): gradients are whole and unscaled, not yet clipped; they and the rates may be changed.
    on_batch_end(trainer): after the step, where this batch completed one.
    on_validation_end(trainer, metrics): {"val_loss": ..., "val_<metric>": ...}.
    on_epoch_end(trainer): `trainer.history[-1]` is this epoch's.
    on_fit_end(trainer): always, after an error as well.

    `state_dict()` goes into checkpoints, `load_state_dict(state)` takes it from there.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raises TypeError for a method on_... that no hook is called: it would be waited for in vain."""
        super().__init_subclass__(**kwargs)
        for name in vars(cls):
            if name.startswith("on_") and name not in HOOKS:
                near = difflib.get_close_matches(name, HOOKS, 3, 0.5)
                raise TypeError(
                    f"{cls.__name__}: {name} is no hook of Callback, nothing would call it; name it {' or '.join(near or HOOKS)}"
                )

    def on_fit_start(self, trainer: Any) -> None: ...
    def on_epoch_start(self, trainer: Any) -> None: ...
    def on_batch_start(self, trainer: Any, batch: Any) -> Any: ...
    def on_after_forward(self, trainer: Any, outputs: Any, loss: Any) -> Any: ...
    def on_after_backward(self, trainer: Any) -> None: ...
    def on_before_optimizer_step(self, trainer: Any) -> None: ...
    def on_batch_end(self, trainer: Any) -> None: ...
    def on_validation_end(self, trainer: Any, metrics: dict[str, float]) -> None: ...
    def on_epoch_end(self, trainer: Any) -> None: ...
    def on_fit_end(self, trainer: Any) -> None: ...

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps: numbers, strings, tensors and nests of them."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up what state_dict gave."""


HOOKS = tuple(name for name in vars(Callback) if name.startswith("on_"))


class EarlyStopping(Callback):
    """Stops the run when a metric has not become better for `patience` looks at it: after each validation, or epoch where it is the training's.

    Args:
        monitor: "val_loss", "val_<metric>", or "loss" (of training).
        patience: how many looks without an improvement are one too many; at least 1.
        min_delta: what is less than this much better is not better.
        mode: "min" or "max", which is better.

    NaN is no improvement. Raises ValueError for settings that make no sense, KeyError where the run has no such metric.
    """

    def __init__(self, monitor: str = "val_loss", patience: int = 3, min_delta: float = 0.0, mode: str = "min") -> None:
        if mode not in ("min", "max"):
            raise ArgumentError(f"EarlyStopping: mode is {mode!r}; give 'min' where less is better, 'max' where more is")
        if not isinstance(patience, int) or patience < 1:
            raise ArgumentError(f"EarlyStopping: patience is {patience!r}; give an integer of at least 1")
        if not min_delta >= 0:
            raise ArgumentError(f"EarlyStopping: min_delta is {min_delta!r}; give 0 or more")
        self.monitor, self.patience, self.min_delta, self.mode = monitor, patience, min_delta, mode
        self.best = math.inf if mode == "min" else -math.inf
        self.bad = 0  # looks without an improvement, one after another

    def on_validation_end(self, trainer: Any, metrics: dict[str, float]) -> None:
        if self.monitor in metrics:
            self._look(trainer, metrics[self.monitor])

    def on_epoch_end(self, trainer: Any) -> None:
        known = trainer.history[-1]
        if self.monitor not in known:
            there = ", ".join(repr(k) for k, v in known.items() if isinstance(v, float))
            raise KeyError(
                f"EarlyStopping: the run has no metric {self.monitor!r}, it has {there}; name one, or give fit a validation loader"
            )
        if not self.monitor.startswith("val_"):
            self._look(trainer, known[self.monitor])

    def _look(self, trainer: Any, value: float) -> None:
        better = value < self.best - self.min_delta if self.mode == "min" else value > self.best + self.min_delta
        self.best, self.bad = (value, 0) if better else (self.best, self.bad + 1)
        if self.bad >= self.patience:
            trainer.should_stop = True

    def state_dict(self) -> dict[str, Any]:
        """The best value, and how many looks ago it was."""
        return {"best": self.best, "bad": self.bad}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Go on counting."""
        self.best, self.bad = state_dict["best"], state_dict["bad"]


class ProgressBar(Callback):
    """tqdm's bar on a terminal where tqdm is installed, else a line now and then; and a line for every validation and epoch."""

    def on_fit_start(self, trainer: Any) -> None:
        self._bar = Bar("training", "steps", trainer.total_steps, trainer.step)
        self._said, self._stepped = len(trainer.history), trainer.step

    def on_batch_end(self, trainer: Any) -> None:
        if trainer.step > self._stepped:  # not every batch completes a step
            self._stepped = trainer.step
            epochs = "" if trainer.epochs is None else f"/{trainer.epochs}"
            self._bar.step(f"epoch {trainer.epoch + 1}{epochs}, loss {trainer.last_loss:.4f}")

    def on_validation_end(self, trainer: Any, metrics: dict[str, float]) -> None:
        self._say(trainer)

    def on_epoch_end(self, trainer: Any) -> None:
        self._say(trainer)

    def _say(self, trainer: Any) -> None:
        for known in trainer.history[self._said :]:
            numbers = ", ".join(f"{name} {value:.4f}" for name, value in known.items() if isinstance(value, float) and name != "lr")
            self._bar.say(f"epoch {known['epoch'] + 1}, step {known['step']}: {numbers}")
        self._said = len(trainer.history)

    def on_fit_end(self, trainer: Any) -> None:
        self._bar.close()
