"""A training run whose batches worker processes make: the losses of one process, also when it was interrupted, also of the next epochs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tritensor as tt
from tests.data.test_workers import left
from tests.training import runs
from tests.training.test_resume import LENGTHS
from tritensor.data import DataLoader, LengthBucketSampler, RandomSampler
from tritensor.training import Callback, Trainer, find_batch_size

pytestmark = pytest.mark.filterwarnings("ignore:.*processors for this process", "ignore:.*fork:DeprecationWarning")


class Told(runs.Noisy):
    """Data that depends on the epoch that it is told, with a generator of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.epoch, self.generator = -1, tt.Generator().manual_seed(8)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __getitem__(self, i: int) -> Any:
        x, y = super().__getitem__(i)
        return x + self.epoch + tt.rand(4, generator=self.generator), y


SOURCES: dict[str, Any] = {
    "shuffled": lambda **o: DataLoader(runs.Noisy(), 4, shuffle=True, **o),
    "with a generator": lambda **o: DataLoader(runs.Noisy(), 4, shuffle=True, generator=tt.Generator().manual_seed(5), **o),
    "drawn with replacement": lambda **o: DataLoader(runs.Noisy(), 4, sampler=RandomSampler(runs.Noisy(), True, 24), **o),
    "buckets": lambda **o: DataLoader(runs.Noisy(), batch_sampler=LengthBucketSampler(LENGTHS, 4), **o),
    "told the epoch": lambda **o: DataLoader(Told(), 4, shuffle=True, **o),
}


@pytest.mark.parametrize("source", SOURCES)
def test_losses_are_those_of_one_process(source: str, tmp_path: Path) -> None:
    def fit(workers: int, persistent: bool = False, **given: Any) -> Trainer:
        resume = given.pop("resume", False)
        options = {"num_workers": workers, "multiprocessing_context": "fork", "persistent_workers": persistent} if workers else {}
        trainer = runs.trainer(tmp_path if workers else None, epochs=2, **given)
        trainer.fit(SOURCES[source](**options), resume=resume)
        return trainer

    expected = fit(0)
    assert fit(2).losses == expected.losses
    assert fit(1, persistent=True).losses == expected.losses
    fit(2, steps=len(expected.losses) - 2)
    assert fit(2, resume=True).losses == expected.losses
    assert not left()


def test_a_run_that_stops_ends_its_workers() -> None:
    class Stops(Callback):
        def on_batch_end(self, trainer: Trainer) -> None:
            trainer.should_stop = True

    runs.trainer(callbacks=[Stops()]).fit(SOURCES["shuffled"](num_workers=2, multiprocessing_context="fork"))
    assert not left()


def test_a_batch_size_is_found_with_workers() -> None:
    data = DataLoader(runs.Noisy(), 2, num_workers=1, multiprocessing_context="fork")
    assert find_batch_size(runs.trainer(), data, start=10, quiet=True) == runs.SAMPLES
