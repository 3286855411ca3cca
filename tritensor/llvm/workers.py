"""Threads that wait in machine code for their share of a loop: handing one over takes a microsecond, where Python's own pools take a hundred.

A worker is a thread of Python's that waits, without Python's lock, at a box of memory: it looks for some microseconds whether the box's number has
changed, then sleeps until it is woken (futex). What is in the box is a machine function with its arguments, which it calls, or nothing: then it goes
back to Python for what lies beside the box. The number of what it has done last tells that it is ready.
"""

from __future__ import annotations

import ctypes
import functools
import os
import platform
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tritensor.ground.process import locks
from tritensor.llvm import compiler
from tritensor.llvm.loop_nest import LoopNest

ARGUMENTS = 24  # that a function may have, of 64 bits each: the convention of calls lets it ignore those that it has not
_BOX = 64  # numbers of a box: more than it holds, so that two lie in different lines of the cache
_POSTED, _DONE, _ASLEEP, _ANSWER, _FUNCTION = 0, 8, 16, 24, 32  # places of the box; the arguments follow the last


class _System(NamedTuple):
    """How machine code asks Linux and the processor: a call of the system with four arguments, the numbers of its calls, what tells the time, what lets
    another thread of a core go first, and the ticks that a worker looks at the number before it sleeps, and a caller before it lets others have its core:
    some 200 us."""

    call: str
    futex: int
    sched_yield: int
    clock: str
    pause: str
    patience: int


_SYSTEMS = {
    "x86_64": _System(
        'call i64 asm sideeffect "syscall", "={rax},{rax},{rdi},{rsi},{rdx},{r10},~{rcx},~{r11},~{memory}"', 202, 24,
        "call i64 @llvm.readcyclecounter()", 'call void asm sideeffect "pause", "~{memory}"()', 1 << 19,
    ),
    "aarch64": _System(
        'call i64 asm sideeffect "svc #0", "={x0},{x8},{x0},{x1},{x2},{x3},~{memory}"', 98, 124,
        'call i64 asm sideeffect "mrs $0, cntvct_el0", "=r"()', 'call void asm sideeffect "yield", "~{memory}"()', 1 << 13,
    ),
}  # fmt: skip
_LINUX = _SYSTEMS.get(platform.machine(), _SYSTEMS["x86_64"])
_PAUSE = [
    f"  {_LINUX.pause}",
    f"  %now = {_LINUX.clock}",
    "  %since = sub i64 %now, %start",
    f"  %more = icmp ult i64 %since, {_LINUX.patience}",
]
_CLOCK = "declare i64 @llvm.readcyclecounter()"
_SYSTEM, _FUTEX, _YIELD = _LINUX.call, _LINUX.futex, _LINUX.sched_yield
_WAIT, _WAKE = 128, 129  # FUTEX_WAIT_PRIVATE, FUTEX_WAKE_PRIVATE


def _field(name: str, place: int, box: str = "%box") -> str:
    return f"  %{name} = getelementptr i64, ptr {box}, i64 {place}"


def _call_lines(answer: str, base: str) -> list[str]:
    """%<answer> = the function at `base` called with the arguments behind it."""
    lines = [f"  %{answer}.f = load ptr, ptr {base}, align 8"]
    for i in range(ARGUMENTS):
        lines += [
            f"  %{answer}.p{i} = getelementptr i64, ptr {base}, i64 {1 + i}",
            f"  %{answer}.{i} = load i64, ptr %{answer}.p{i}, align 8",
        ]
    given = ", ".join(f"i64 %{answer}.{i}" for i in range(ARGUMENTS))
    return [*lines, f"  %{answer} = call i64 %{answer}.f({given})"]


def _serve_text() -> str:
    """run(box): calls what is posted until there is something for Python."""
    return "\n".join([
        _CLOCK,
        "define i64 @run(ptr %box) {",
        "entry:",
        _field("done", _DONE), _field("asleep", _ASLEEP), _field("answer", _ANSWER), _field("function", _FUNCTION),
        "  br label %turn",
        "turn:",
        "  %last = load i64, ptr %done, align 8",
        f"  %start = {_LINUX.clock}",
        "  br label %look",
        "look:",
        "  %seen = load atomic i64, ptr %box acquire, align 8",
        "  %new = icmp ne i64 %seen, %last",
        "  br i1 %new, label %got, label %again",
        "again:",
        *_PAUSE,
        "  br i1 %more, label %look, label %sleep",
        "sleep:",
        "  store atomic i64 1, ptr %asleep seq_cst, align 8",
        "  %still = load atomic i64, ptr %box seq_cst, align 8",
        "  %quiet = icmp eq i64 %still, %last",
        "  br i1 %quiet, label %down, label %up",
        "down:",
        f"  %woken = {_SYSTEM}(i64 {_FUTEX}, ptr %box, i64 {_WAIT}, i64 %last, i64 0)",
        "  br label %up",
        "up:",
        "  store atomic i64 0, ptr %asleep seq_cst, align 8",
        "  br label %turn",
        "got:",
        "  %what = load i64, ptr %function, align 8",
        "  %python = icmp eq i64 %what, 0",
        "  br i1 %python, label %back, label %call",
        "call:",
        *_call_lines("found", "%function"),
        "  store i64 %found, ptr %answer, align 8",
        "  store atomic i64 %seen, ptr %done release, align 8",
        "  br label %turn",
        "back:",
        "  ret i64 %seen",
        "}",
        "",
    ])  # fmt: skip


