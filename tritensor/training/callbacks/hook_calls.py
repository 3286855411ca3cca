"""Calling the hooks of callbacks, in order; what they raise says where it comes from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tritensor.training.callbacks.base import Callback


def call(callbacks: Sequence[Callback], hook: str, trainer: Any, *given: Any) -> None:
    """Call a hook of every callback."""
    for callback in callbacks:
        _call_one(callback, hook, trainer, *given)


def changed(callbacks: Sequence[Callback], hook: str, trainer: Any, *given: Any) -> Any:
    """The last of what is given, after every callback has seen it and changed it where it wanted."""
    *others, value = given
    for callback in callbacks:
        new = _call_one(callback, hook, trainer, *others, value)
        value = value if new is None else new
    return value


def end(callbacks: Sequence[Callback], trainer: Any, error: BaseException | None) -> None:
    """Tell every callback that the run is over, whatever others raise; then raise the run's error, or the first of theirs."""
    for hook in ("on_fit_end",) if error is None else ("on_exception", "on_fit_end"):
        for callback in callbacks:
            try:
                _call_one(callback, hook, trainer, *((error,) if hook == "on_exception" else ()))
            except Exception as another:
                if error is None:
                    error = another
                else:
                    error.add_note(f"and then {another!r} {another.__notes__[-1]}")
    if error is not None:
        raise error


def _call_one(callback: Callback, hook: str, trainer: Any, *given: Any) -> Any:
    try:
        return getattr(callback, hook)(trainer, *given)
    except Exception as error:
        at = f"at step {trainer.step}, batch {trainer.batch_index} of epoch {trainer.epoch}"
        error.add_note(f"in {hook} of callback {type(callback).__name__}, {at}")
        raise
