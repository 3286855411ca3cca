"""Faults under NCCL: it refuses, another process is lost, a call does not end, something is not installed. Nothing waits for ever."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

import tritensor as tt
from tests.distributed.nccl.ranks import AGES, array, call, ranks
from tests.stub import control
from tests.stub.nccl import control as nccl
from tests.stub.nccl.control import on_nccl_stub
from tritensor.cuda.runtime.active import runtime
from tritensor.distributed.backends.nccl import NcclBackend, library, unique_id, watchdog
from tritensor.distributed.reduce_op import ReduceOp
from tritensor.ground.errors import DeviceError, DistBackendError, RankFailedError


def last() -> str:
    return nccl.everything()[-1].name


@on_nccl_stub()
@pytest.mark.parametrize("name", ["ncclAllReduce", "ncclSend", "ncclGroupStart", "ncclGroupEnd"])
def test_a_refused_call_names_the_code_and_nccls_words(name: str) -> None:
    (b,) = ranks(1)
    x = array("float32", 2)
    nccl.fail_at(name, 1, nccl.INVALID_USAGE)
    said = rf"\(call 7 of default_pg, .*test_nccl_faults.py:\d+\): NCCL says ncclInvalidUsage \(5\): invalid usage; NCCL's last error: the stub was told to fail {name}"
    one, several = (lambda: b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)), (lambda: b.all_to_all(call("all_to_all"), x, [2], x, [2]))
    begin = one if name == "ncclAllReduce" else several
    with pytest.raises(DistBackendError, match=said) as raised:
        begin()
    assert not isinstance(raised.value, RankFailedError)
    assert last() == "ncclCommAbort"
    # The group of calls has been left, in any case.
    starts, ends = (len(nccl.calls(n)) for n in ("ncclGroupStart", "ncclGroupEnd"))
    assert starts == ends
    with pytest.raises(RankFailedError, match=r"broadcast .*: the group is of no more use since all_"):
        b.broadcast(call("broadcast"), 0, x)
    with pytest.raises(RankFailedError, match="the group is of no more use"):
        b.raise_if_failed("all_reduce")


@on_nccl_stub()
def test_an_error_of_another_process_is_found_by_done() -> None:
    (b,) = ranks(1)
    x = array("float32", 2)
    control.slow(copies=AGES)
    pending = b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    assert not pending.done()
    nccl.asynchronous(0, nccl.REMOTE_ERROR, "connection closed by rank 3")
    assert pending.done()
    said = r"all_reduce \(call 7 .*\): NCCL says ncclRemoteError \(6\): remote process exited .*; NCCL's last error: connection closed by rank 3"
    with pytest.raises(RankFailedError, match=said):
        pending.wait()
    with pytest.raises(RankFailedError, match="of no more use since all_reduce"):
        pending.wait()
    assert last() == "ncclCommAbort"
    assert nccl.live() == 0


@on_nccl_stub()
@pytest.mark.parametrize("seconds", [None, 30.0])
def test_an_error_is_found_by_a_wait(seconds: float | None) -> None:
    (b,) = ranks(1)
    x = array("float32", 2)
    control.slow(copies=AGES)
    begin = b.barrier(call("barrier")) if seconds is None else b.all_reduce(call("barrier"), ReduceOp.SUM, x)
    nccl.asynchronous(0, nccl.INTERNAL_ERROR, "a proxy died")
    with pytest.raises(DistBackendError, match=r"barrier \(call 7 .*\): NCCL says ncclInternalError \(3\).*a proxy died"):
        begin.wait(seconds)


@on_nccl_stub()
def test_a_wait_with_seconds_ends() -> None:
    (b,) = ranks(1)
    x = array("float32", 2)
    control.slow(copies=AGES)
    pending = b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    with pytest.raises(
        RankFailedError, match=r"all_reduce \(call 7 .*\): rank 0 of 1 on cuda:0 waited 0.02 s, and it is not done: another rank died"
    ):
        pending.wait(0.02)
    assert last() == "ncclCommAbort"


@on_nccl_stub()
@pytest.mark.parametrize("name", ["ncclCommInitRankConfig", "ncclAllReduce", "ncclCommSplit", "ncclCommFinalize", "ncclGroupEnd"])
def test_what_nccl_does_not_finish_ends(name: str) -> None:
    watchdog.LOOK = 3600.0
    if name != "ncclCommInitRankConfig":
        (b,) = ranks(1, seconds=0.05)
        x = array("float32", 2)
    nccl.never(name)
    begin = {
        "ncclCommInitRankConfig": lambda: NcclBackend(0, 2, unique_id(), 0, 0.05),
        "ncclAllReduce": lambda: b.all_reduce(call("all_reduce"), ReduceOp.SUM, x),
        "ncclCommSplit": lambda: b.split(call("new_group"), [0]),
        "ncclGroupEnd": lambda: b.all_to_all(call("all_to_all"), x, [2], x, [2]),
        "ncclCommFinalize": lambda: b.close(),
    }[name]
    with pytest.raises(RankFailedError, match=r"rank 0 of \d on cuda:0 waited 0.05 s, and it is not done.*NCCL says ncclInProgress"):
        begin()
    assert last() == "ncclCommAbort"
    assert nccl.live() == 0


@on_nccl_stub()
@pytest.mark.parametrize("name", ["ncclGetUniqueId", "ncclCommInitRankConfig", "ncclCommSplit"])
def test_a_communicator_that_cannot_be_made(name: str) -> None:
    if name == "ncclCommSplit":
        (b,) = ranks(1)
    nccl.fail_at(name, 1, nccl.SYSTEM_ERROR)
    with pytest.raises(
        RankFailedError, match=rf"NCCL says ncclSystemError \(2\): unhandled system error; .*fail {name}; NCCL_DEBUG=INFO shows more"
    ):
        b.split(call("new_group"), [0]) if name == "ncclCommSplit" else ranks(1)


@on_nccl_stub()
def test_the_watchdog_ends_a_call_that_nobody_waits_for() -> None:
    (b,) = ranks(1)
    x = array("float32", 2)
    b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    b.check()
    control.slow(copies=AGES)
    pending = b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    b.check()  # it has time yet
    b.set_timeout(0.0)
    with pytest.raises(RankFailedError, match=r"all_reduce \(call 7 .*\): rank 0 of 1 on cuda:0 waited 0 s"):
        b.check()
    assert last() == "ncclCommAbort"
    b.check()  # said once
    assert pending.done()
    with pytest.raises(RankFailedError, match="of no more use since all_reduce"):
        pending.wait()


@on_nccl_stub()
def test_the_watchdog_finds_errors() -> None:
    (b,) = ranks(1)
    nccl.asynchronous(0, nccl.REMOTE_ERROR, "connection closed")
    with pytest.raises(RankFailedError, match="connection closed"):
        b.check()
    assert last() == "ncclCommAbort"


@on_nccl_stub()
def test_the_watchdog_looks_at_every_communicator() -> None:
    one, two = ranks(2)
    nccl.asynchronous(1, nccl.REMOTE_ERROR, "connection closed")
    watchdog.look()
    one.raise_if_failed("all_reduce")
    with pytest.raises(RankFailedError, match="connection closed"):
        two.raise_if_failed("all_reduce")


@on_nccl_stub()
def test_the_watchdogs_thread_looks_by_itself() -> None:
    watchdog.LOOK = 0.01
    (b,) = [NcclBackend(0, 1, unique_id(), 0)]
    nccl.asynchronous(0, nccl.REMOTE_ERROR, "connection closed")
    while nccl.live():  # the test's own limit ends it
        time.sleep(0.01)
    with pytest.raises(RankFailedError, match="connection closed"):
        b.all_reduce(call("all_reduce"), ReduceOp.SUM, array("float32", 2))


@on_nccl_stub()
def test_the_watchdog_lets_captures_be() -> None:
    """Its questions do not break a capture that is under way, on its thread or another one."""
    (b,) = ranks(1)
    x = array("float32", 2)
    b.all_reduce(call("all_reduce"), ReduceOp.SUM, x)
    side = tt.cuda.Stream()
    graph = tt.cuda.CUDAGraph()
    with tt.cuda.graph(graph, stream=side, capture_error_mode="global"):
        runtime().copy_on_device(x.storage, 0, x.storage, 0, 4)
        thread = threading.Thread(target=watchdog.look)
        thread.start()
        thread.join()
    assert nccl.live() == 1


def test_without_nccl4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_loaded", None)
    monkeypatch.setitem(sys.modules, "nccl.bindings.nccl", None)
    monkeypatch.setitem(sys.modules, "nccl.bindings", None)
    monkeypatch.setitem(sys.modules, "nccl", None)
    with pytest.raises(
        ModuleNotFoundError, match=r"init_process_group: needs nccl4py, which is not installed: pip install 'tritensor\[nccl\]'"
    ):
        unique_id()


class _Api:
    """nccl.bindings.nccl of another version, or on a machine without the library."""

    __version__ = "0.3.1"

    def __init__(self, version: int | Exception, old: bool = False) -> None:
        self._version = version
        if not old:
            self.Comm = object

    def get_version(self) -> int:
        if isinstance(self._version, Exception):
            raise self._version
        return self._version

    def get_library_path(self) -> str:
        return "/usr/lib/libnccl.so.2"


@pytest.mark.parametrize(
    ("api", "said"),
    [
        (_Api(RuntimeError('Failure finding "libnccl.so.2":\nNo such file')), r'no NCCL \(Failure finding "libnccl.so.2": No such file\); pip install nvidia-nccl-cu13'),
        (_Api(OSError("libcudart.so.13: cannot open")), "finds no NCCL .libcudart.so.13"),
        (_Api(21705), "NCCL 2.17.5 in /usr/lib/libnccl.so.2 is too old, 2.18 or later is needed"),
        (_Api(22809, old=True), "nccl4py 0.3.1 is too old; pip install 'nccl4py>=0.6'"),
    ],
)  # fmt: skip
def test_what_is_missing_is_named(api: _Api, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "_loaded", None)
    monkeypatch.setattr(library, "extra", lambda *_: api)
    with pytest.raises(DistBackendError, match=f"init_process_group: .*{said}"):
        unique_id()


def test_the_emulated_device_is_refused() -> None:
    with pytest.raises(DeviceError, match=r"device cuda is emulated .*and NCCL needs GPUs; unset it, or use the backend 'mpi' for the CPU"):
        NcclBackend(0, 1, b"x" * 128, 0)


@on_nccl_stub(STUB_NCCL_VERSION=21705)
def test_an_old_nccl_is_refused() -> None:
    with pytest.raises(DistBackendError, match=r"NCCL 2.17.5 in .*libnccl.so.2 is too old"):
        ranks(1)


@on_nccl_stub()
def test_nccl_core_is_not_imported() -> None:
    ranks(1)
    assert not [m for m in sys.modules if m.startswith("nccl.core") or m == "torch"]
    sources = Path(library.__file__).parent.glob("*.py")
    assert not [p.name for p in sources if "nccl.core" in p.read_text()]
