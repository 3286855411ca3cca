"""Ask and steer the stub of NCCL, and @on_nccl_stub(): a test whose body runs on it and on the stub driver."""

from __future__ import annotations

import ctypes
import functools
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, NamedTuple

from tests.stub.child import on_stub
from tests.stub.nccl.build import library

# NCCL's numbers.
UNHANDLED_CUDA_ERROR, SYSTEM_ERROR, INTERNAL_ERROR, INVALID_ARGUMENT, INVALID_USAGE, REMOTE_ERROR = range(1, 7)
INT8, UINT8, INT32, UINT32, INT64, UINT64, FLOAT16, FLOAT32, FLOAT64, BFLOAT16 = range(10)
SUM, PROD, MAX, MIN, AVG = range(5)
NO_COLOR = -1
_SIZES = (1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1)
_COLLECTIVES = ("ncclAllReduce", "ncclReduce", "ncclBroadcast", "ncclAllGather", "ncclReduceScatter")
_MESSAGES = ("ncclSend", "ncclRecv")


class Seen(NamedTuple):
    """A call as NCCL saw it. `number`: of elements; `peer`: the root, or who is sent to or received from (-1: none); `depth`: of groups it is in; `busy`:
    whether its stream had work or something to wait for; `extra`: config.blocking, where there is a config."""

    name: str
    send: int
    receive: int
    number: int
    comm: int
    stream: int
    datatype: int
    op: int
    peer: int
    depth: int
    group: int
    rank: int
    size: int
    device: int
    busy: bool
    extra: int


class _Note(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char * 32), *((n, ctypes.c_uint64) for n in ("send", "receive", "count", "comm", "stream")),
        *((n, ctypes.c_int32) for n in ("datatype", "op", "peer", "depth", "group", "rank", "size", "device", "busy", "extra")),
    ]  # fmt: skip


@cache
def _library() -> ctypes.CDLL:
    """The stub, loaded before nccl4py looks for libnccl.so.2: it takes what the process has already."""
    found = ctypes.CDLL(str(library()), ctypes.RTLD_GLOBAL)
    found.stub_nccl_note.restype = ctypes.POINTER(_Note)
    found.stub_nccl_complaints.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    assert found.stub_nccl_note_bytes() == ctypes.sizeof(_Note), "control.py and libnccl.c disagree about Note"
    return found


def everything() -> list[Seen]:
    """Every call since the last `forget`, oldest first."""
    found = []
    for i in range(_library().stub_nccl_notes()):
        it = _library().stub_nccl_note(i).contents
        rest = {n: getattr(it, n) for n, *_ in _Note._fields_ if n not in ("name", "count", "busy")}
        found.append(Seen(name=it.name.decode(), number=it.count, busy=bool(it.busy), **rest))
    return found


def calls(*names: str) -> list[Seen]:
    """The calls that move data, or those of these names."""
    return [s for s in everything() if s.name in (names or (*_COLLECTIVES, *_MESSAGES))]


def forget() -> None:
    """Forget the calls so far."""
    _library().stub_nccl_forget()


def fail_at(name: str, nth: int, status: int) -> None:
    """The nth call of `name` from now on answers `status` and does nothing."""
    _library().stub_nccl_fail_at(name.encode(), nth, status)


def never(name: str) -> None:
    """What calls of `name` begin from now on does not end ("": it does again)."""
    _library().stub_nccl_never(name.encode())


def asynchronous(rank: int, status: int, words: str) -> None:
    """Communicators of that rank report an error from now on, which no call of theirs has caused."""
    _library().stub_nccl_async(rank, status, words.encode())


def next_children(size: int) -> None:
    """How many ranks the communicators have that ncclCommSplit makes from now on."""
    _library().stub_nccl_child_size(size)


def live() -> int:
    """How many communicators were neither destroyed nor aborted."""
    return int(_library().stub_nccl_live())


def complaints() -> list[str]:
    """What the stub objected to since it was last asked. A test on the stub fails on any."""
    text = ctypes.create_string_buffer(1 << 14)
    _library().stub_nccl_complaints(text, len(text))
    return text.value.decode().splitlines()


def unmatched(seen: Sequence[Seen], size: int) -> list[str]:
    """What does not fit together in the calls of all ranks of one communicator: collectives by their order, messages by their pairs."""
    found = []
    rows = [[s for s in seen if s.rank == r and s.name in _COLLECTIVES] for r in range(size)]
    for step in range(max(map(len, rows))):
        kinds = {(s.name, s.number, s.datatype, s.op, s.peer) for row in rows for s in row[step : step + 1]}
        missing = [r for r, row in enumerate(rows) if len(row) <= step]
        if len(kinds) > 1 or missing:
            found.append(f"collective {step}: {sorted(kinds)}, missing on ranks {missing}")
    messages: Counter[tuple[int, int, int]] = Counter()
    for s in seen:
        if s.name in _MESSAGES:
            sent = s.name == "ncclSend"
            messages[(s.rank, s.peer, s.number * _SIZES[s.datatype]) if sent else (s.peer, s.rank, s.number * _SIZES[s.datatype])] += (
                1 if sent else -1
            )
    return found + [f"message {a} -> {b} of {n} bytes: {k} more sent than received" for (a, b, n), k in messages.items() if k]


def on_nccl_stub(seconds: int = 30, **stub: object) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """`@on_stub()` with NCCL: the test fails on any complaint of either stub that the body has not taken."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def checked(*args: Any, **kwargs: Any) -> None:
            _library()
            function(*args, **kwargs)
            left = complaints()
            assert not left, f"the stub of NCCL complained: {left}"

        return on_stub(seconds, STUB_DEVICES=2, **stub)(checked)

    return decorate
