"""What a worker process of a DataLoader knows of itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """What a worker knows of itself: its `id` (0 to num_workers - 1), `num_workers`, the `seed` of its generators in this epoch (the loader's plus
    the id), and `dataset`, its own copy. `rng` and `worker_method` are PyTorch's."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_here: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """What this process knows of itself as a worker of a DataLoader: `id` (0 to num_workers - 1), `num_workers`, `seed` and `dataset`, its own copy.

    None where it is no worker, so that a dataset may ask everywhere:

    >>> worker = tt.data.get_worker_info()
    >>> first, step = (worker.id, worker.num_workers) if worker else (0, 1)
    >>> list(range(first, 6, step))
    [0, 1, 2, 3, 4, 5]
    """
    return _here


def become(info: WorkerInfo | None) -> None:
    """Note that this process is a worker."""
    global _here
    _here = info
