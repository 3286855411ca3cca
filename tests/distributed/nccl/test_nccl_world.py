"""A world of NCCL on two ranks, which MPI brings together and watches."""

from __future__ import annotations

from tests.distributed.ranks import succeed
from tests.stub.build import environment
from tests.stub.nccl.build import library


def test_init_process_group_on_two_ranks() -> None:
    library()  # built here, and not by both ranks at once
    stub = environment(STUB_DEVICES=2)
    succeed("on_nccl_stub.py", 2, **{name: stub[name] for name in ("LD_LIBRARY_PATH", "STUB_DEVICES")}, TRITON_INTERPRET="0")
