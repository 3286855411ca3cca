"""Starts of worker processes: the method, the environment, and spawning without importing the program where nothing of it is needed."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
from collections.abc import Iterator
from multiprocessing import context, popen_spawn_posix, process, reduction, resource_tracker, spawn, util
from typing import Any

from tritensor.data.workers.dataset_pickle import CannotBeSent, DatasetPickle, main_is_a_file
from tritensor.data.workers.failures import GUARD_HINT
from tritensor.ground.call_site import qualified_name
from tritensor.multiprocessing.contexts import chosen_method

# One thread for each worker: as many as there are cores do their work beside one another. A library reads this when it is loaded.
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def choose_context(given: Any) -> Any:
    """The context of a DataLoader's `multiprocessing_context`, or of the method that the program has chosen; None where nobody has."""
    if given is None:
        method = chosen_method()
        # a script that says torch expects PyTorch's choice: Python's default
        if method is None and qualified_name("").startswith("torch"):
            method = multiprocessing.get_all_start_methods()[0]
        return None if method is None else multiprocessing.get_context(method)
    return multiprocessing.get_context(given) if isinstance(given, str) else given


def new_process(mp_context: Any, target: Any, args: tuple[Any, ...], name: str) -> Any:
    """A process of a context, not started. One that is spawned imports the program only where its pickle speaks of it."""
    if mp_context.get_start_method() == "forkserver":
        _preload(mp_context)
    kind = _SpawnedWorker if type(mp_context) is context.SpawnContext else mp_context.Process
    return kind(target=target, args=args, name=name, daemon=True)


def _preload(mp_context: Any) -> None:
    """Let the server that workers are forked from import their modules once, unless the program has said what it imports."""
    from multiprocessing import forkserver

    server: Any = forkserver._forkserver  # type: ignore[attr-defined]
    if getattr(server, "_preload_modules", None) == ["__main__"]:  # Python's own
        mp_context.set_forkserver_preload(["__main__", "tritensor.data.workers.child"])


def refuse_nested_workers() -> None:
    """Raise RuntimeError in a process that cannot have workers: one that is being spawned and imports the program, which makes a loader and has no
    guard, and one that is daemonic, as workers are themselves."""
    if getattr(process.current_process(), "_inheriting", False):
        raise RuntimeError(
            f"DataLoader: a worker process imports this program, which starts worker processes while it is imported; {GUARD_HINT}"
        )
    if process.current_process().daemon:
        raise RuntimeError(
            f"DataLoader: {process.current_process().name} is a daemonic process, which may not start processes: a loader inside a dataset's worker, or in "
            "a task of a Pool, takes num_workers=0"
        )


@contextlib.contextmanager
def child_environment() -> Iterator[dict[str, str]]:
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
        popen: Any = self
        content, preparation = io.BytesIO(), io.BytesIO()
        context.set_spawning_popen(popen)  # type: ignore[attr-defined]
        try:
            reduction.dump(process_obj, content)  # type: ignore[arg-type]
            prepared = spawn.get_preparation_data(process_obj.name)
            if not any(dataset_pickle.names_main for dataset_pickle in process_obj.dataset_pickles()):
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
            popen._fds.append(settings["tracker_fd"])
        self._start(preparation.getvalue() + content.getvalue(), settings)

    def _start(self, content: bytes, settings: dict[str, Any]) -> None:
        """Start the child as Python does: it reads `content` from a pipe; another pipe ends when it does."""
        popen: Any = self
        parent_end, child_end = os.pipe()
        try:
            read, write = os.pipe()
        except OSError:
            os.close(parent_end)
            os.close(child_end)
            raise
        try:
            command = spawn.get_command_line(pipe_handle=read, **settings)
            popen._fds.extend([read, child_end])
            try:
                popen.pid = util.spawnv_passfds(os.fsencode(spawn.get_executable()), command, popen._fds)  # type: ignore[attr-defined]
            finally:
                os.close(child_end)
                os.close(read)
            popen.sentinel = parent_end
            with open(write, "wb", closefd=False) as pipe:
                pipe.write(content)
        except BrokenPipeError:  # it has ended already; who waits for it will see
            pass
        finally:
            popen.finalizer = util.Finalize(self, util.close_fds, [fd for fd in (write, parent_end) if fd is not None])  # type: ignore[attr-defined]


class _SpawnedWorker(context.SpawnProcess):
    """A spawned process that imports the program only where its dataset pickle names __main__."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return _Popen(process_obj)

    def dataset_pickles(self) -> list[DatasetPickle]:
        """The dataset pickles among its arguments."""
        return [x for x in self._args if isinstance(x, DatasetPickle)]  # type: ignore[attr-defined]
