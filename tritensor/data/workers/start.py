"""From a loader to its workers: the crew that its settings ask for, and an iteration by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tritensor.data.collate import pinned
from tritensor.data.loader_options import AHEAD
from tritensor.data.workers.crew import Crew
from tritensor.data.workers.iterator import Course, Task, WorkerIterator, endless, numbered
from tritensor.data.workers.parcel import Parcel
from tritensor.data.workers.pin_thread import PinnedIterator
from tritensor.data.workers.process import context_of, refuse_inside


def crew_of(loader: Any, base_seed: int) -> Crew:
    """The workers of a loader, started. Raises PicklingError, RuntimeError."""
    refuse_inside()
    parcel = Parcel((loader.dataset, loader.collate_fn, loader.worker_init_fn))
    settings = {
        "streams": loader._streams,
        "batched": loader.batch_sampler is not None,
        "batch_size": loader.batch_size,
        "drop_last": loader.drop_last,
    }
    return Crew(context_of(loader.multiprocessing_context), loader.num_workers, parcel, base_seed, settings)


def iteration(loader: Any, crew: Crew, base_seed: int, tasks: Iterator[Task] | None) -> Any:
    """The batches of one epoch, pinned where the loader pins."""
    if tasks is None:
        tasks = endless() if loader._streams else numbered(loader._index_sampler)
    course = Course(loader.prefetch_factor or AHEAD, loader.in_order, loader.timeout, not loader.persistent_workers)
    found: Any = WorkerIterator(crew, base_seed, tasks, course, loader)
    if loader._streams and loader._claimed is not None:
        found.expects(loader._claimed)
    return PinnedIterator(found, pinned) if loader._pins else found
