"""ZeroRedundancyOptimizer, fully_shard and FullyShardedDataParallel on 2 and 4 ranks: equal to one process, every setting, and the memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.ranks import succeed

# What holds on 2 ranks is asked on 4 by the full tier alone: two cores take turns.
ON_RANKS = pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=[pytest.mark.slow, pytest.mark.full])])


@ON_RANKS
def test_states_and_gradients_with_their_owners(ranks: int) -> None:
    succeed("owned_states.py", ranks)


@ON_RANKS
def test_fully_sharded_is_equal_to_one_process(ranks: int) -> None:
    succeed("shards.py", ranks, "one_process")


@ON_RANKS
def test_states_accumulation_and_unused_parameters_of_shards(ranks: int) -> None:
    succeed("shards.py", ranks, "places", "states", "accumulated", "unused", "frozen_and_recomputed")


@ON_RANKS
def test_settings_of_full_sharding(ranks: int) -> None:
    succeed("shard_settings.py", ranks, "outside", "mixed", "wrapped", "prefetched", "replicated", "failed", "refused")


@ON_RANKS
def test_states_of_shards_by_other_ways(ranks: int) -> None:
    succeed("shard_states.py", ranks, "summoned", "cast", "hooks", "places", "refused", "by_name", "owners", "own_files")


def test_an_optimizer_as_it_is_in_a_checkpoint(tmp_path: Path) -> None:
    succeed("shard_states.py", 4, "saved", str(tmp_path))
    for ranks in (1, 2, 3):
        succeed("shard_states.py", ranks, "loaded", str(tmp_path))


def test_on_a_gpu() -> None:
    succeed("shard_settings.py", 1, "on_gpu", TRITON_INTERPRET="1")


@ON_RANKS
def test_memory_is_what_the_formulas_say(ranks: int) -> None:
    # Memory that is freed goes back to the system, so that it can be measured.
    succeed("shard_memory.py", ranks, MALLOC_MMAP_THRESHOLD_="65536")
