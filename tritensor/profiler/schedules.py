"""Schedules of profiles: ProfilerAction, schedule; and tensorboard_trace_handler, which writes finished traces."""

from __future__ import annotations

import enum
import os
import socket
import time
import warnings
from collections.abc import Callable
from typing import Any

from tritensor.cuda import availability


class ProfilerActivity(enum.Enum):
    """The kinds of devices that a profile can record. CPU and CUDA are here."""

    CPU = 0
    XPU = 1
    CUDA = 2
    MTIA = 3
    PrivateUse1 = 4


class ProfilerAction(enum.Enum):
    """The action of a profile in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def supported_activities() -> set[ProfilerActivity]:
    """CPU, and CUDA where there is a GPU or it is emulated."""
    return {ProfilerActivity.CPU, ProfilerActivity.CUDA} if availability.gpus() else {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """False: no library of PyTorch's is in use. The profiler is there nevertheless."""
    return False


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """The action of a profile in each step, by its number, for `profile(schedule=...)`: after `skip_first` steps nothing in `wait` steps, then
    `warmup` steps that run as if they were recorded and are thrown away, then `active` recorded ones; again, `repeat` times (0: until the end).

    `skip_first_wait` leaves out the waiting of the first cycle. Raises ValueError (AssertionError as well, which is PyTorch's) for numbers that make no sense.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise ScheduleError(
            f"schedule: wait={wait}, warmup={warmup}, active={active}, repeat={repeat}, skip_first={skip_first}: active must be 1 or more, the others 0 or more"
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise ScheduleError(f"schedule: step {step}; steps are counted from 0")
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        if repeat > 0 and step // length >= repeat:
            return ProfilerAction.NONE
        position = step % length
        if position < wait:
            return ProfilerAction.NONE
        if position < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if position < length - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


class ScheduleError(ValueError, AssertionError):
    """Numbers of a schedule that make no sense."""


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False, use_python_export: bool = False
) -> Callable[[Any], None]:
    """For `profile(on_trace_ready=...)`: write each trace to `<dir_name>/<worker_name>.<nanoseconds>.pt.trace.json`, where tensorboard's plug-in looks.

    Args:
        dir_name: the folder, made where it is missing. Raises RuntimeError where it cannot be.
        worker_name: unique for each process that writes there; None: host and process id.
        use_gzip: compress, to a name that ends in .gz.
        use_python_export: accepted; there is one way of writing.
    """

    def handler(prof: Any) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"tensorboard_trace_handler: cannot make the folder {dir_name!r}: {error}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        prof.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"))

    return handler
