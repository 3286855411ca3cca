"""torch.profiler: record_function marks stretches for NVIDIA's tools; a profile itself is not here, and says what shows times."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any, NoReturn

from tritensor.cuda import nvtx
from tritensor.paths.taught import lesson

__all__ = [
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class record_function:
    """`with record_function("forward"):` or a decorator: a stretch of that name in what `nsys profile` shows. Where no such tool runs it does nothing."""

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name, self.args = name, args

    def __enter__(self) -> record_function:
        nvtx.range_push(self.name)
        return self

    def __exit__(self, *exc: object) -> None:
        nvtx.range_pop()

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inner(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.name, self.args):
                return function(*args, **kwargs)

        return inner


class ProfilerActivity(enum.Enum):
    """What PyTorch's profiler looks at."""

    CPU, XPU, CUDA, MTIA, PrivateUse1 = range(5)


class ProfilerAction(enum.Enum):
    """What PyTorch's profiler does in a step."""

    NONE, WARMUP, RECORD, RECORD_AND_SAVE = range(4)


def supported_activities() -> set[ProfilerActivity]:
    """None: there is no profiler."""
    return set()


def kineto_available() -> bool:
    """False: there is no profiler."""
    return False


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(f"profiler.{name}: not in tritensor: {lesson('profiler', name)}")


class profile:
    """Raises NotImplementedError, which says what shows times."""

    def __new__(cls, *args: Any, **kwargs: Any) -> profile:
        _refuse("profile")


class emit_nvtx:
    """Raises NotImplementedError, which says what shows times."""

    def __new__(cls, *args: Any, **kwargs: Any) -> emit_nvtx:
        _refuse("emit_nvtx")


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """What a profile would do in each step, by its number: nothing in `wait`, then warm up, record `active`, again and again."""
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        at = step - skip_first + (wait if skip_first_wait else 0)
        if step < skip_first or (repeat and at // length >= repeat):
            return ProfilerAction.NONE
        place = at % length
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if place < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> NoReturn:
    """Raises NotImplementedError, which says what shows times."""
    _refuse("tensorboard_trace_handler")
