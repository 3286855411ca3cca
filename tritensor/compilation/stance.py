"""Stances: what the program says to all compiled functions, such as to run as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tritensor.compilation.backends import is_eager
from tritensor.ground.call_site import wrapper
from tritensor.ground.errors import ArgumentError

STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile")
_now: tuple[str, bool] = ("default", False)  # the stance, and whether functions run as they are


def forces_eager() -> bool:
    """Whether compiled functions run as they are."""
    return _now[1]


class set_stance:
    """Say how all compiled functions run from now on; as a context manager or decorator, until its end.

    "force_eager": as they are. The other stances of PyTorch are accepted and mean "default", as nothing here is recompiled: "eager_on_recompile",
    "fail_on_recompile", "eager_then_compile", "aot_eager_then_compile". force_backend: with "default", a backend for all of them.
    Raises ValueError for others, and for a backend beside another stance.
    """

    def __init__(self, stance: str = "default", *, skip_guard_eval_unsafe: bool = False, force_backend: Any = None) -> None:
        global _now
        if stance not in STANCES:
            raise ArgumentError(f"set_stance: {stance!r} is not known; give one of {', '.join(map(repr, STANCES))}")
        if force_backend is not None and stance != "default":
            raise ArgumentError("set_stance: non-default stance cannot have force_backend set")
        self.stance, self.force_backend = stance, force_backend
        self._said = stance, stance == "force_eager" or (force_backend is not None and is_eager(force_backend))
        self._found, _now = _now, self._said

    def __enter__(self) -> None:
        global _now
        _now = self._said

    def __exit__(self, *error: object) -> None:
        global _now
        _now = self._found

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        global _now
        _now = self._found  # decorating is not setting

        @wrapper
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with set_stance(self.stance, force_backend=self.force_backend):
                return function(*args, **kwargs)

        return inner
