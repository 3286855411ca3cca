"""Base of callbacks: the hooks of a training loop and their calls; bases of those on a metric, and of those on optimizer steps."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from typing import Any

from tritensor.ground.errors import ArgumentError


class Callback:
    """Base of callbacks. A subclass gives the hooks that it wants; each gets the trainer, whose attributes say all that is known:

    `model`, `optimizer`, `scheduler`, `epoch` (from 0), `step` (optimizer steps done), `batch_index` (batches of this epoch done), `batch`,
    `outputs`, `loss` (the last ones), `losses` and `grad_norms` (of the `steps_read` steps that the host has read), `history` (a dict for every
    validation and epoch), `validated_model` (the one that validation runs; a hook may put another one there). A hook may set
    `trainer.should_stop = True`: the run ends after the present step.

    They are called in this order: on_fit_start, on_epoch_start, on_batch_start, on_after_forward, on_after_backward,
    on_before_optimizer_step, on_batch_end, on_validation_start, on_validation_end, on_epoch_end, on_exception, on_fit_end.

    An error that a hook raises ends the run, with a note that names callback, hook and step.

    `state_dict()` goes into checkpoints, `load_state_dict(state)` takes it from there.
    """

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Raise TypeError for a method on_... that is no hook: nothing would call it."""
        super().__init_subclass__(**kwargs)
        for name in vars(cls):
            if name.startswith("on_") and name not in HOOKS:
                near = difflib.get_close_matches(name, HOOKS, 3, 0.5)  # a misspelt hook is the usual cause
                raise TypeError(
                    f"{cls.__name__}: {name} is no hook of Callback, nothing would call it; name it {' or '.join(near or HOOKS)}"
                )

    def on_fit_start(self, trainer: Any) -> None:
        """Before anything is read; a run that goes on has taken up its state."""

    def on_epoch_start(self, trainer: Any) -> None:
        """Before an epoch, `trainer.epoch`; not again for one that a run goes on in."""

    def on_batch_start(self, trainer: Any, batch: Any) -> Any:
        """Before a batch, which is on the model's device. A returned batch, unless None, takes its place."""

    def on_after_forward(self, trainer: Any, outputs: Any, loss: Any) -> Any:
        """After the model and the loss. A returned loss, a tensor of one number, takes the loss's place unless it is None."""

    def on_after_backward(self, trainer: Any) -> None:
        """Gradients of this batch have been added, under a GradScaler in its scale."""

    def on_before_optimizer_step(self, trainer: Any) -> None:
        """Gradients are whole and unscaled, not yet clipped; they and the rates may be changed."""

    def on_batch_end(self, trainer: Any) -> None:
        """After a batch, and after the step where this batch completed one."""

    def on_validation_start(self, trainer: Any) -> None:
        """Before the validation loader is gone through."""

    def on_validation_end(self, trainer: Any, metrics: dict[str, float]) -> None:
        """After validation: {"val_loss": ..., "val_<metric>": ...}; numbers that are put in join the history."""

    def on_epoch_end(self, trainer: Any) -> None:
        """After an epoch and its validation: `trainer.history[-1]` is this epoch's."""

    def on_exception(self, trainer: Any, error: BaseException) -> None:
        """The run ends with an error, or is interrupted (KeyboardInterrupt, SystemExit); the error is raised afterwards."""

    def on_fit_end(self, trainer: Any) -> None:
        """At the end, after an error as well, and of every callback, whatever the others raise."""

    def state_dict(self) -> dict[str, Any]:
        """The state for a checkpoint: numbers, strings, tensors and nests of them."""
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take up the state of state_dict."""


HOOKS = tuple(name for name in vars(Callback) if name.startswith("on_"))


class MetricCallback(Callback):
    """Base of callbacks that look at a metric: `_check_metric(trainer, value)` is called after each validation, or each epoch where it is the training's.

    Args:
        monitor: "val_loss", "val_<metric>", "loss" (of training) or another name of the history.
        mode: "min" or "max", which is better.
    """

    def __init__(self, monitor: str, mode: str) -> None:
        if mode not in ("min", "max"):
            raise ArgumentError(f"{type(self).__name__}: mode is {mode!r}; give 'min' where less is better, 'max' where more is")
        self.monitor, self.mode = monitor, mode
        self.worst = math.inf if mode == "min" else -math.inf

    def on_validation_end(self, trainer: Any, metrics: dict[str, float]) -> None:
        if self.monitor in metrics:
            self._check_metric(trainer, metrics[self.monitor])

    def on_epoch_end(self, trainer: Any) -> None:
        known = trainer.history[-1]
        if self.monitor not in known:
            there = ", ".join(repr(k) for k, v in known.items() if isinstance(v, float))
            raise KeyError(
                f"{type(self).__name__}: the run has no metric {self.monitor!r}, it has {there}; name one, or give fit a validation loader"
            )
        if not self.monitor.startswith("val_"):  # metrics of validation have come by on_validation_end
            self._check_metric(trainer, known[self.monitor])

    def _check_metric(self, trainer: Any, value: float) -> None:
        raise NotImplementedError

    def _is_better(self, value: float, than: float, by: float = 0.0) -> bool:
        """NaN never is."""
        return value < than - by if self.mode == "min" else value > than + by


class StepCallback(Callback):
    """Base of callbacks that follow optimizer steps: `_after_step(trainer)` is called behind each batch that has completed one; not every batch does."""

    _seen = 0  # the last step that was followed

    def on_fit_start(self, trainer: Any) -> None:
        self._seen = trainer.step

    def on_batch_end(self, trainer: Any) -> None:
        if trainer.step > self._seen:
            self._seen = trainer.step
            self._after_step(trainer)

    def _after_step(self, trainer: Any) -> None:
        raise NotImplementedError


def call_hooks(callbacks: Sequence[Callback], hook: str, trainer: Any, *given: Any) -> None:
    """Call a hook of every callback."""
    for callback in callbacks:
        _call_hook(callback, hook, trainer, *given)


def pass_through_hooks(callbacks: Sequence[Callback], hook: str, trainer: Any, *given: Any) -> Any:
    """The last argument, after every callback has seen it and may have replaced it."""
    *others, value = given
    for callback in callbacks:
        new = _call_hook(callback, hook, trainer, *others, value)
        value = value if new is None else new
    return value


def end_callbacks(callbacks: Sequence[Callback], trainer: Any, error: BaseException | None) -> None:
    """Tell every callback that the run is over, whatever others raise; then raise the run's error, or the first of theirs."""
    for hook in ("on_fit_end",) if error is None else ("on_exception", "on_fit_end"):
        for callback in callbacks:
            try:
                _call_hook(callback, hook, trainer, *((error,) if hook == "on_exception" else ()))
            except Exception as another:  # every callback gets its end: files and bars are closed there
                if error is None:
                    error = another
                else:
                    error.add_note(f"and then {another!r} {another.__notes__[-1]}")
    if error is not None:
        raise error


def _call_hook(callback: Callback, hook: str, trainer: Any, *given: Any) -> Any:
    try:
        return getattr(callback, hook)(trainer, *given)
    except Exception as error:
        at = f"at step {trainer.step}, batch {trainer.batch_index} of epoch {trainer.epoch}"
        error.add_note(f"in {hook} of callback {type(callback).__name__}, {at}")
        raise
