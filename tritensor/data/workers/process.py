"""Starting worker processes: by which method, with what of this process's state, and without importing the program where nothing of it is needed."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing import context, popen_spawn_posix, process, reduction, resource_tracker, spawn, util
from typing import Any

from tritensor.data.workers.dataset_pickle import CannotBeSent, Parcel, main_is_a_file
from tritensor.data.workers.failures import GUARD
from tritensor.ground.call_site import spelled
from tritensor.multiprocessing.contexts import chosen_method

# One thread for each worker: as many as there are cores do their work beside one another. A library reads this when it is loaded.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def context_of(given: Any) -> Any:
    """The context that a DataLoader's `multiprocessing_context` means, or what the program has chosen; None where nobody has."""
    if given is None:
        method = chosen_method()
        if method is None and spelled("").startswith("torch"):  # a script that says torch expects what PyTorch does: Python's default
            method = multiprocessing.get_all_start_methods()[0]
        return None if method is None else multiprocessing.get_context(method)
    return multiprocessing.get_context(given) if isinstance(given, str) else given


def new_process(made: Any, target: Any, args: tuple[Any, ...], name: str) -> Any:
    """A process of a context, not started. One that is spawned imports the program only where its pickle speaks of it."""
    if made.get_start_method() == "forkserver":
        _preload(made)
    kind = _SpawnedWorker if type(made) is context.SpawnContext else made.Process
    return kind(target=target, args=args, name=name, daemon=True)


def _preload(made: Any) -> None:
    """Let the server that workers are forked from import what they need once, unless the program has said what it imports."""
    from multiprocessing import forkserver

    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    if getattr(server, "_preload_modules", None) == ["__main__"]:  # Python's own
        made.set_forkserver_preload(["__main__", "tritensor.data.workers.child"])


def refuse_inside() -> None:
    """Raise RuntimeError in a process that cannot have workers: one that is being spawned and imports the program, which makes a loader and has no
    guard, and one that is daemonic, as workers are themselves."""
    if getattr(process.current_process(), "_inheriting", False):
        raise RuntimeError(
            f"DataLoader: a worker process imports this program, which starts worker processes while it is imported; {GUARD}"
        )
    if process.current_process().daemon:
        raise RuntimeError(
            f"DataLoader: {process.current_process().name} is a daemonic process, which may not start processes: a loader inside a dataset's worker, or in "
            "a task of a Pool, takes num_workers=0"
        )


@contextlib.contextmanager
def quiet_start() -> Iterator[dict[str, str]]:
    """Children that are started inside begin with Ctrl-C held back, which is the parent's to answer, and with one thread each. Yields what was set in
    the environment for them."""
    added = {} if any(name in os.environ for name in _THREADS) else dict.fromkeys(_THREADS, "1")
    os.environ.update(added)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield added
    finally:
        for name in added:
            os.environ.pop(name, None)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Popen(popen_spawn_posix.Popen):
    """Starts one spawned worker."""

    def _launch(self, process_obj: Any) -> None:
        made: Any = self
        content, preparation = io.BytesIO(), io.BytesIO()
        context.set_spawning_popen(made)  # type: ignore[attr-defined]
        try:
            reduction.dump(process_obj, content)  # type: ignore[arg-type]
            prepared = spawn.get_preparation_data(process_obj.name)
            if not any(parcel.names_main for parcel in process_obj.parcels()):
                for name in ("init_main_from_name", "init_main_from_path"):
                    prepared.pop(name, None)
            elif not main_is_a_file():
                raise CannotBeSent(
                    "DataLoader: the dataset, collate_fn or worker_init_fn is defined in an interactive session or a notebook, which new processes "
                    "cannot import; put it in a file, or use multiprocessing_context='fork'"
                )
            reduction.dump(prepared, preparation)  # type: ignore[arg-type]
        finally:
            context.set_spawning_popen(None)  # type: ignore[attr-defined]
        tracker: Any = resource_tracker._resource_tracker  # type: ignore[attr-defined]
        settings: dict[str, Any] = {}
        if tracker._fd is not None:  # it runs already; nothing of a worker's own needs one
            settings["tracker_fd"] = resource_tracker.getfd()
            made._fds.append(settings["tracker_fd"])
        self._start(preparation.getvalue() + content.getvalue(), settings)

    def _start(self, content: bytes, settings: dict[str, Any]) -> None:
        """Python's own way from here on: the child reads `content` from a pipe, another one ends when the child does."""
        made: Any = self
        mine, theirs = os.pipe()
        try:
            read, write = os.pipe()
        except OSError:
            os.close(mine)
            os.close(theirs)
            raise
        try:
            command = spawn.get_command_line(pipe_handle=read, **settings)
            made._fds.extend([read, theirs])
            try:
                made.pid = util.spawnv_passfds(os.fsencode(spawn.get_executable()), command, made._fds)  # type: ignore[attr-defined]
            finally:
                os.close(theirs)
                os.close(read)
            made.sentinel = mine
            with open(write, "wb", closefd=False) as pipe:
                pipe.write(content)
        except BrokenPipeError:  # it has ended already; who waits for it will see
            pass
        finally:
            made.finalizer = util.Finalize(self, util.close_fds, [fd for fd in (write, mine) if fd is not None])  # type: ignore[attr-defined]


class _SpawnedWorker(context.SpawnProcess):
    """A spawned process that imports the program only where a parcel among its arguments speaks of it."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return _Popen(process_obj)

    def parcels(self) -> list[Parcel]:
        """Those among its arguments."""
        return [x for x in self._args if isinstance(x, Parcel)]  # type: ignore[attr-defined]
