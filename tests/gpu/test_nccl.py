"""NCCL itself: a world of one process, and two processes on two GPUs."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import tritensor as tt
from tests.gpu.scale import real

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parents[2]


def run(size: int, identity: str, **environment: str) -> None:
    """All ranks at once; each must say that all is right."""
    if not real():
        pytest.skip("NCCL needs GPUs; the emulated device has none")
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.gpu.nccl_rank", str(rank), str(size), identity],
            cwd=ROOT, env=os.environ | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for rank in range(size)
    ]  # fmt: skip
    try:
        said = [p.communicate(timeout=300)[0] for p in started]
    finally:
        for p in started:
            p.kill()
    for rank, text in enumerate(said):
        assert started[rank].returncode == 0, f"rank {rank}:\n{text}"
        assert text.rstrip().endswith("all right"), f"rank {rank}:\n{text}"


def address() -> str:
    """A free port of this machine, for NCCL_COMM_ID."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{found.getsockname()[1]}"


def test_one_process() -> None:
    run(1, "-")


@pytest.mark.parametrize("by_address", [False, True])
def test_two_processes_on_two_gpus(by_address: bool) -> None:
    if tt.cuda.device_count() < 2:
        pytest.skip("this machine has one GPU, and NCCL takes no two processes on the same one")
    if not real():
        pytest.skip("NCCL needs GPUs; the emulated device has none")
    if by_address:
        run(2, "-", NCCL_COMM_ID=address())
    else:
        from tritensor.distributed.backends.nccl import unique_id

        run(2, unique_id().hex())
