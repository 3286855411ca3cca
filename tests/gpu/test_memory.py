"""Memory on the GPU: ten thousand training steps hold no more than the first hundred, and a full device is survived."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import numpy as np
import pytest

import tritensor as tt
from tests.gpu import steps
from tests.gpu.scale import real, scaled

pytestmark = pytest.mark.gpu

HOST_GROWTH = 8 << 20  # bytes: what Python's own arenas may take in ten thousand steps


def resident() -> int:
    """Bytes of this process in the host's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def held() -> tuple[int, int, int]:
    """Bytes that tensors hold, that the cache holds for them, and that the process holds on the host."""
    gc.collect()
    tt.cuda.synchronize()
    return tt.cuda.memory_allocated(), tt.cuda.memory_reserved(), resident()


def test_ten_thousand_steps_without_growth() -> None:
    step = steps.small("cuda")
    for _ in range(scaled(500, 5)):
        loss = step()
    first = loss.item()
    before = held()
    for _ in range(scaled(10_000, 10)):
        loss = step()
    after = held()
    assert after[0] == before[0], f"memory_allocated grew by {after[0] - before[0]} bytes"
    assert after[1] == before[1], f"memory_reserved grew by {after[1] - before[1]} bytes"
    assert after[2] - before[2] <= HOST_GROWTH, f"the process grew by {after[2] - before[2]} bytes"
    assert np.isfinite(loss.item())
    assert loss.item() != first, "it does not learn"


def test_a_tensor_gives_its_memory_back() -> None:
    before = held()[0]
    x = tt.ones(1 << 20, device="cuda")
    assert tt.cuda.memory_allocated() >= before + 4 * x.numel()
    assert tt.cuda.max_memory_allocated() >= tt.cuda.memory_allocated()
    del x
    assert held()[0] == before


def test_more_than_there_is() -> None:
    keep = tt.arange(1000, device="cuda")
    for size in [1 << 50, *([tt.cuda.mem_get_info()[1] + (1 << 30)] if real() else [])]:
        with pytest.raises(tt.OutOfMemoryError) as raised:
            tt.empty(size, dtype=tt.uint8, device="cuda")
        assert str(size) in str(raised.value).replace(",", "") or "asked" in str(raised.value)
    np.testing.assert_array_equal((keep + 1).cpu().numpy(), np.arange(1, 1001))


@pytest.mark.skipif(not real(), reason="on the emulated device this would fill the host's memory")
def test_a_full_device_is_survived() -> None:
    chunk = tt.cuda.mem_get_info()[1] // 16
    taken: list[tt.Tensor] = []

    def fill() -> None:
        for _ in range(64):
            taken.append(tt.empty(chunk, dtype=tt.uint8, device="cuda"))

    with pytest.raises(tt.OutOfMemoryError):
        fill()
    assert len(taken) >= 8, f"only {len(taken)} sixteenths of the memory could be had"
    del taken[-1]
    small = tt.ones(1000, device="cuda")  # what is left serves on
    assert small.sum().item() == 1000
    taken.clear()
    tt.cuda.empty_cache()
    again = tt.empty(8 * chunk, dtype=tt.uint8, device="cuda")
    assert again.numel() == 8 * chunk
    del again
    tt.cuda.empty_cache()


def test_the_cache_is_given_back() -> None:
    x = tt.ones(8 << 20, device="cuda")
    del x
    tt.cuda.synchronize()
    before = tt.cuda.memory_reserved()
    tt.cuda.empty_cache()
    assert tt.cuda.memory_reserved() <= before
    assert "allocated" in tt.cuda.memory_summary().lower()
    assert tt.cuda.memory_stats()
