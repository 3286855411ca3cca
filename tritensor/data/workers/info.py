"""Facts about the worker process of a DataLoader that this process is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Facts about a worker: its `id` (0 to num_workers - 1), `num_workers`, the `seed` of its generators in this epoch (the loader's plus
    the id), and `dataset`, its own copy. `rng` and `worker_method` are PyTorch's."""

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: Any = None
    worker_method: str | None = "multiprocessing"


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The WorkerInfo of this process, a worker of a DataLoader; None where it is no worker, so that a dataset may ask everywhere:

    >>> worker = tt.data.get_worker_info()
    >>> first, step = (worker.id, worker.num_workers) if worker else (0, 1)
    >>> list(range(first, 6, step))
    [0, 1, 2, 3, 4, 5]
    """
    return _worker_info


def set_worker_info(info: WorkerInfo | None) -> None:
    """Note that this process is a worker."""
    global _worker_info
    _worker_info = info
