"""DeviceMesh on four ranks, and on the GPU that a rank is given."""

from __future__ import annotations

import pytest

import tritensor as tt
import tritensor.distributed as dist
from tests.distributed.ranks import succeed


def test_meshes() -> None:
    succeed("meshes.py", 4)


def test_a_mesh_on_gpus_gives_each_process_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first mesh makes the process group, and before that the GPU of the process' number on its machine the current one."""
    assert tt.cuda.device_count() == 2, "the emulated ones"
    before = tt.cuda.current_device()
    for name, value in (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "3")):
        monkeypatch.setenv(name, value)
    try:
        mesh = dist.init_device_mesh("cuda", (1,), mesh_dim_names=("dp",))
        assert tt.cuda.current_device() == 1  # 3, counted on from the first again
        assert mesh.get_group("dp") is dist.group.WORLD
        dist.destroy_process_group()
        monkeypatch.setenv("LOCAL_RANK", "0")
        dist.init_device_mesh("cuda", (1,))
        assert tt.cuda.current_device() == 1, "the program has chosen"
    finally:
        tt.cuda.set_device(before)
        dist.destroy_process_group()
