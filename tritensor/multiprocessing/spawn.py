"""Processes that run one function each: started together, ended together when one fails, whose error is raised in the process that waits."""

from __future__ import annotations

import ctypes
import multiprocessing
import multiprocessing.connection
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

_MAX_TEXT = 32_000  # characters of a traceback that are passed on; a pipe takes 64 KiB before anyone reads
_GRACE_SECONDS = 30.0  # seconds from SIGTERM to SIGKILL
_PR_SET_PDEATHSIG = 1


class ProcessException(Exception):
    """A process that was started by `spawn` has failed: `error_index` says which, `error_pid` its process id."""

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised; the message holds its traceback."""


class ProcessExitedException(ProcessException):
    """The process ended by a signal, or by an exit code other than 0: `exit_code` (minus the signal's number), `signal_name`."""

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def end_with_parent(number: int) -> None:
    """Let the system send this process a signal when the thread that started it ends. Linux."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def signal_name(exit_code: int) -> str:
    """ "SIGKILL" for -9; "number 40" for one without a name."""
    try:
        return signal.Signals(-exit_code).name
    except ValueError:
        return f"number {-exit_code}"


def can_bind(method: str) -> bool:
    """Whether processes that are started now can end with the thread that starts them: it is the main one, whose end is the program's."""
    return method != "forkserver" and threading.current_thread() is threading.main_thread()


def _run(fn: Callable[..., Any], i: int, args: tuple[Any, ...], errors: Any, bound: bool) -> None:
    if bound:
        # SIGINT, so that `finally` blocks and exit handlers run.
        end_with_parent(signal.SIGINT)
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        return  # the parent has it as well, and says so
    except Exception:
        text = traceback.format_exc()
        errors.send(text if len(text) <= _MAX_TEXT else f"... {len(text) - _MAX_TEXT} characters left out\n{text[-_MAX_TEXT:]}")
        sys.exit(1)


class ProcessContext:
    """Processes under way, as `spawn(..., join=False)` returns them: `processes`, `pids()`, `join()`."""

    def __init__(self, processes: Sequence[Any], error_files: Sequence[Any]) -> None:
        self.processes, self.error_files = list(processes), list(error_files)
        self.sentinels = {process.sentinel: i for i, process in enumerate(self.processes)}

    def pids(self) -> list[int]:
        """Their process ids."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until one fails or all have ended; True when all have.

        Args:
            timeout: seconds to wait at most; None for as long as it takes.
            grace_period: when one fails, the seconds that the others get to end by themselves, before SIGTERM and, as many later, SIGKILL.

        Raises:
            ProcessRaisedException: the function raised in one of them; the others have been ended.
            ProcessExitedException: one was killed, or ended by an exit code other than 0.
        """
        if not self.sentinels:
            return True
        failed = None
        for sentinel in multiprocessing.connection.wait(list(self.sentinels), timeout=timeout):
            i = self.sentinels.pop(sentinel)  # type: ignore[arg-type]
            self.processes[i].join()
            if self.processes[i].exitcode and failed is None:
                failed = i
        if failed is None:
            return not self.sentinels
        self._end(grace_period)
        self._raise(failed)
        return False

    def _end(self, grace_period: float | None) -> None:
        if grace_period is not None:
            self._wait(grace_period)
        # SIGTERM first: handlers may remove files and free shared memory.
        for end in ("terminate", "kill"):
            for process in self.processes:
                if process.is_alive():
                    getattr(process, end)()
            self._wait(_GRACE_SECONDS if grace_period is None else grace_period)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, end - time.monotonic()))

    def _raise(self, i: int) -> None:
        process, errors = self.processes[i], self.error_files[i]
        try:
            text = errors.recv() if errors.poll() else ""
        except EOFError:  # it ended without a word
            text = ""
        if text:
            raise ProcessRaisedException(f"\n\n-- Process {i} terminated with the following error:\n{text}", i, process.pid)
        code = process.exitcode
        # Minus the signal's number, by multiprocessing's convention.
        if code < 0:
            name = signal_name(code)
            raise ProcessExitedException(f"process {i} terminated with signal {name}", i, process.pid, code, name)
        raise ProcessExitedException(f"process {i} terminated with exit code {code}", i, process.pid, code)


class SpawnContext(ProcessContext):
    """PyTorch's older name of ProcessContext."""

    def __init__(self, processes: Sequence[Any], error_files: Sequence[Any]) -> None:
        warnings.warn("SpawnContext is an older name; use ProcessContext", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Run fn(i, *args) in `nprocs` new processes, i from 0 on.

    Args:
        fn: a function of a module, which the new processes import; with `start_method="fork"` any function.
        args: passed on; tensors by shared memory.
        join: wait for all of them, else return a ProcessContext.
        daemon: whether they end with this process by Python's own rules, and cannot have processes themselves.
        start_method: "spawn", "fork" or "forkserver".

    Raises:
        ProcessRaisedException, ProcessExitedException: one of them failed; the others have been ended. See ProcessContext.join.
    """
    made: Any = multiprocessing.get_context(start_method)
    bound = can_bind(start_method)
    processes, errors = [], []
    try:
        for i in range(nprocs):
            read, write = made.Pipe(duplex=False)
            process = made.Process(target=_run, args=(fn, i, args, write, bound), daemon=daemon)
            process.start()
            write.close()  # this process's end: when the other's closes, reading ends
            processes.append(process)
            errors.append(read)
    # Without this, processes that were started before the failure would run on as orphans.
    except BaseException:
        for process in processes:
            process.terminate()
        raise
    context = ProcessContext(processes, errors)
    if not join:
        return context
    while not context.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False, start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Run fn(i, *args) in `nprocs` spawned processes, i from 0 on, and wait for them, or with join=False return a ProcessContext.

    `start_method` is "spawn" whatever is given, as in PyTorch; `start_processes` takes others. The program's file is imported by the new
    processes: what starts them stands under `if __name__ == "__main__":`. Raises as start_processes does.
    """
    if start_method != "spawn":
        warnings.warn(
            f"spawn: start_method={start_method!r} is not heeded, processes are spawned; use tritensor.multiprocessing.start_processes",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, "spawn")