def _post_text() -> str:
    """run(boxes, count, mine): posts what is in the boxes, calls the function at `mine` unless there is none, and gives its answer."""
    nest = LoopNest()
    with nest.loop("k", "%count"):
        nest.lines += [
            f"  %far = mul i64 %k, {_BOX}",
            "  %box = getelementptr i64, ptr %boxes, i64 %far",
            _field("asleep", _ASLEEP),
            "  %old = load i64, ptr %box, align 8",
            "  %new = add i64 %old, 1",
            "  store atomic i64 %new, ptr %box seq_cst, align 8",
            "  %down = load atomic i64, ptr %asleep seq_cst, align 8",
            "  %sleeps = icmp ne i64 %down, 0",
            "  br i1 %sleeps, label %wake, label %posted",
            "wake:",
            f"  %woken = {_SYSTEM}(i64 {_FUTEX}, ptr %box, i64 {_WAKE}, i64 1, i64 0)",
            "  br label %posted",
            "posted:",
        ]
    nest.lines += [
        "  %some = icmp ne ptr %mine, null",
        "  br i1 %some, label %call, label %none",
        "call:",
        *_call_lines("found", "%mine"),
        "  ret i64 %found",
        "none:",
    ]
    return nest.text("ptr %boxes", "i64 %count", "ptr %mine", returns="i64 0")


def _await_text() -> str:
    """run(boxes, count): waits until all that was posted is done; the answers or-ed."""
    nest = LoopNest()
    with nest.loop("k", "%count", all=("i64", "0")):
        nest.lines += [
            f"  %far = mul i64 %k, {_BOX}",
            "  %box = getelementptr i64, ptr %boxes, i64 %far",
            _field("done", _DONE), _field("answer", _ANSWER),
            "  %posted = load i64, ptr %box, align 8",
            f"  %start = {_LINUX.clock}",
            "  br label %look",
            "look:",
            "  %seen = load atomic i64, ptr %done acquire, align 8",
            "  %same = icmp eq i64 %seen, %posted",
            "  br i1 %same, label %ready, label %again",
            "again:",
            *_PAUSE,
            "  br i1 %more, label %look, label %rest",
            "rest:",
            f"  %yielded = {_SYSTEM}(i64 {_YIELD}, ptr null, i64 0, i64 0, i64 0)",
            "  br label %look",
            "ready:",
            "  %one = load i64, ptr %answer, align 8",
            "  %all.new = or i64 %all, %one",
        ]  # fmt: skip
    return f"{_CLOCK}\n{nest.text('ptr %boxes', 'i64 %count', returns='i64 %all.new')}"


def calls_text(nest: LoopNest, calls: str, count: str, *parameters: str) -> str:
    """A function that at its end calls `count` functions, each of which has its arguments behind it, one after the other; the answers or-ed."""
    with nest.loop("k", count, all=("i64", "0")):
        nest.lines += [
            f"  %far = mul i64 %k, {1 + ARGUMENTS}",
            f"  %base = getelementptr i64, ptr {calls}, i64 %far",
            *_call_lines("found", "%base"),
            "  %all.new = or i64 %all, %found",
        ]
    return nest.text(*parameters, returns="i64 %all.new")


@functools.cache
def _caller() -> Any:
    return compiler.build_typed(
        calls_text(LoopNest(), "%calls", "%count", "ptr %calls", "i64 %count"), ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64
    )


def calling() -> int:
    """The address of the function that calls others (see `calls_text`)."""
    return address(_caller())


def call_all(calls: int, count: int) -> int:
    """Call `count` functions of the table at an address, one after the other, in this thread; the answers or-ed."""
    return int(_caller()(calls, count))


