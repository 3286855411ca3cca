"""Ask and steer the stub driver that this process runs on: calls counted, launches seen, memory alive, faults injected."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

# The statuses that tests inject, as the driver numbers them.
INVALID_VALUE = 1
OUT_OF_MEMORY = 2
NO_DEVICE = 100
ILLEGAL_ADDRESS = 700
LAUNCH_FAILED = 719
UNKNOWN = 999
_RING = 4096


class Launch(NamedTuple):
    """One launch as the driver saw it. `values`: each parameter, decoded by its size: unsigned integers to 8 bytes, else bytes."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int]
    shared: int
    stream: int
    device: int
    cooperative: bool
    programmatic: bool  # programmatic dependent launch: may begin before its predecessor in the stream has ended
    from_graph: bool
    raw: tuple[bytes, ...]  # the bytes of each parameter, in the order of the kernel's signature
    pointers: tuple[bool, ...]  # which of them the kernel takes for pointers

    @property
    def values(self) -> tuple[int | bytes, ...]:
        return tuple(int.from_bytes(b, "little") if len(b) <= 8 else b for b in self.raw)

    def floating(self, index: int) -> float:
        """Parameter `index` read as the float of its size."""
        return float(struct.unpack({2: "<e", 4: "<f", 8: "<d"}[len(self.raw[index])], self.raw[index])[0])


class _Launch(ctypes.Structure):
    _fields_ = [
        ("number", ctypes.c_uint64), ("stream", ctypes.c_uint64), ("kernel", ctypes.c_void_p), ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3), ("cluster", ctypes.c_uint32 * 3), ("shared", ctypes.c_uint32), ("cooperative", ctypes.c_uint32),
        ("programmatic", ctypes.c_uint32), ("device", ctypes.c_uint32), ("from_graph", ctypes.c_uint32), ("bytes", ctypes.c_uint32),
        ("parameters", ctypes.c_ubyte * 1024),
    ]  # fmt: skip


@cache
def _library() -> ctypes.CDLL:
    """The libcuda.so.1 of this process, if it is the stub; RuntimeError for a real driver."""
    library = ctypes.CDLL("libcuda.so.1")
    if not hasattr(library, "stub_calls"):
        raise RuntimeError("this process runs on a real libcuda.so.1; start it with tests.stub.build.environment() or @on_stub()")
    library.stub_function_name.restype = ctypes.c_char_p
    library.stub_kernel_name.restype = ctypes.c_char_p
    library.stub_kernel_name.argtypes = [ctypes.c_void_p]
    library.stub_calls.restype = ctypes.c_long
    library.stub_fail_at.argtypes = [ctypes.c_char_p, ctypes.c_long, ctypes.c_int, ctypes.c_long, ctypes.c_int]
    library.stub_slow.argtypes = [ctypes.c_long, ctypes.c_long]
    library.stub_launches.restype = ctypes.c_uint64
    library.stub_launch.argtypes = [ctypes.c_uint64, ctypes.c_void_p]
    library.stub_bytes_in_use.restype = ctypes.c_uint64
    library.stub_complaints.restype = ctypes.c_size_t
    library.stub_complaints.argtypes = [ctypes.c_char_p, ctypes.c_size_t]
    assert library.stub_launch_bytes() == ctypes.sizeof(_Launch), "control.py and stub.h disagree about Launch"
    return library


# counting
def calls(name: str | None = None) -> dict[str, int] | int:
    """How often the driver was called since the last reset: of one function, or of every one that was called at all."""
    library = _library()
    found: dict[str, int] = {}
    for i in range(library.stub_function_count()):
        each = library.stub_function_name(i).decode()
        found[each] = found.get(each, 0) + library.stub_calls(i)
    found.pop("cuGetProcAddress")  # cuda-python asks for all symbols at its first call
    if name is None:
        return {k: n for k, n in found.items() if n}
    return found[name]


def total() -> int:
    """How many calls of any function since the last reset."""
    every = calls()
    assert isinstance(every, dict)
    return sum(every.values())


