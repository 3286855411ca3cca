"""Python's multiprocessing, whose queues, pipes, pools and arguments carry tensors by shared memory: what one process writes the others read.

Everything of `multiprocessing` is here under its name. Importing this module is enough for `multiprocessing`'s own queues as well. A tensor that is
sent moves to shared memory with all tensors that lie in its memory, as `share_memory_()` does; only its address travels.
"""

from __future__ import annotations

import multiprocessing as _python
from typing import TYPE_CHECKING, Any

from tritensor.multiprocessing import contexts, reductions
from tritensor.multiprocessing.spawn import ProcessContext as ProcessContext
from tritensor.multiprocessing.spawn import ProcessException as ProcessException
from tritensor.multiprocessing.spawn import ProcessExitedException as ProcessExitedException
from tritensor.multiprocessing.spawn import ProcessRaisedException as ProcessRaisedException
from tritensor.multiprocessing.spawn import SpawnContext as SpawnContext
from tritensor.multiprocessing.spawn import spawn as spawn
from tritensor.multiprocessing.spawn import start_processes as start_processes
from tritensor.tensor.shared_memory import STRATEGIES, set_strategy, strategy

if TYPE_CHECKING:
    from multiprocessing import *  # noqa: F403

_OWN = ["set_sharing_strategy", "get_sharing_strategy", "get_all_sharing_strategies", "spawn", "start_processes"]
_OWN += ["ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException"]
__all__ = [*_OWN, *_python.__all__]
globals().update({name: getattr(_python, name) for name in _python.__all__})
set_start_method = contexts.set_start_method
reductions.init_reductions()


def set_sharing_strategy(new_strategy: str) -> None:
    """Say where shared memory comes from, from now on: "file_descriptor", nameless memory passed by its file descriptor, or "file_system", files in
    /dev/shm that take no descriptor.

    Set it before processes are started, and in those that are spawned as well. Raises ValueError for other words.
    """
    set_strategy(new_strategy)


def get_sharing_strategy() -> str:
    """Where shared memory comes from: "file_descriptor" or "file_system"."""
    return strategy()


def get_all_sharing_strategies() -> set[str]:
    """{"file_descriptor", "file_system"}."""
    return set(STRATEGIES)


def __getattr__(name: str) -> Any:
    """Modules of Python's multiprocessing: `tritensor.multiprocessing.connection`."""
    # Import machinery asks for __path__ and the like, of which Python's module has others.
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    try:
        return importlib.import_module(f"multiprocessing.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; nor has Python's multiprocessing") from None
