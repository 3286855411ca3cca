"""Order of streams under NCCL: the communication stream waits for the current one, the current one for the results, the host only at a barrier.

Memory that a call uses is not handed out again before it is done.
"""

from __future__ import annotations

import pytest

import tritensor as tt
from tests.distributed.nccl.ranks import AGES, array, busy, call, is_busy, ranks
from tests.stub import control
from tests.stub.nccl import control as nccl
from tests.stub.nccl.control import on_nccl_stub
from tritensor.cuda.runtime.active import runtime
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.errors import ArgumentError, DistError, RankFailedError


@on_nccl_stub()
def test_a_call_waits_for_the_current_stream() -> None:
    (b,) = ranks(1)
    x = array("float32", 4)
    b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    busy(x)
    b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    assert [s.busy for s in nccl.calls()] == [False, True]


@on_nccl_stub()
def test_a_call_waits_for_the_stream_that_is_current() -> None:
    (b,) = ranks(1)
    x = array("float32", 4)
    side = tt.cuda.Stream()
    busy(x)  # of the default stream, which is not asked for
    with tt.cuda.stream(side):
        b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    assert [s.busy for s in nccl.calls()] == [False]
    with tt.cuda.stream(side):
        busy(x)
        b.broadcast(call("broadcast"), 0, x)
    assert nccl.calls()[1].busy


@on_nccl_stub()
def test_the_current_stream_waits_for_the_results_and_the_host_does_not() -> None:
    (b,) = ranks(1)
    x = array("float32", 4)
    control.slow(copies=AGES)
    pending = b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)  # NCCL's work lasts for hours
    side = tt.cuda.Stream()
    assert not pending.done()
    assert is_busy(nccl.calls()[0].stream)
    assert not is_busy(0)
    with control.counted() as calls, tt.cuda.stream(side):
        pending.wait()
    assert is_busy(side.cuda_stream)
    assert not is_busy(0)
    pending.wait()
    assert is_busy(0)
    assert not {"cuEventSynchronize", "cuStreamSynchronize", "cuCtxSynchronize"} & set(calls)
    assert not pending.done()


@on_nccl_stub()
def test_done() -> None:
    (b,) = ranks(1)
    pending = b.all_reduce(call("all_reduce"), ReduceOp.SUM, array("float32", 4))
    assert pending.done()
    pending.wait(1.0)


@on_nccl_stub()
def test_a_barrier_stops_the_host_until_it_is_done() -> None:
    (b,) = ranks(1)
    b.barrier(call("barrier")).wait()
    (seen,) = nccl.calls()
    assert (seen.name, seen.number, seen.datatype) == ("ncclAllReduce", 1, nccl.INT32)
    assert not is_busy(seen.stream)
    b.set_timeout(0.05)
    control.slow(copies=AGES)
    with pytest.raises(
        RankFailedError, match=r"barrier \(call 8 of default_pg, .*test_nccl_order.py:\d+\): rank 0 of 1 on cuda:0 waited 0.05 s"
    ):
        b.barrier(call("barrier", 8)).wait()


@on_nccl_stub()
def test_communicators_have_streams_of_their_own() -> None:
    (a,), (b,) = ranks(1), ranks(1)
    x = array("float32", 4)
    a.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    one, two = nccl.calls()
    assert one.stream != two.stream
    assert one.comm != two.comm
    streams = {tt.cuda.Stream().cuda_stream for _ in range(40)}
    assert not streams & {one.stream, two.stream}


@on_nccl_stub()
@pytest.mark.parametrize("waits", [False, True])
def test_memory_is_kept_until_the_call_is_done(waits: bool) -> None:
    (b,) = ranks(1)
    x, other = array("float32", 1 << 20), array("float32", 1 << 20)
    was, free = x.data_ptr(), other.data_ptr()
    control.slow(copies=AGES)
    pending = b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    if waits:
        with tt.cuda.stream(tt.cuda.Stream()):
            pending.wait()
    del x, other, pending
    control.slow()
    found = [runtime().allocate(4 << 20, 0) for _ in range(3)]
    assert free in [s.pointer for s in found]  # memory that no call uses is handed out again
    assert was not in [s.pointer for s in found]


@on_nccl_stub()
def test_memory_comes_back_when_the_call_is_done() -> None:
    (b,) = ranks(1)
    x = array("float32", 1 << 20)
    was = x.data_ptr()
    b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    b.barrier(call("barrier")).wait()
    b.check()
    del x
    assert was in [runtime().allocate(4 << 20, 0).pointer for _ in range(2)]


@on_nccl_stub()
def test_the_scratch_of_reduce_is_kept_too() -> None:
    one, _ = ranks(2)
    x = array("float32", 1 << 20)
    control.slow(copies=AGES)
    one.reduce(call("reduce"), ReduceOp.SUM, 1, x)
    control.slow()
    (seen,) = nccl.calls()
    assert seen.receive not in [runtime().allocate(4 << 20, 0).pointer for _ in range(2)]


@on_nccl_stub()
def test_together_begins_at_its_end_as_one() -> None:
    backends = ranks(2)
    xs = [[array("float32", 4, device=d) for _ in range(2)] for d in range(2)]
    for b, (sent, got) in zip(backends, xs, strict=True):
        nccl.forget()
        with b.together():
            with b.together():  # the outermost block counts
                first = b.send(call("isend"), 1 - b.rank, 0, sent)
            second = b.receive(call("irecv"), 1 - b.rank, 0, got)
            assert nccl.calls() == []
            assert not first.done()
            with pytest.raises(
                DistError, match=r"isend .*: waited for inside of together\(\), where it has not begun; wait after the block"
            ):
                first.wait()
        assert [(s.name, s.depth) for s in nccl.everything()] == [
            ("ncclGroupStart", 0),
            ("ncclSend", 1),
            ("ncclRecv", 1),
            ("ncclGroupEnd", 0),
        ]
        assert first.done()
        assert second.done()


@on_nccl_stub()
def test_together_waits_for_what_was_current_at_each_call() -> None:
    one, _ = ranks(2)
    x = array("float32", 4)
    side = tt.cuda.Stream()
    with one.together():
        with tt.cuda.stream(side):
            busy(x)
            one.send(call("isend"), 1, 0, x)
        one.send(call("isend"), 1, 0, x)
    assert [s.busy for s in nccl.calls()] == [True, True]


@on_nccl_stub()
def test_an_error_in_together_begins_nothing() -> None:
    one, _ = ranks(2)
    x = array("float32", 4)
    nccl.forget()

    def half() -> None:
        with one.together():
            one.send(call("isend"), 1, 0, x)
            one.receive(call("irecv"), None, 0, x)

    with pytest.raises(ArgumentError):
        half()
    assert nccl.everything() == []
    one.send(call("send"), 1, 0, x)
    assert [(s.name, s.depth) for s in nccl.everything()] == [("ncclSend", 0)]
    with one.together():
        pass
    assert len(nccl.everything()) == 1
