"""Calls of callbacks' hooks, in order; an error is noted with its hook and step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.training.callbacks.base import Callback


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
