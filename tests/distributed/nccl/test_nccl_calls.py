"""NCCL's arguments in each call: function, counts, type, op, root, pointers, communicator and stream."""

from __future__ import annotations

import numpy as np
import pytest

from tests.distributed.nccl.ranks import array, call, ranks
from tests.stub.nccl import control as nccl
from tests.stub.nccl.control import on_nccl_stub
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.device import gpu
from tritensor.ground.errors import ArgumentError, DistError, DTypeError
from tritensor.ops.array import from_host, to_host


@on_nccl_stub()
def test_collectives_tell_nccl_what_they_are_given() -> None:
    one, two = ranks(2)
    for b, device in ((one, 0), (two, 1)):
        nccl.forget()
        x, part, whole = (array("float32", n, device=device) for n in (6, 3, 6))
        b.all_reduce(call("all_reduce"), ReduceOp.PRODUCT, x)
        b.broadcast(call("broadcast"), 1, x)
        b.all_gather(call("all_gather"), part, whole)
        b.reduce_scatter(call("reduce_scatter"), ReduceOp.MAX, whole, part)
        reduced, sent, gathered, scattered = nccl.calls()
        at, p, w = x.data_ptr(), part.data_ptr(), whole.data_ptr()
        assert reduced[:4] == ("ncclAllReduce", at, at, 6)
        assert (reduced.op, reduced.peer) == (nccl.PROD, -1)
        assert sent[:4] == ("ncclBroadcast", at, at, 6)
        assert sent.peer == 1
        assert gathered[:4] == ("ncclAllGather", p, w, 3)
        assert scattered[:4] == ("ncclReduceScatter", w, p, 3)
        assert scattered.op == nccl.MAX
        assert {s.datatype for s in nccl.calls()} == {nccl.FLOAT32}
        assert {s.device for s in nccl.calls()} == {device}
        assert len({(s.comm, s.stream) for s in nccl.calls()}) == 1
        assert reduced.stream not in (0, 1, 2)
        assert {s.depth for s in nccl.calls()} == {0}


@on_nccl_stub()
def test_reduce_writes_on_the_root_alone() -> None:
    backends = ranks(2)
    xs = [array("float64", 4, device=d) for d in range(2)]
    for b, x in zip(backends, xs, strict=True):
        b.reduce(call("reduce"), ReduceOp.SUM, 1, x).wait()
    other, root = nccl.calls("ncclReduce")
    assert (root.send, root.receive, root.number, root.peer) == (xs[1].data_ptr(), xs[1].data_ptr(), 4, 1)
    assert other.send == xs[0].data_ptr()
    assert other.receive != xs[0].data_ptr()
    assert nccl.unmatched(nccl.calls(), 2) == []


@on_nccl_stub()
def test_parts_go_in_one_group() -> None:
    """gather, scatter and all_to_all are messages in a group: from where, to where, how many; nothing for counts of 0."""
    backends = ranks(3)
    parts = [array("int16", 2, device=r % 2) for r in range(3)]
    whole = array("int16", 6, device=1)
    for b, part in zip(backends, parts, strict=True):
        b.gather(call("gather"), 1, part, whole if b.rank == 1 else None)
    assert nccl.unmatched(nccl.calls(), 3) == []
    assert [(s.name, s.peer) for s in nccl.calls() if s.rank == 1] == [("ncclSend", 1), *[("ncclRecv", r) for r in range(3)]]
    assert [s.receive - whole.data_ptr() for s in nccl.calls("ncclRecv")] == [0, 4, 8]
    assert {(s.number, s.datatype) for s in nccl.calls()} == {(4, nccl.INT8)}
    assert {s.depth for s in nccl.calls() if s.rank == 1} == {1}
    assert len({s.group for s in nccl.calls() if s.rank == 1}) == 1

    nccl.forget()
    for b, part in zip(backends, parts, strict=True):
        b.scatter(call("scatter"), 1, whole if b.rank == 1 else None, part)
    assert nccl.unmatched(nccl.calls(), 3) == []
    assert [s.send - whole.data_ptr() for s in nccl.calls("ncclSend")] == [0, 4, 8]
    assert [s.receive for s in nccl.calls("ncclRecv")] == [p.data_ptr() for p in parts]

    nccl.forget()
    give = [[1, 0, 2], [0, 0, 3], [2, 1, 0]]  # give[i][j]: from i to j
    for b in backends:
        i, device = b.rank, b.rank % 2
        take = [row[i] for row in give]
        given, out = (array("float32", sum(n), device=device) for n in (give[i], take))
        b.all_to_all(call("all_to_all"), given, give[i], out, take)
        mine = [s for s in nccl.calls() if s.rank == i]
        assert [(s.name, s.peer, s.number) for s in mine] == [
            *[("ncclSend", j, n) for j, n in enumerate(give[i]) if n],
            *[("ncclRecv", j, n) for j, n in enumerate(take) if n],
        ]
        starts = {"ncclSend": given.data_ptr(), "ncclRecv": out.data_ptr()}
        for s in mine:
            assert s.send + s.receive == starts[s.name]
            starts[s.name] += 4 * s.number
    assert nccl.unmatched(nccl.calls(), 3) == []


