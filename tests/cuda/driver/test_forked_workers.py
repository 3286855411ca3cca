"""Worker processes of a program that uses the GPU: forked ones read data, and are told that the GPU does not live through a fork; spawned ones may use it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tritensor as tt
from tests.stub.child import on_stub
from tritensor.data import DataLoader


class OnGpu:
    """Samples for which the GPU is used."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> Any:
        return len((tt.zeros(2, device="cuda") * 0).cpu()) + i  # the stub computes nothing


class OnCpu(OnGpu):
    def __getitem__(self, i: int) -> Any:
        return np.full(9000, i, np.float32)


def started() -> None:
    (tt.ones(3, device="cuda") + 1).cpu()


@on_stub()
def test_a_fork_of_a_program_that_has_started_the_gpu() -> None:
    started()
    batches = DataLoader(OnCpu(), batch_size=2, num_workers=1, multiprocessing_context="fork", pin_memory=True)
    assert [(x[:, 5].tolist(), x.is_pinned()) for x in batches] == [([0, 1], True), ([2, 3], True)]
    with pytest.raises(tt.DeviceError, match=r"(?s)Caught DeviceError in DataLoader worker process 0.*forked.*spawn"):
        list(DataLoader(OnGpu(), num_workers=1, multiprocessing_context="fork"))
    started()


@on_stub()
def test_a_spawned_worker_has_a_gpu_of_its_own() -> None:
    started()
    assert [int(x) for x in DataLoader(OnGpu(), num_workers=1, multiprocessing_context="spawn")] == [2, 3, 4, 5]
