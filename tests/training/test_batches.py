"""Batches of an epoch: a random order of its own, whatever the program draws meanwhile, from any batch on; generators stay where they were."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.training import runs
from tests.training.test_resume import SOURCES
from tritensor.data import DataLoader, DistributedSampler, TensorDataset
from tritensor.training import generators
from tritensor.training.batches import count_samples, iterate_batches

RANDOM = {name: make for name, make in SOURCES.items() if name != "single samples"}


def numbers(found: Any) -> list[Any]:
    return [[x.tolist(), y.tolist()] for x, y in found]


@pytest.mark.parametrize("source", RANDOM)
def test_an_epochs_order_is_its_own(source: str) -> None:
    runs.seeded()
    seeds = generators.get_seeds()
    first, second = (numbers(iterate_batches(RANDOM[source](), seeds, epoch)) for epoch in (0, 1))
    assert first != second
    runs.seeded(5)  # the streams are those of the seeds, not of where the program is
    assert numbers(iterate_batches(RANDOM[source](), seeds, 1)) == second
    for start in (1, len(first)):
        assert numbers(iterate_batches(RANDOM[source](), seeds, 0, start)) == first[start:]
    assert numbers(iterate_batches(RANDOM[source](), generators.get_seeds(), 0)) != first


@pytest.mark.parametrize("source", RANDOM)
def test_the_program_and_its_data_draw_apart(source: str) -> None:
    runs.seeded()
    seeds, alone = generators.get_seeds(), []
    for _ in range(8):
        alone.append((tt.rand(2).tolist(), np.random.rand(), random.random()))
    runs.seeded()
    expected, found, drawn = numbers(iterate_batches(RANDOM[source](), seeds, 0)), [], []
    for batch in iterate_batches(RANDOM[source](), seeds, 0):
        found.append(batch)
        drawn.append((tt.rand(2).tolist(), np.random.rand(), random.random()))
    assert numbers(found) == expected
    assert drawn == alone[: len(drawn)]


def test_a_loaders_generator_sets_its_order_and_stays() -> None:
    data = TensorDataset(tt.arange(20), tt.arange(20))
    seeds, orders = generators.get_seeds(), []
    for seed in (5, 5, 6):
        g = tt.Generator().manual_seed(seed)
        orders.append(numbers(iterate_batches(DataLoader(data, 4, shuffle=True, generator=g), seeds, 0)))
        assert (g.key, g.offset) == (seed, 0)
    assert orders[0] == orders[1] != orders[2]


def test_a_sampler_is_told_the_epoch() -> None:
    data = TensorDataset(tt.arange(8), tt.arange(8))
    sampler = DistributedSampler(data, 1, 0)
    order = [numbers(iterate_batches(DataLoader(data, 4, sampler=sampler), generators.get_seeds(), epoch)) for epoch in (0, 3)]
    assert sampler.epoch == 3
    assert order[0] != order[1]


def test_an_error_in_a_dataset_leaves_the_generators_alone() -> None:
    def collate(samples: Any) -> Any:
        random.random()
        raise KeyError("mine")

    kept = generators.get_state()
    with pytest.raises(KeyError, match="mine"):
        list(iterate_batches(DataLoader([1, 2], collate_fn=collate), generators.get_seeds(), 0))
    assert str(generators.get_state()) == str(kept)


@pytest.mark.parametrize(
    "draw", [tt.rand, np.random.randn, lambda n: [random.gauss(0, 1) for _ in range(n)]], ids=["tritensor", "numpy", "python"]
)
def test_a_state_is_taken_up_again(draw: Callable[[int], Any], tmp_path: Any) -> None:
    np.random.randn()  # one of a pair of normal numbers waits in numpy's state
    random.gauss(0, 1)  # and in Python's
    tt.save(generators.get_state(), tmp_path / "state")
    expected = np.asarray(draw(5))
    generators.set_state(tt.load(tmp_path / "state"))
    assert np.array_equal(np.asarray(draw(5)), expected)


def test_samples_are_counted_by_the_first_tensor() -> None:
    assert count_samples((tt.ones(3, 2), tt.ones(3))) == 3
    assert count_samples({"name": "a", "x": tt.ones(5)}) == 5
    assert count_samples([1, tt.tensor(2.0)]) == count_samples("text") == count_samples(tt.ones(0)) == 1
