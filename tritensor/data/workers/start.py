"""From a loader to its workers: the crew that its settings ask for, and an iteration by it."""

from __future__ import annotations

import multiprocessing
import warnings
from collections.abc import Iterator
from typing import Any

from tritensor.data.collate import pinned
from tritensor.data.loader_options import AHEAD
from tritensor.data.workers.dataset_pickle import CannotBeSent, Parcel
from tritensor.data.workers.iterator import Course, Task, WorkerIterator, endless, numbered
from tritensor.data.workers.pin_thread import PinnedIterator
from tritensor.data.workers.process import context_of, refuse_inside
from tritensor.data.workers.worker_pool import Crew
from tritensor.ground.errors import ForkedWorkersWarning

_told: set[str] = set()  # why workers were forked


def crew_of(loader: Any, base_seed: int) -> Crew:
    """The workers of a loader, started: spawned where nobody has chosen, or forked where new processes cannot be given what it reads, which a warning says
    once. Raises PicklingError, where another way was chosen, and RuntimeError."""
    refuse_inside()
    parcel = Parcel((loader.dataset, loader.collate_fn, loader.worker_init_fn))
    settings = {
        "streams": loader._streams,
        "batched": loader.batch_sampler is not None,
        "batch_size": loader.batch_size,
        "drop_last": loader.drop_last,
    }
    made = context_of(loader.multiprocessing_context)
    if made is None and not loader._forks:
        try:
            return Crew(multiprocessing.get_context("spawn"), loader.num_workers, parcel, base_seed, settings)
        except CannotBeSent as error:  # before any process was started
            _tell(str(error))
            loader._forks = True
    return Crew(made or multiprocessing.get_context("fork"), loader.num_workers, parcel, base_seed, settings)


def _tell(why: str) -> None:
    if why not in _told:
        _told.add(why)
        warnings.warn(
            f"{why}. Its workers are forked, as PyTorch's are: copies of this program, in which device cuda cannot be used",
            ForkedWorkersWarning,
            stacklevel=5,
        )


def iteration(loader: Any, crew: Crew, base_seed: int, tasks: Iterator[Task] | None) -> Any:
    """The batches of one epoch, pinned where the loader pins."""
    if tasks is None:
        tasks = endless() if loader._streams else numbered(loader._index_sampler)
    course = Course(loader.prefetch_factor or AHEAD, loader.in_order, loader.timeout, not loader.persistent_workers)
    found: Any = WorkerIterator(crew, base_seed, tasks, course, loader)
    if loader._streams and loader._claimed is not None:
        found.expects(loader._claimed)
    return PinnedIterator(found, pinned) if loader._pins else found