@functools.cache
def _machine() -> tuple[Any, Any, Any] | None:
    """(serve, post, await); None where there is no machine code."""
    if compiler.refusal():
        return None
    made = [
        compiler.build_typed(text, ctypes.c_int64, *[ctypes.c_void_p if t == "p" else ctypes.c_int64 for t in arguments])
        for text, arguments in ((_serve_text(), "p"), (_post_text(), "pip"), (_await_text(), "pi"))
    ]
    return made[0], made[1], made[2]


def address(function: Any) -> int:
    """Where a machine function is; remembered beside it."""
    try:
        return int(function.address)
    except AttributeError:
        function.address = found = int(ctypes.cast(function, ctypes.c_void_p).value or 0)
        return found


@functools.cache
def _packs(arguments: int) -> Any:
    """What writes a function and so many arguments to memory."""
    return struct.Struct(f"{1 + arguments}q").pack_into


class Workers:
    """Some threads of this process. One caller has them at a time; who comes meanwhile does his work alone."""

    def __init__(self, count: int) -> None:
        machine = _machine()
        assert machine is not None
        self._serve, self._post, self._await = machine
        self.count = count
        self._free = locks.lock()
        # a box more, so that the first can begin where a line of the cache does
        self._memory = np.zeros(count * _BOX + _BOX, np.int64)
        first = -(-self._memory.ctypes.data // (8 * _BOX)) * 8 * _BOX  # a box begins a line of the cache
        place = (first - self._memory.ctypes.data) // 8
        self._boxes = self._memory[place : place + count * _BOX].reshape(count, _BOX)
        self._at = first
        self._bytes = self._boxes.data.cast("B")
        self._mine = bytearray(8 * (1 + ARGUMENTS))
        self._mine_at = ctypes.addressof(ctypes.c_char.from_buffer(self._mine))
        self._work: list[Callable[[], Any] | None] = [None] * count
        self._errors: list[BaseException | None] = [None] * count
        for k in range(count):
            # daemons: a process ends without asking them, wherever they wait
            threading.Thread(target=self._serve_box, args=(k,), name=f"tritensor-{k}", daemon=True).start()

    def _serve_box(self, k: int) -> None:
        at, box = self._at + 8 * _BOX * k, self._boxes[k]
        while True:
            seen = self._serve(at)
            work = self._work[k]
            self._work[k] = None
            try:
                assert work is not None
                work()
            except BaseException as error:  # handed to the caller
                self._errors[k] = error
            # in this order: who sees that it is done reads the answer
            box[_ANSWER] = 0
            box[_DONE] = seen

    @property
    def at_work(self) -> bool:
        """Whether somebody has them now."""
        return self._free.locked()

    def call(self, function: int, parts: Sequence[Sequence[int]]) -> int | None:
        """The machine function at an address called once for each part, all of as many arguments, the first by this thread; the answers or-ed. None where
        they are in use."""
        # not waited for: what is handed over takes microseconds, and so does doing it alone
        if not self._free.acquire(blocking=False):
            return None
        try:
            pack = _packs(len(parts[0]))
            pack(self._mine, 0, function, *parts[0])
            others = len(parts) - 1
            for k in range(others):
                pack(self._bytes, 8 * (_BOX * k + _FUNCTION), function, *parts[k + 1])
            own = self._post(self._at, others, self._mine_at)
            return int(own | self._await(self._at, others))
        finally:
            self._free.release()

    def share(self, works: Sequence[Callable[[], Any]]) -> bool:
        """Call functions of Python's, the first in this thread, and wait for all; False where the workers are in use. Raises what one of them raised."""
        if not self._free.acquire(blocking=False):
            return False
        others = len(works) - 1
        try:
            for k in range(others):
                self._work[k], self._errors[k] = works[k + 1], None
                self._boxes[k, _FUNCTION] = 0
            self._post(self._at, others, None)
            try:
                works[0]()
            finally:
                self._await(self._at, others)  # whatever failed, nobody writes any more
            failed = [e for e in self._errors[:others] if e is not None]
            if failed:
                raise failed[0]
            return True
        finally:
            self._free.release()


_here: dict[tuple[int, int], Workers | None] = {}  # by process, since threads do not survive a fork, and number
_starting = locks.lock()


def of_count(count: int) -> Workers | None:
    """This process's workers, so many; None where there is no machine code, or threads can no longer be started."""
    key = (os.getpid(), count)
    if key not in _here:
        with _starting:
            if key not in _here:
                _here[key] = None if _machine() is None else _start(count)
    return _here[key]


def _start(count: int) -> Workers | None:
    try:
        return Workers(count)
    except RuntimeError as error:
        if "can't start new thread" not in str(error) and "shutdown" not in str(error):
            raise
        return None  # the interpreter is ending (atexit)
