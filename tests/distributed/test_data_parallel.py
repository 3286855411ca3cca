"""DistributedDataParallel on 2 and 4 ranks: equal to one process with the big batch, and what each setting does."""

from __future__ import annotations

import pytest

from tests.distributed.ranks import succeed


@pytest.mark.parametrize("ranks", [2, 4])
def test_equal_to_one_process_with_the_big_batch(ranks: int) -> None:
    succeed("replicas.py", ranks, "one_process")


@pytest.mark.parametrize("ranks", [pytest.param(2, marks=pytest.mark.quick), 4])
def test_settings(ranks: int) -> None:
    succeed("replicas.py", ranks, "unused", "kept", "between", "accumulated", "buffers_and_copies", "hooks", "uneven", "shared_batch_norm")