def reset() -> None:
    """Forget calls and launches; memory, faults and a lost context stay."""
    _library().stub_reset_calls()
    _library().stub_forget_launches()


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """`with counted() as calls:` - a dict that holds, after the block, how often the block called which function."""
    before = calls()
    found: dict[str, int] = {}
    yield found
    after = calls()
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    found.update({k: n - before.get(k, 0) for k, n in after.items() if n != before.get(k, 0)})


# faults
def fail_at(name: str, nth: int, status: int, times: int = 1, sticky: bool = False) -> None:
    """The nth call of `name` from now on ("*": of any function) answers `status` and does nothing; so do the `times - 1` after it.

    With `sticky` the context is lost from then on: every later call answers the status too.
    """
    answer = _library().stub_fail_at(name.encode(), nth, status, times, sticky)
    if answer == -1:
        raise ValueError(f"fail_at: the stub has no function {name!r}; functions.h lists them")
    if answer:
        raise ValueError("fail_at: too many faults are waiting")


def faults_left() -> int:
    """How many faults asked for have not come yet."""
    return int(_library().stub_faults_left())


def sticky(status: int) -> None:
    """The context is lost: every later call but the host's own questions answers `status`. 0 mends it."""
    _library().stub_sticky(status)


def no_faults() -> None:
    """Take back every fault, a lost context included."""
    _library().stub_no_faults()


def slow(copies: int = 0, launches: int = 0) -> None:
    """Every copy or launch from now on keeps its stream busy for so many microseconds; a copy moves its bytes at the end of that."""
    _library().stub_slow(copies, launches)


def slow_copies(microseconds: int) -> None:
    """Copies take so long, launches no time."""
    slow(copies=microseconds)


# what the driver saw
def launches() -> list[Launch]:
    """The launches since the last reset, oldest first; the last 4096 of them."""
    library = _library()
    last = library.stub_launches()
    each = _Launch()
    offsets, sizes, pointers = ((ctypes.c_uint32 * 128)() for _ in range(3))
    found = []
    for number in range(max(0, last - _RING), last):
        assert library.stub_launch(number, ctypes.byref(each)) == 0
        count = library.stub_kernel_parameters(ctypes.c_void_p(each.kernel), offsets, sizes, pointers)
        block = bytes(each.parameters)
        grid, threads, cluster = (tuple(getattr(each, part)) for part in ("grid", "block", "cluster"))
        found.append(
            Launch(
                library.stub_kernel_name(each.kernel).decode(), grid, threads, cluster, each.shared, each.stream, each.device,
                bool(each.cooperative), bool(each.programmatic), bool(each.from_graph),
                tuple(block[offsets[i] : offsets[i] + sizes[i]] for i in range(count)), tuple(bool(pointers[i]) for i in range(count)),
            )
        )  # fmt: skip
    return found


def launch_count() -> int:
    """How many launches since the last reset, those of graphs included."""
    return int(_library().stub_launches())


def live_allocations(device: int = 0) -> dict[int, int]:
    """Address and bytes of every allocation on a device that has not been freed."""
    library = _library()
    room = library.stub_live_allocations(device, None, None, 0)
    addresses, sizes = (ctypes.c_uint64 * room)(), (ctypes.c_uint64 * room)()
    library.stub_live_allocations(device, addresses, sizes, room)
    return dict(zip(addresses, sizes, strict=True))


def bytes_in_use(device: int = 0) -> int:
    """Bytes that are taken from a device: allocations, and what memory pools keep in reserve."""
    return int(_library().stub_bytes_in_use(device))


def pinned() -> tuple[int, int]:
    """How many pieces of pinned host memory there are, and their bytes."""
    size = ctypes.c_uint64()
    return int(_library().stub_pinned(ctypes.byref(size))), size.value


def complaints() -> list[str]:
    """What the stub objected to since it was last asked: wild pointers, memory freed twice, bad shapes. A test on the stub fails on any."""
    text = ctypes.create_string_buffer(1 << 16)
    _library().stub_complaints(text, len(text))
    return text.value.decode().splitlines()