@on_nccl_stub()
def test_a_rank_moves_its_own_part() -> None:
    """With itself alone a rank sends no more than copies: the results are right to the last byte."""
    (b,) = ranks(1)
    x = from_host(np.arange(6, dtype=np.float32), gpu(0))
    for begin in (
        lambda y: b.all_gather(call("all_gather"), x, y),
        lambda y: b.gather(call("gather"), 0, x, y),
        lambda y: b.scatter(call("scatter"), 0, x, y),
        lambda y: b.reduce_scatter(call("reduce_scatter"), ReduceOp.AVG, x, y),
        lambda y: b.all_to_all(call("all_to_all"), x, [6], y, [6]),
    ):
        y = array("float32", 6)
        begin(y).wait()
        assert to_host(y).tolist() == [0, 1, 2, 3, 4, 5]


@on_nccl_stub()
def test_empty_tensors_tell_nccl_nothing() -> None:
    (b,) = ranks(1)
    x = array("float32", 0)
    for pending in (
        b.all_reduce(call("all_reduce"), ReduceOp.SUM, x), b.reduce(call("reduce"), ReduceOp.SUM, 0, x), b.broadcast(call("broadcast"), 0, x),
        b.all_gather(call("all_gather"), x, x), b.reduce_scatter(call("reduce_scatter"), ReduceOp.SUM, x, x),
        b.gather(call("gather"), 0, x, x), b.scatter(call("scatter"), 0, x, x), b.all_to_all(call("all_to_all"), x, [0], x, [0]),
        b.send(call("send"), 0, 0, x), b.receive(call("recv"), 0, 0, x),
    ):  # fmt: skip
        pending.wait(1.0)
        assert pending.done()
    assert nccl.calls() == []


KINDS = {
    "bool": (nccl.UINT8, 1), "uint8": (nccl.UINT8, 1), "int8": (nccl.INT8, 1), "int16": (nccl.INT8, 2), "uint16": (nccl.INT8, 2),
    "int32": (nccl.INT32, 1), "uint32": (nccl.UINT32, 1), "int64": (nccl.INT64, 1), "uint64": (nccl.UINT64, 1), "float16": (nccl.FLOAT16, 1),
    "bfloat16": (nccl.BFLOAT16, 1), "float32": (nccl.FLOAT32, 1), "float64": (nccl.FLOAT64, 1), "float8_e4m3fn": (nccl.INT8, 1),
    "float8_e5m2": (nccl.INT8, 1), "complex64": (nccl.FLOAT32, 2), "complex128": (nccl.FLOAT64, 2),
}  # fmt: skip
OPS = {ReduceOp.SUM: nccl.SUM, ReduceOp.PRODUCT: nccl.PROD, ReduceOp.MIN: nccl.MIN, ReduceOp.MAX: nccl.MAX, ReduceOp.AVG: nccl.AVG}
OF_BOOL = {
    ReduceOp.SUM: nccl.MAX, ReduceOp.MAX: nccl.MAX, ReduceOp.BOR: nccl.MAX, ReduceOp.PRODUCT: nccl.MIN, ReduceOp.MIN: nccl.MIN,
    ReduceOp.BAND: nccl.MIN,
}  # fmt: skip
MENDS = {"int16": "int32", "uint16": "int32", "float8_e4m3fn": "bfloat16", "float8_e5m2": "bfloat16"}


def expected(name: str, op: ReduceOp) -> int | None:
    """NCCL's op, None where there is none."""
    if name == "bool":
        return OF_BOOL.get(op)
    if name in MENDS or (name.startswith("complex") and op not in (ReduceOp.SUM, ReduceOp.AVG)):
        return None
    return OPS.get(op)


