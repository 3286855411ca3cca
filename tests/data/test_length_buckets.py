"""LengthBucketSampler: every sample once, similar lengths together, limits kept, the same for a seed and an epoch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tritensor.data import DataLoader, LengthBucketSampler

LENGTHS = np.random.default_rng(0).integers(1, 100, 500)
SIZES: list[dict[str, Any]] = [
    {"batch_size": 16},
    {"max_tokens": 900},
    {"batch_size": 8, "max_tokens": 500},
    {"batch_size": 7, "batches_per_bucket": 3},
]


def padded(batches: list[list[int]]) -> float:
    """Cells of the padded batches for each token in them."""
    return sum(max(LENGTHS[b]) * len(b) for b in batches) / LENGTHS.sum()


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_sample_once_within_the_limits(size: dict[str, Any], shuffle: bool) -> None:
    sampler = LengthBucketSampler(LENGTHS, **size, shuffle=shuffle)
    for _ in range(2):
        batches = list(sampler)
        assert len(batches) == len(sampler)
        assert sorted(i for b in batches for i in b) == list(range(500))
        assert all(len(b) <= size.get("batch_size", 500) for b in batches)
        assert all(max(LENGTHS[b]) * len(b) <= size.get("max_tokens", 10**9) for b in batches)
        in_any_order = [list(b) for b in np.array_split(np.arange(500), len(batches))]
        assert padded(batches) < 1.15 < padded(in_any_order)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_drop_last_leaves_out_one_batch_at_most(size: dict[str, Any]) -> None:
    every, whole = LengthBucketSampler(LENGTHS, **size), LengthBucketSampler(LENGTHS, **size, drop_last=True)
    assert len(every) - 1 <= len(whole) == len(list(whole)) <= len(every)


def test_an_epoch_has_its_own_order_and_a_seed_its_own_epochs() -> None:
    orders = {(seed, epoch): [] for seed in (0, 1) for epoch in (0, 1)}
    for (seed, epoch), found in orders.items():
        sampler = LengthBucketSampler(LENGTHS, 16, seed=seed)
        sampler.set_epoch(epoch)
        found += list(sampler)
    assert len({str(o) for o in orders.values()}) == 4
    by_itself = LengthBucketSampler(LENGTHS, 16)
    assert [list(by_itself), list(by_itself)] == [orders[0, 0], orders[0, 1]]
    kept = tt.get_rng_state()
    list(by_itself)
    assert tt.equal(kept, tt.get_rng_state())
    assert {len(orders[0, 0][i]) for i in range(10)} == {16}
    longest = [max(LENGTHS[b]) for b in orders[0, 0]]
    assert longest != sorted(longest)
    assert longest != sorted(longest, reverse=True)


def test_without_shuffling_the_longest_come_first() -> None:
    batches = list(LengthBucketSampler([1, 5, 3, 2, 4], 2, shuffle=False))
    assert batches == [[1, 4], [2, 3], [0]]


def test_it_feeds_a_loader() -> None:
    data = [tt.ones(int(n)) for n in LENGTHS[:40]]
    loader = DataLoader(data, batch_sampler=LengthBucketSampler([len(x) for x in data], 8), collate_fn=lambda xs: [len(x) for x in xs])
    assert sorted(n for batch in loader for n in batch) == sorted(LENGTHS[:40])
    assert len(loader) == 5
    assert list(LengthBucketSampler([], 8)) == []
    assert len(LengthBucketSampler(tt.tensor([3, 1]), max_tokens=3)) == 2


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"lengths": [1]}, "neither batch_size nor max_tokens"),
        ({"lengths": [1], "batch_size": 0}, "batch_size is 0"),
        ({"lengths": [1, 9, 2], "max_tokens": 8}, "sample 1 is 9 long, more than max_tokens=8"),
        ({"lengths": [1.5], "batch_size": 1}, r"lengths is \(1,\) of float64"),
        ({"lengths": [[1]], "batch_size": 1}, r"lengths is \(1, 1\)"),
        ({"lengths": [3, 0], "batch_size": 1}, "length of sample 1 is 0"),
        ({"lengths": [3], "batch_size": 1, "batches_per_bucket": True}, "batches_per_bucket is True"),
    ],
    ids=str,
)
def test_what_it_refuses(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"LengthBucketSampler: .*{said}"):
        LengthBucketSampler(**given)
