"""torch.multiprocessing: Python's multiprocessing; tensors travel as pickles, by copy."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

globals().update({name: getattr(multiprocessing, name) for name in multiprocessing.__all__})
__all__ = [*multiprocessing.__all__, "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn"]


def get_all_sharing_strategies() -> set[str]:
    """{"file_system"}: what PyTorch shares through files travels by copy here."""
    return {"file_system"}


def get_sharing_strategy() -> str:
    """ "file_system"."""
    return "file_system"


def set_sharing_strategy(new_strategy: str) -> None:
    """Accepted for both of PyTorch's words; tensors travel by copy. Raises ValueError for others."""
    if new_strategy not in ("file_system", "file_descriptor"):
        raise ValueError(f"set_sharing_strategy: {new_strategy!r}; give 'file_system' or 'file_descriptor'")


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """Run fn(i, *args) in nprocs new processes and wait for them; join=False returns their list.

    Raises RuntimeError where one of them fails; the others are ended.
    """
    context = multiprocessing.get_context(start_method)
    processes = [context.Process(target=fn, args=(i, *args), daemon=daemon) for i in range(nprocs)]  # type: ignore[attr-defined]
    for p in processes:
        p.start()
    if not join:
        return processes
    failed = None
    for i, p in enumerate(processes):
        p.join()
        if p.exitcode and failed is None:
            failed = i
            for other in processes[i + 1 :]:
                other.terminate()
    if failed is not None:
        raise RuntimeError(f"spawn: process {failed} ended with exit code {processes[failed].exitcode}; its error stands above")
    return None