def test_every_type_is_here() -> None:
    from tritensor.ground import dtypes

    assert set(KINDS) == {d.name for d in dtypes.ALL}


@on_nccl_stub()
def test_element_types() -> None:
    (b,) = ranks(1)
    for name, (kind, each) in KINDS.items():
        x = array("bool_" if name == "bool" else name, 4)
        nccl.forget()
        b.broadcast(call("broadcast"), 0, x)
        assert [(s.datatype, s.number) for s in nccl.calls()] == [(kind, 4 * each)], name
        for op in ReduceOp:
            nccl.forget()
            how = expected(name, op)
            if how is None:
                with pytest.raises(DTypeError, match=rf"all_reduce \(call 7 of default_pg, .*NCCL has no {op.name} of {name}; \w+"):
                    b.all_reduce(call("all_reduce"), op, x)
                assert nccl.calls() == []
            else:
                b.all_reduce(call("all_reduce"), op, x)
                assert [(s.datatype, s.number, s.op) for s in nccl.calls()] == [(kind, 4 * each, how)], (name, op)


@on_nccl_stub()
def test_refused_types_say_what_to_convert_to() -> None:
    (b,) = ranks(1)
    for name, to in MENDS.items():
        with pytest.raises(DTypeError, match=f"convert the tensor to {to} before, and back"):
            b.all_reduce(call("all_reduce"), ReduceOp.SUM, array(name, 2))


@on_nccl_stub()
def test_messages() -> None:
    one, two = ranks(2)
    sent, got = array("int32", 5), array("int32", 5, device=1)
    one.send(call("send"), 1, 3, sent)
    pending = two.receive(call("recv"), 0, 9, got)  # tags are not NCCL's
    assert pending.source() == 0
    assert [(s.name, s.send + s.receive, s.number, s.peer) for s in nccl.calls()] == [
        ("ncclSend", sent.data_ptr(), 5, 1),
        ("ncclRecv", got.data_ptr(), 5, 0),
    ]
    with pytest.raises(ArgumentError, match=r"recv \(call 7 .*NCCL does not receive from whoever sends; name the source"):
        two.receive(call("recv"), None, 0, got)
    with pytest.raises(NotImplementedError):
        one.barrier(call("barrier")).source()


@on_nccl_stub()
def test_what_is_given_may_overlap_with_what_is_written() -> None:
    """NCCL takes a rank's own place in the whole; elsewhere it gets a copy."""
    b = ranks(2)[1]
    whole = array("float32", 8, device=1)
    for start, copied in ((4, False), (0, True), (2, True)):
        part = whole[start : start + 4]
        b.all_gather(call("all_gather"), part, whole)
        b.reduce_scatter(call("reduce_scatter"), ReduceOp.SUM, whole, part)
        gathered, scattered = nccl.calls()[-2:]
        assert (gathered.send == part.data_ptr()) != copied, start
        assert (scattered.send == whole.data_ptr()) != copied, start
        assert (gathered.receive, scattered.receive) == (whole.data_ptr(), part.data_ptr())
    b.all_to_all(call("all_to_all"), whole, [4, 4], whole, [4, 4])
    sent, received = ([c for c in nccl.calls()[-4:] if c.name == name] for name in ("ncclSend", "ncclRecv"))
    assert [c.receive for c in received] == [whole.data_ptr(), whole.data_ptr() + 16]
    assert not {c.send for c in sent} & {c.receive for c in received}


@on_nccl_stub()
def test_the_users_line_is_read_by_messages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading it is dear beside a small collective."""
    read: list[int] = []

    def line_of(code: object, instruction: int) -> tuple[str, int]:
        read.append(instruction)
        return "train.py", 1

    monkeypatch.setattr("tritensor.distributed.calls.line_of", line_of)
    backend = ranks(1)[0]
    x = array("float32", 4)
    backend.all_reduce(call("all_reduce"), ReduceOp.SUM, x).wait()
    backend.barrier(call("barrier")).wait()
    with backend.together():
        backend.broadcast(call("broadcast"), 0, x)
    assert read == []
    backend.close()
    with pytest.raises(DistError, match=r"all_reduce \(call .*train.py:1\): the group was closed"):
        backend.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    assert len(read) == 1
