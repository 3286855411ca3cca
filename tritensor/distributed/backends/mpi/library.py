"""mpi4py: loaded when it is needed, and left in order when the process ends, also where another process is lost."""

from __future__ import annotations

import atexit
import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tritensor.ground.errors import DistBackendError, RankFailedError
from tritensor.ground.extras import extra
from tritensor.ground.process import locks

TO_PASS_ON = 0.3  # seconds: MPICH's mpiexec drops the words of an aborted rank that it has not passed on yet

_ended: list[Callable[[], None]] = []  # what must stop before MPI does
_lost = False  # another process died or hangs: MPI_Finalize would wait for it
_loaded: Any = None
_pid = 0  # of the process that has loaded it
_loading = locks.rlock()  # MPI is started once, whichever threads ask for it first


def mpi(who: str, seconds: float = 1800.0) -> Any:
    """The module mpi4py.MPI, for `who`. The first call starts MPI, which waits for all processes that were started together.

    Raises ModuleNotFoundError where mpi4py is not installed, DistBackendError where it finds no MPI library or MPI lacks threads,
    RankFailedError where another process does not start MPI within `seconds`.
    """
    global _loaded, _pid
    if _loaded is None:
        with _loading:
            if _loaded is None:
                found = _load(who, seconds)
                _pid, _loaded = os.getpid(), found
    return _loaded


def require(who: str) -> None:
    """Raise ModuleNotFoundError, which says what to install, where mpi4py is not installed. MPI is not started."""
    extra("mpi4py", who, "mpi4py", "tritensor[mpi]")


def is_loaded() -> bool:
    """Whether MPI runs in this process, by us or by the program itself."""
    module = sys.modules.get("mpi4py.MPI")
    return _loaded is not None or (module is not None and module.Is_initialized())


def is_inherited() -> bool:
    """Whether this process was forked from the one that MPI belongs to."""
    return _loaded is not None and _pid != os.getpid()


def _load(who: str, seconds: float) -> Any:
    settings = extra("mpi4py", who, "mpi4py", "tritensor[mpi]").rc
    settings.initialize = settings.finalize = False  # `_start` and `_end` do it, which do not wait for ever
    try:
        MPI = extra("mpi4py.MPI", who, "mpi4py", "tritensor[mpi]")
    except (ImportError, RuntimeError) as error:
        raise DistBackendError(
            f"{who}: mpi4py is installed and finds no MPI library ({error}); pip install 'tritensor[mpi]' brings MPICH"
        ) from error
    if not MPI.Is_initialized():
        _start(MPI, who, seconds)
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        raise DistBackendError(
            f"{who}: MPI was started without threads (level {MPI.Query_thread()}), and calls that run beside the program need them; "
            "leave mpi4py.rc.thread_level at 'multiple'"
        )
    # MPICH's mpiexec tells of a process that has died by a signal that ends who does not know it; the peers are watched here anyway.
    if signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL and threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    atexit.register(_end)
    return MPI


def _start(MPI: Any, who: str, seconds: float) -> None:
    """MPI_Init_thread, called without Python's lock (mpi4py holds it) and beside this thread: it waits for all other processes."""
    provided = ctypes.c_int()
    begin = ctypes.CDLL(MPI.__file__).MPI_Init_thread
    thread = threading.Thread(target=begin, args=(None, None, MPI.THREAD_MULTIPLE, ctypes.byref(provided)), daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        mark_lost()
        raise RankFailedError(
            f"{who}: not all processes that were started together have started MPI within {seconds:g} s; does each of them call init_process_group?"
        )


def call_before_end(stop: Callable[[], None]) -> None:
    """Call `stop` when the process ends, before MPI does."""
    _ended.append(stop)


def mark_lost() -> None:
    """Another process is lost: this one leaves without waiting for it."""
    global _lost
    _lost = True


def is_lost() -> bool:
    """Whether another process is lost."""
    return _lost


def _end() -> None:
    if is_inherited():
        return
    for stop in _ended:
        stop()
    MPI = _loaded
    if not _lost and MPI is not None and not MPI.Is_finalized():
        MPI.Finalize()


def abort_on_errors() -> None:
    """An error that nobody catches ends all processes, and not this one alone, for which the others would wait.

    The launcher does that itself, and shows the error once; this is for programs that mpiexec or srun starts.
    """
    if os.environ.get("TRITENSOR_LAUNCH") or getattr(sys.excepthook, "aborts", False):
        return
    before = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        before(kind, error, trace)
        if _loaded is not None and not is_inherited() and not _loaded.Is_finalized():
            # MPI says so itself, as its last words, which mpiexec may drop.
            print(f"tritensor: process {_loaded.COMM_WORLD.Get_rank()} ends all processes by MPI_Abort", file=sys.stderr)
            sys.stdout.flush()
            sys.stderr.flush()
            time.sleep(TO_PASS_ON)
            _loaded.COMM_WORLD.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)

    hook.aborts = True  # type: ignore[attr-defined]
    sys.excepthook = hook
