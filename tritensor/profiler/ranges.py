"""Class record_function: a stretch of the program under the user's name, in profiles and in NVIDIA's tools."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from threading import get_ident
from typing import Any

from tritensor.ground import nvtx
from tritensor.ground.call_site import wrapper
from tritensor.profiler.recording import Recording, held, stack
from tritensor.profiler.records import RANGE, Detail, clock

recordings: list[Recording] = []  # those that are on, the innermost last


class record_function:
    """`with record_function("forward"):` or a decorator: a stretch of that name. `args` is shown beside it, in brackets.

    Without a profile it marks the stretch for `nsys profile` (see cuda.nvtx), and where no such tool runs it does nothing.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"record_function: the name is a {type(name).__name__}; give a str")
        self.name, self.args = name, args
        self._open: list[Any] = []

    def __enter__(self) -> record_function:
        nvtx.range_push(self.name)
        began = [(r, stack(2) if r.options.stack else None, held() if r.options.memory else None) for r in recordings]
        self._open.append((began, clock()))
        return self

    def __exit__(self, *exc: object) -> None:
        end = clock()
        began, start = self._open.pop()
        nvtx.range_pop()
        shown = self.name if self.args is None else f"{self.name} ({self.args})"
        for recording, where, before in began:
            if recording.on and start >= recording.started:  # a range that was open when a warm-up was cleared is not of the recording
                detail = Detail(None, None, before, held() if before else None, where) if where or before else None
                recording.records.append((RANGE, shown, start, end, get_ident(), 0, detail))

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.iscoroutinefunction(function):

            @wrapper
            @functools.wraps(function)
            async def awaited(*args: Any, **kwargs: Any) -> Any:
                with type(self)(self.name, self.args):
                    return await function(*args, **kwargs)

            return awaited

        @wrapper
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name, self.args):
                return function(*args, **kwargs)

        return inner
