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
from tritensor.cuda.runtime import active
from tritensor.cuda.virtual.recording_runtime import RecordingRuntime
from tritensor.ground.errors import LaunchError

Job = tuple[str, Callable[[], object]]


Row = tuple[bytes, bytes, bytes]  # a kernel as a pack holds it: key, meaning, encoded cubin


class Warmed(NamedTuple):
    """Kernels that are ready now, what did not compile (job and message), jobs that raised, seconds it took, and whether it was stopped before the end.

    A job that raises is no failure here: on a device without memory a program reads zeros, and may stumble over them.
    """

    kernels: int
    failures: list[str]
    stumbled: list[str]
    seconds: float
    stopped: bool = False


class _Done(NamedTuple):
    """What became of a job: its kernels, those that did not compile, what it raised, and the kernels' rows where they are wanted."""

    kernels: int
    failures: list[str]
    stumbled: str | None
    rows: list[Row]


_jobs: Sequence[Job] = ()
_recorder: Any = None
_arch = 90
_wanted = False
_given: set[bytes] = set()  # keys of the rows that this worker has given


def _enter(arch: int, wanted: bool) -> None:
    global _recorder, _arch, _wanted
    _recorder, _arch, _wanted = RecordingRuntime((arch // 10, arch % 10)), arch, wanted
    active.use(_recorder)


def _one(i: int) -> _Done:
    """Record one job and compile what is new."""
    name, run = _jobs[i]
    stumbled = None
    try:
        run()
    except Exception as error:  # whatever it is: the launches before it are worth compiling
        stumbled = f"{name}: {type(error).__name__}: {error}"
    failures, rows = [], []
    specs = list(_recorder.launches)
    _recorder.launches.clear()
    for spec in specs:
        try:
            cubin_cache.find_cubin(spec, _arch)
            if _wanted and (key := cubin_cache.keys(spec, _arch)[0]) not in _given:
                _given.add(key)
                rows.append(cubin_cache.pack_row(spec, _arch))
        except LaunchError as error:
            failures.append(f"{name}: {error}")
    return _Done(len(specs), failures, stumbled, rows)


def warm(
    jobs: Sequence[Job],
    arch: int,
    processes: int | None = None,
    progress: bool = True,
    take: Callable[[list[Row]], object] | None = None,
    seconds: float | None = None,
) -> Warmed:
    """Record every job and compile its kernels for compute capability `arch` (90 for an H100), in the order of the jobs.

    `take` is given the kernels, as rows of a pack, as they come; after `seconds` it stops. Needs a process without TRITON_INTERPRET, and one that has not
    yet used a GPU: the workers are forked.
    """
    global _jobs
    _jobs = jobs
    start = time.perf_counter()
    kernels, failures, stumbled, stopped = 0, [], [], False
    context = multiprocessing.get_context("fork")
    with context.Pool(processes or os.cpu_count(), _enter, (arch, take is not None)) as pool, _line(progress) as say:
        for done, job in enumerate(pool.imap(_one, range(len(jobs))), 1):
            kernels += job.kernels
            failures += job.failures
            stumbled += [job.stumbled] if job.stumbled else []
            if take is not None:
                take(job.rows)
            say(f"compiling for sm_{arch}: {done} of {len(jobs)} jobs, {kernels} kernels, {time.perf_counter() - start:.0f} s")
            if seconds is not None and time.perf_counter() - start > seconds and done < len(jobs):
                stopped = True
                break
    return Warmed(kernels, failures, stumbled, time.perf_counter() - start, stopped)


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
