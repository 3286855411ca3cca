"""DeviceMesh on four ranks."""

from __future__ import annotations

from tests.distributed.ranks import succeed


def test_meshes() -> None:
    succeed("meshes.py", 4)
