"""Compile ahead: what programs would launch is recorded without a device, and one process per core compiles it into the disk cache."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tritensor.cuda.compiler import cubin_cache
from tritensor.cuda.runtime import serving
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.errors import LaunchError

Job = tuple[str, Callable[[], object]]


class Warmed(NamedTuple):
    """Kernels that are ready now, what did not compile (job and message), jobs that raised, and seconds it took.

    A job that raises is no failure here: on a device without memory a program reads zeros, and may stumble over them.
    """

    kernels: int
    failures: list[str]
    stumbled: list[str]
    seconds: float


_jobs: Sequence[Job] = ()
_recorder: Any = None
_arch = 90


def _enter(arch: int) -> None:
    global _recorder, _arch
    _recorder, _arch = RecordingRuntime((arch // 10, arch % 10)), arch
    serving.use(_recorder)


def _one(i: int) -> tuple[int, list[str], str | None]:
    """Record one job and compile what is new: kernels, failures, what the job raised."""
    name, run = _jobs[i]
    stumbled = None
    try:
        run()
    except Exception as error:  # whatever it is: the launches before it are worth compiling
        stumbled = f"{name}: {type(error).__name__}: {error}"
    failures = []
    specs = list(_recorder.launches)
    _recorder.launches.clear()
    for spec in specs:
        try:
            cubin_cache.find(spec, _arch)
        except LaunchError as error:
            failures.append(f"{name}: {error}")
    return len(specs), failures, stumbled


def warm(jobs: Sequence[Job], arch: int, processes: int | None = None, progress: bool = True) -> Warmed:
    """Record every job and compile its kernels for compute capability `arch` (90 for an H100).

    Needs a process without TRITON_INTERPRET, and one that has not yet used a GPU: the workers are forked.
    """
    global _jobs
    _jobs = jobs
    start = time.perf_counter()
    kernels, failures, stumbled = 0, [], []
    with multiprocessing.get_context("fork").Pool(processes or os.cpu_count(), _enter, (arch,)) as pool, _line(progress) as say:
        for done, (n, wrong, raised) in enumerate(pool.imap_unordered(_one, range(len(jobs))), 1):
            kernels += n
            failures += wrong
            stumbled += [raised] if raised else []
            say(f"compiling for sm_{arch}: {done} of {len(jobs)} jobs, {kernels} kernels, {time.perf_counter() - start:.0f} s")
    return Warmed(kernels, failures, stumbled, time.perf_counter() - start)


@contextlib.contextmanager
def _line(progress: bool) -> Any:
    """One line that is written over; where the output is no terminal, a line every ten seconds."""
    last = [0.0, ""]

    def say(text: str) -> None:
        last[1] = text
        if not progress:
            return
        if sys.stderr.isatty():
            print("\r" + text, end="", file=sys.stderr, flush=True)
        elif time.perf_counter() - last[0] > 10:
            last[0] = time.perf_counter()
            print(text, file=sys.stderr, flush=True)

    yield say
    if progress and last[1]:
        print(("\r" if sys.stderr.isatty() else "") + last[1], file=sys.stderr, flush=True)
