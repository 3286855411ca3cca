"""Messages in the loader's process on a worker that raised, was killed, ended by itself, or does not answer."""

from __future__ import annotations

import errno
import pickle
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from tritensor.ground.errors import OutOfMemoryError
from tritensor.multiprocessing.spawn import signal_name
from tritensor.tensor.shared_memory import NO_DESCRIPTOR, descriptor_usage

_MAX_SHOWN = 8  # indices that a message names


class _UnquotedMessage(str):
    """A message that KeyError prints as it is, not quoted."""

    def __repr__(self) -> str:
        return str(self)


class WorkerError(NamedTuple):
    """An error of a worker in a form that can be sent: its class, its traceback as text, and `where` it happened."""

    kind: type[BaseException]
    text: str
    where: str

    def reraise(self) -> NoReturn:
        """Raise it here: the same class, where that takes a message alone, else RuntimeError."""
        message = _UnquotedMessage(f"Caught {self.kind.__name__} {self.where}.\nOriginal {self.text}")
        if self.kind is not KeyError:
            message = str(message)  # type: ignore[assignment]
        kind = RuntimeError if issubclass(self.kind, StopIteration) else self.kind  # that would end the loop without a word
        try:
            error = kind(message)
        except Exception:  # a class that is made of something else than a message
            error = RuntimeError(message)
        try:
            raise error
        finally:
            del error  # else this frame and the error hold one another, and with them the iterator


def capture_error(error: BaseException, where: str) -> WorkerError:
    """An error that is being handled, to be sent; of a class that the loader's process cannot import it takes the nearest base that can be."""
    kind = next(cls for cls in type(error).__mro__ if _can_pickle(cls))
    return WorkerError(kind, "".join(traceback.format_exception(error)), where)


def _can_pickle(cls: type) -> bool:
    try:
        return pickle.loads(pickle.dumps(cls)) is cls
    except (pickle.PicklingError, AttributeError, ImportError, TypeError):
        return False


def describe_samples(indices: Any) -> str:
    """ "the samples [4, 5, ...]", the first of many; "dataset[4]" for one index."""
    if not isinstance(indices, list | tuple):
        return f"dataset[{indices!r}]"
    first = ", ".join(map(repr, indices[:_MAX_SHOWN]))
    return f"the samples [{first}{', ...' if len(indices) > _MAX_SHOWN else ''}]"


def describe_exit(exit_code: int | None) -> str:
    """ "was killed by signal SIGKILL", with what that means."""
    if exit_code is None:
        return "has closed its end and still runs"
    if exit_code >= 0:
        return f"ended by itself with exit code {exit_code}"
    meanings: dict[int, str] = {
        signal.SIGKILL: "; the kernel does that to the process that holds most memory when there is none left (dmesg says so): use fewer workers, a "
        "smaller batch_size or prefetch_factor",
        signal.SIGBUS: "; that happens when memory that was promised is not there: a file that was cut while it was mapped, or a full disk or /dev/shm",
        signal.SIGSEGV: "; that is a bug in machine code that the dataset calls: python -X faulthandler shows where",
    }
    return f"was killed by signal {signal_name(exit_code)}{meanings.get(-exit_code, '')}"


def describe_failed_start(exit_code: int | None, method: str) -> str:
    """The message for a worker that ended before it could read the dataset."""
    how = f"{describe_exit(exit_code)} before it had started; what it said stands above"
    main: Any = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    if method == "fork" or exit_code is None or exit_code < 0 or file is None:
        return how
    if not _has_main_guard(file):
        return f"{how}: it imports {Path(file).name}, which has no `if __name__ == '__main__':` and so runs the whole program again; {GUARD_HINT}"
    return f"{how}: it imports {Path(file).name} and the modules of the dataset, and one of them raises"


def start_error(error: OSError, rank: int, count: int) -> Exception | None:
    """The error where the system starts no further worker; None for an error of another kind."""
    if error.errno in NO_DESCRIPTOR:
        held, mend = descriptor_usage()
        return OutOfMemoryError(
            f"DataLoader: no file descriptor is left to start worker {rank} of {count} ({held}): each takes five; {mend}, or use fewer workers"
        )
    if error.errno in (errno.EAGAIN, errno.ENOMEM):
        return OutOfMemoryError(
            f"DataLoader: the system starts no process for worker {rank} of {count}: {error.strerror}; use fewer workers, or raise the limits of processes "
            "and memory (ulimit -u, ulimit -v, the control group's pids.max)"
        )
    return None


GUARD_HINT = "put what the program does under `if __name__ == '__main__':`, or use num_workers=0 or multiprocessing_context='fork'"


def _has_main_guard(file: str) -> bool:
    try:
        return "__name__" in Path(file).read_text(errors="replace")
    except OSError:  # a program that is no file any more: nothing is claimed of it
        return True
