"""View of an object that has a DataLoader's attributes and is none: what worker processes are started from, and what they read."""

from __future__ import annotations

from typing import Any

from tritensor.data.iterators import DatasetKind
from tritensor.data.sampler import draw_seed
from tritensor.data.workers.iterator import iterate_workers, start_workers


class LoaderView:
    """A DataLoader's settings as its workers need them, out of another object's. Its workers last for one epoch."""

    persistent_workers = _forks = _pins = False
    _claimed = None

    def __init__(self, loader: Any) -> None:
        self.dataset, self.collate_fn, self.worker_init_fn = loader.dataset, loader.collate_fn, loader.worker_init_fn
        self.num_workers, self.timeout, self.drop_last = loader.num_workers, loader.timeout, loader.drop_last
        self.in_order, self.prefetch_factor = getattr(loader, "in_order", True), loader.prefetch_factor
        self.multiprocessing_context = loader.multiprocessing_context
        self._streams = loader._dataset_kind == DatasetKind.Iterable
        self._index_sampler = loader._index_sampler
        self.batch_sampler = loader._index_sampler if loader._auto_collation and not self._streams else None
        self.batch_size = loader.batch_size if loader._auto_collation and self._streams else None


def iterate_view(loader: Any) -> Any:
    """The batches that worker processes make of an object that has a DataLoader's attributes."""
    view, seed = LoaderView(loader), draw_seed(loader.generator)
    return iterate_workers(view, start_workers(view, seed), seed, None)
