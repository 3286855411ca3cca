"""The life of communicators: made, split, closed; tensors that they refuse; calls that differ between ranks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.distributed.nccl.ranks import AGES, array, call, ranks
from tests.gpu import nccl_rank
from tests.stub import control
from tests.stub.nccl import control as nccl
from tests.stub.nccl.control import on_nccl_stub
from tritensor.distributed.backends.agreement import check_same_call
from tritensor.distributed.backends.nccl import NcclBackend, unique_id
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.device import cpu
from tritensor.ground.errors import ArgumentError, DeviceError, DistBackendError, DistError, RankFailedError
from tritensor.ops.array import from_host


@on_nccl_stub()
def test_ranks_connect_by_one_id_on_their_devices() -> None:
    backends = ranks(3)
    assert [(b.name, b.rank, b.size) for b in backends] == [("nccl", r, 3) for r in range(3)]
    made = nccl.calls("ncclCommInitRankConfig")
    assert [(s.rank, s.size, s.device) for s in made] == [(0, 3, 0), (1, 3, 1), (2, 3, 0)]
    assert len({s.number for s in made}) == 1  # the id
    assert {s.extra for s in made} == {0}  # config.blocking
    assert len(unique_id()) == 128
    assert unique_id() != unique_id()


@on_nccl_stub()
def test_arguments_that_make_no_sense() -> None:
    identity = unique_id()
    with pytest.raises(ArgumentError, match="rank 2 of 2 processes; ranks go from 0 to 1"):
        NcclBackend(2, 2, identity, 0)
    with pytest.raises(ArgumentError, match="the unique id has 3 bytes, NCCL's have 128"):
        NcclBackend(0, 2, b"abc", 0)
    with pytest.raises(DeviceError, match="cuda:5: no such device"):
        NcclBackend(0, 2, identity, 5)
    assert nccl.live() == 0


@on_nccl_stub()
def test_tensors_elsewhere_are_refused() -> None:
    one, two = ranks(2)
    one.check_device("all_reduce", array("float32", 2))
    with pytest.raises(
        DeviceError, match=r"all_reduce: the tensor is on cpu, and this group's NCCL communicator is on cuda:0; move it with .cuda\(\)"
    ):
        one.check_device("all_reduce", from_host(np.ones(2), cpu))
    with pytest.raises(
        DeviceError, match=r"on cuda:0, and this group's NCCL communicator is on cuda:1; move it with .to\('cuda:1'\), or .*set_device\(0\)"
    ):
        two.check_device("all_reduce", array("float32", 2))


@on_nccl_stub()
def test_split() -> None:
    one, two, three = ranks(3)
    nccl.next_children(2)
    a, b, c = two.split(call("new_group"), [2, 1]), three.split(call("new_group"), [2, 1]), one.split(call("new_group"), [2, 1])
    assert c is None
    assert a is not None
    assert b is not None
    assert [(a.rank, a.size), (b.rank, b.size)] == [(1, 2), (0, 2)]  # in the order of the members
    assert [(s.rank, s.op, s.peer, s.extra) for s in nccl.calls("ncclCommSplit")] == [(1, 0, 1, 0), (2, 0, 0, 0), (0, nccl.NO_COLOR, 0, 0)]
    nccl.forget()
    x = array("float32", 2, device=1)
    a.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    two.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    child, parent = nccl.calls()
    assert (child.rank, child.size) == (1, 2)
    assert child.comm != parent.comm
    assert child.stream != parent.stream
    a.close()
    two.all_reduce(call("all_reduce"), ReduceOp.SUM, x).wait()
    assert one.split(call("new_group"), []) is None
    assert a.seconds == two.seconds


@on_nccl_stub()
def test_a_communicator_of_another_rank_or_size_is_refused() -> None:
    one, _ = ranks(2)
    nccl.next_children(5)
    with pytest.raises(
        DistBackendError, match="NCCL made this process rank 0 of 5, and it is rank 0 of 2; give all processes the same unique id"
    ):
        one.split(call("new_group"), [0, 1])


@on_nccl_stub()
def test_close() -> None:
    (b,) = ranks(1)
    x = array("float32", 2)
    pending = b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    stream = nccl.calls()[0].stream
    b.close()
    b.close()
    assert [s.name for s in nccl.everything()][-2:] == ["ncclCommFinalize", "ncclCommDestroy"]
    assert nccl.live() == 0
    pending.wait()  # it was done before
    for begin in (
        lambda: b.all_reduce(call("all_reduce"), ReduceOp.SUM, x),
        lambda: b.barrier(call("barrier")),
        lambda: b.split(call("new_group"), [0]),
    ):
        with pytest.raises(DistError, match=r"\(call 7 .*: the group was closed by destroy_process_group; make it anew"):
            begin()
    b.check()
    (other,) = ranks(1)  # takes up the stream that is left
    other.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    assert nccl.calls()[-1].stream == stream


@on_nccl_stub()
def test_a_communicator_is_made_on_its_device_whichever_is_current() -> None:
    (b,) = ranks(1)
    b.close()  # and leaves a stream
    array("float32", 2, device=1)
    ranks(1)
    assert [s.device for s in nccl.calls("ncclCommInitRankConfig")] == [0, 0]


@on_nccl_stub()
def test_close_does_not_wait_for_ever() -> None:
    (b,) = ranks(1, seconds=0.05)
    x = array("float32", 2)
    control.slow(copies=AGES)
    b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    with pytest.raises(RankFailedError, match=r"destroy_process_group: rank 0 of 1 on cuda:0 waited 0.05 s"):
        b.close()
    assert [s.name for s in nccl.everything()][-1] == "ncclCommAbort"
    b.close()
    assert nccl.live() == 0


@on_nccl_stub()
def test_agree() -> None:
    (b,) = ranks(1)
    check_same_call(b, call("all_reduce"), [0])
    reduced, *rest = nccl.calls()
    assert (reduced.name, reduced.op, reduced.number, reduced.datatype, rest) == ("ncclAllReduce", nccl.MIN, 2, nccl.INT64, [])


@on_nccl_stub()
def test_calls_that_differ_are_named() -> None:
    (b,) = ranks(1)

    def another(call: object, op: object, out: object) -> object:
        """As if another rank had given another number."""
        control.slow()
        from tritensor.distributed.backends.interface import Finished

        out.storage.write(np.array([-5, -7], np.int64), 0)  # type: ignore[attr-defined]
        return Finished()

    b.all_reduce = another  # type: ignore[assignment, method-assign]
    with pytest.raises(
        DistError, match=r"call 7 of default_pg is not the same on all ranks: rank 4: all_reduce  at .*test_nccl_groups.py:\d+"
    ):
        check_same_call(b, call("all_reduce"), [4])


@on_nccl_stub()
@pytest.mark.parametrize("part", ["reductions", "movements", "messages", "groups"])
def test_what_the_gpus_test_asks_holds_for_one_rank(part: str) -> None:
    """Of tests/gpu/nccl_rank.py all that needs no kernel: the stub moves a lone rank's data as NCCL would."""
    (b,) = ranks(1)
    getattr(nccl_rank, part)(b)
    assert nccl.calls()
